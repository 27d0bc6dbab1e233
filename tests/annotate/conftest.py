import pytest

from tests.annotate.worlds import make_round, make_version


@pytest.fixture
def version(evalset):
    return make_version(evalset)


@pytest.fixture
def round(version, grader_a, grader_b):
    """Everything graded by both."""
    return make_round(version, grader_a, grader_b)
