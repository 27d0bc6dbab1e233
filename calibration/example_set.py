"""Loads the built-in example through the same services as everybody's data."""

import json
from collections.abc import Callable
from pathlib import Path

from django.conf import settings
from django.contrib.auth import get_user_model
from django.db import transaction
from django.utils.translation import gettext as _

from annotate import services as annotate
from annotate.models import Grader, Round
from calibration import exchange
from calibration import services as calibration
from calibration.models import JudgeRun
from evalsets import services as evalsets
from evalsets.example import GRADERS, LEAD, LOG_INS, NAME, SLUG, LogIn
from evalsets.models import EvalSet, EvalSetVersion, Membership

FOLDER = Path(__file__).parent / "example"
JUDGES = ("lexical-baseline", "phrase-matcher")
SEED = 2611  # the visitor finds the same order of responses on every machine

Progress = Callable[[str], None]


class Refused(Exception):
    """The example may not be loaded here; the message says why."""


def load_example(*, tell: Progress = lambda _sentence: None) -> dict:
    """Load what is missing of the example; a second call finds it there and changes nothing."""
    if not settings.EXAMPLE:
        raise Refused(
            _(
                "The example's log-ins are published, so it is not loaded where PUBLIC_URL is set or EXAMPLE "
                "is 0. EXAMPLE=1 loads it all the same."
            )
        )
    version = EvalSetVersion.objects.filter(evalset__is_example=True).order_by("number").first()
    loaded = version is None
    if loaded:
        version = _import_and_grade(tell)
    for name in JUDGES:
        _judge(version, name, tell)
    return {
        "evalset": version.evalset.slug,
        "version": version.number,
        "loaded": loaded,
        "logins": [
            {"username": login.username, "password": login.password, "role": str(login.role)}
            for login in LOG_INS
        ],
    }


@transaction.atomic
def _import_and_grade(tell: Progress) -> EvalSetVersion:
    _refuse_taken_names()
    tell(_("Importing the example"))
    with (FOLDER / "evalset.jsonl").open("rb") as stream:
        told = exchange.import_evalset(stream=stream, filename="evalset.jsonl", name=NAME, freeze=True)
    EvalSet.objects.filter(slug=told["evalset"]).update(is_example=True)
    version = EvalSetVersion.objects.select_related("evalset").get(
        evalset__slug=told["evalset"], number=told["version"]
    )
    lead = _person(LEAD)
    evalsets.add_member(evalset=version.evalset, person=lead, role=Membership.Role.LEAD)
    graders = {login.username: _grader(version.evalset, login) for login in GRADERS}
    round = annotate.open_round(
        version=version,
        runs=list(version.runs.all()),
        graders=list(graders.values()),
        rubric_version=annotate.rubric_v1(evalset=version.evalset, person=lead),
        seed=SEED,
        person=lead,
    )
    tell(_("Grading 60 % of it as two graders"))
    _grade(round, graders)
    return version


def _refuse_taken_names() -> None:
    names = [login.username for login in LOG_INS]
    taken = get_user_model().objects.filter(username__in=names).values_list("username", flat=True)
    if taken:
        raise Refused(
            _("There are accounts called %(names)s already, which the example would use.")
            % {"names": ", ".join(sorted(taken))}
        )
    if EvalSet.objects.filter(slug=SLUG).exists() or EvalSet.objects.filter(name=NAME).exists():
        raise Refused(
            _("There is an eval set called %(name)s already, which is not the example.") % {"name": NAME}
        )


def _person(login: LogIn):
    return get_user_model().objects.create_user(login.username, password=login.password)


def _grader(evalset: EvalSet, login: LogIn) -> Grader:
    person = _person(login)
    evalsets.add_member(evalset=evalset, person=person, role=Membership.Role.GRADER)
    return annotate.ensure_grader(evalset=evalset, name=login.username, person=person)


def _grade(round: Round, graders: dict[str, Grader]) -> None:
    responses = {
        response.response_id: response for response in round.version.responses.prefetch_related("claims")
    }
    with (FOLDER / "labels.jsonl").open(encoding="utf-8") as lines:
        for given in map(json.loads, lines):
            response = responses[given["response"]]
            claims = {claim.claim_id: claim for claim in response.claims.all()}
            where = {
                "round": round,
                "grader": graders[given["grader"]],
                "response": response,
                "claim": claims[given["claim"]] if given["claim"] else None,
            }
            annotate.annotate(
                **where, dimension=given["dimension"], label=given["label"], note=given.get("note", "")
            )
            if "flag" in given:
                annotate.flag(**where, note=given["flag"])


def _judge(version: EvalSetVersion, name: str, tell: Progress) -> None:
    runs = JudgeRun.objects.filter(version=version, judge__name=name)
    if runs.filter(state=JudgeRun.State.COMPLETE).exists():
        return
    tell(_("Running the judge %(name)s, which needs no key") % {"name": name})
    judge = calibration.judge_named(evalset=version.evalset, name=name)
    run = runs.filter(state=JudgeRun.State.RUNNING).first() or calibration.start_run(
        judge=judge, version=version
    )
    calibration.run_inline(run=run)
