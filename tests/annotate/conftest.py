import pytest

from tests.annotate.worlds import make_round, make_version, say


@pytest.fixture
def version(evalset):
    return make_version(evalset)


@pytest.fixture
def round(version, grader_a, grader_b):
    """Everything graded by both."""
    return make_round(version, grader_a, grader_b)


@pytest.fixture
def split_over_six(round, grader_a, grader_b):
    """The two differ about the one claim of the sixth response."""
    say(round, grader_a, 6, "supported")
    say(round, grader_b, 6, "contradicted")
    return round


@pytest.fixture
def as_(client):
    """The client, logged in as somebody: as_(lead).get(...)."""

    def log_in(person):
        client.force_login(person)
        return client

    return log_in
