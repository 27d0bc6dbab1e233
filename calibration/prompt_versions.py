"""The wordings of an eval set: adding one, comparing two, and what a target would be asked with one."""

import difflib
from collections.abc import Mapping, Sequence

from django.db import transaction
from django.db.models import Max, QuerySet
from django.utils.translation import gettext as _

from annotate.asking import CITATION, CLAIM, PASSAGE, RESPONSE
from annotate.models import RubricVersion
from annotate.services.targets import Target
from calibration.estimates import verdicts_for
from calibration.judges.material import Setup, dimension_texts, prompt_of, wording_of
from calibration.judges.prompts import BUILT_IN, Prompt, Wording, built_in
from calibration.models import PromptVersion
from calibration.services import Refused
from calibration.targets import conditional_targets_of, targets_of
from evalsets.models import Claim, EvalSet, Response

NEEDED = ("nonce", "question", "labels", "method", "menu")
METHODS = ("grounding", "abstention", CLAIM, RESPONSE, CITATION, PASSAGE)
MOST_CHARACTERS = 20_000

Difference = list[tuple[str, list[tuple[str, str]]]]


def wordings_of(evalset: EvalSet) -> list[Wording]:
    """The built-in one first."""
    own = PromptVersion.objects.filter(evalset=evalset).order_by("number")
    return [built_in(), *(Wording(str(row.number), row.system, row.methods, row.closing) for row in own)]


@transaction.atomic
def add_prompt_version(
    *,
    evalset: EvalSet,
    system: str,
    methods: Mapping[str, str],
    closing: str,
    note: str = "",
    person=None,
) -> PromptVersion:
    """Another wording. The fences around what is judged and the form of the answer are not part of it."""
    EvalSet.objects.select_for_update().get(pk=evalset.pk)
    missing = [name for name in NEEDED if "{" + name + "}" not in system]
    if missing:
        raise Refused(_("The text of the system message lacks {name}.").format(name="{" + missing[0] + "}"))
    empty = [name for name in METHODS if not methods.get(name, "").strip()]
    if empty:
        raise Refused(_("The method for {name} is empty.").format(name=empty[0]))
    if "{target}" not in closing:
        raise Refused(_("The closing sentence lacks {name}.").format(name="{target}"))
    if len(system) + len(closing) + sum(map(len, methods.values())) > MOST_CHARACTERS:
        raise Refused(_("A prompt has at most {n} characters.").format(n=MOST_CHARACTERS))
    new = Wording("", system, {name: methods[name] for name in METHODS}, closing)
    for known in wordings_of(evalset):
        if _texts(known) == _texts(new):
            raise Refused(_("Version {number} has this very wording.").format(number=known.version))
    return PromptVersion.objects.create(
        evalset=evalset,
        number=next_number(PromptVersion.objects.filter(evalset=evalset)),
        system=system,
        methods=dict(new.methods),
        closing=closing,
        note=note,
        created_by=person,
    )


def next_number(own: QuerySet) -> int:
    """After the latest of these, and after the built-in one, which has no row."""
    return (own.aggregate(last=Max("number"))["last"] or int(BUILT_IN)) + 1


def _texts(wording: Wording) -> dict[str, str]:
    return {
        "system": wording.system,
        **{f"method: {name}": wording.methods.get(name, "") for name in METHODS},
        "closing": wording.closing,
    }


def difference(old: Wording, new: Wording) -> Difference:
    """Of every part that differs its name and its lines, each with "-", "+" or " " before it."""
    return difference_of(_texts(old), _texts(new))


def difference_of(before: Mapping[str, str], after: Mapping[str, str]) -> Difference:
    return [(name, _lines(before[name], after[name])) for name in after if before[name] != after[name]]


def _lines(old: str, new: str) -> list[tuple[str, str]]:
    lines = difflib.ndiff(old.splitlines(), new.splitlines())
    return [(line[0], line[2:]) for line in lines if line[0] in "-+ "]


def trial(
    *,
    rubric_version: RubricVersion,
    evalset: EvalSet,
    version: str,
    response: Response,
    claim: Claim | None,
    dimension: str,
    only_cited: bool = False,
) -> Prompt:
    """The messages that a judge would get about this target, word for word. Nothing is sent."""
    asked = {"system_runs": [response.run], "dimensions": [dimension], "rubric_version": rubric_version}
    targets: Sequence[Target] = targets_of(**asked) or conditional_targets_of(**asked)  # type: ignore[arg-type]
    wanted = claim.pk if claim else None
    found = next((t for t in targets if t.response_id == response.pk and t.claim_id == wanted), None)
    if found is None:
        raise Refused(_("{dimension} is not asked of this target.").format(dimension=dimension))
    setup = Setup(dimension_texts(rubric_version), wording_of(evalset, version), only_cited)
    [verdict] = verdicts_for([found])
    return prompt_of(verdict, setup)
