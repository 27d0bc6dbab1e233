"""The queue of disagreements is narrowed by a stratum whatever its name: the name is the file's."""

import pytest

from annotate.disagreement_kinds import Wanted
from annotate.disagreements import DisagreementQueue
from tests.annotate.worlds import freeze_all, make_round, make_version, say

# Quotes, digits, and what means something in a path into JSON.
NAMES = ["it's", 'say "when"', "2024", "0", "$.type", "a[0].b", "back\\slash", "Größe 🙂", "50%s"]


@pytest.fixture
def round(evalset, grader_a, grader_b):
    """Two responses on which the graders differ; the strata of the second item have other values."""
    version = make_version(evalset, responses=[("A ferry.", [])] * 2, freeze=False)
    for item in version.items.all():
        item.strata = dict.fromkeys(NAMES, "first" if item.position == 1 else "second")
        item.save()
    round = make_round(freeze_all(version), grader_a, grader_b)
    for position in (1, 2):
        say(round, grader_a, position, "REFUSED")
        say(round, grader_b, position, "ANSWERED")
    return round


@pytest.mark.parametrize("name", NAMES)
def test_queue_is_narrowed_by_a_stratum_of_any_name(round, name):
    first = round.version.responses.get(position=1)
    queue = DisagreementQueue(round, Wanted(stratum=(name, "first")))
    assert [found.response_id for found in queue] == [first.pk]
    assert list(DisagreementQueue(round, Wanted(stratum=(name, "neither")))) == []
    assert list(DisagreementQueue(round, Wanted(stratum=(name + "?", "first")))) == []
