"""A worker that is killed in the middle of an extraction: no claim is lost, none is stored twice."""

import pytest

from calibration.extraction_runs import start_extraction
from calibration.models import Verdict
from calibration.services import add_judge
from evalsets.models import Claim
from tests.calibration.extraction.conftest import make_draft
from tests.calibration.judges.fake_server import FakeServer
from tests.faults.test_judge_worker import AT_ONCE, FINISHED, is_complete, wait_until

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.once, pytest.mark.slow]

RESPONSES = 40


def test_kill_9_of_the_worker_in_mid_extraction(evalset, start_worker):
    with FakeServer(default="slow") as server:
        server.delay = 0.1
        texts = {n: f"Ferry {n} leaves at noon. Dog {n} travels free." for n in range(1, RESPONSES + 1)}
        version = make_draft(evalset, texts)
        judge = add_judge(
            evalset=evalset, name="fake", model="m", base_url=server.url, parameters={"concurrency": AT_ONCE}
        )
        worker = start_worker(concurrency=AT_ONCE, JUDGE_LEASE_SECONDS="2", beat=True)
        extraction = start_extraction(judge=judge, version=version, system_runs=list(version.runs.all()))
        wait_until(lambda: extraction.verdicts.filter(state__in=FINISHED).count() >= 8)
        worker.kill()
        before = set(Claim.objects.values_list("pk", flat=True))
        finished = extraction.verdicts.filter(state__in=FINISHED).count()
        asked = server.calls
        assert 8 <= finished < RESPONSES
        assert len(before) == 2 * finished
        assert extraction.verdicts.filter(state=Verdict.State.CLAIMED).exists()

        start_worker(concurrency=AT_ONCE, beat=True, JUDGE_LEASE_SECONDS="2")
        wait_until(lambda: is_complete(extraction))
        assert extraction.verdicts.filter(state=Verdict.State.VALID).count() == RESPONSES
        claims = list(Claim.objects.values_list("pk", "response__position", "text"))
        assert sorted(text for _pk, _n, text in claims) == sorted(
            text
            for n in range(1, RESPONSES + 1)
            for text in (f"Ferry {n} leaves at noon.", f"Dog {n} travels free.")
        )
        assert before <= {pk for pk, _n, _text in claims}  # what was stored stayed as it was
        assert server.calls - asked == RESPONSES - finished
        assert asked - finished <= AT_ONCE
