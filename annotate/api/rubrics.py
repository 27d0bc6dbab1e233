"""The rubric of an eval set: its versions, what changed between two, and what it should say."""

from django.shortcuts import get_object_or_404
from django.utils.translation import gettext as _
from rest_framework.response import Response

from annotate import rubric_serializers as serializers
from annotate import services
from annotate.access import labels_of, told_of
from annotate.api.behind import BehindTheDoor
from annotate.material import content_of
from annotate.models import RubricTask
from annotate.rubric_diff import changes
from annotate.rubric_queries import own_versions, to_do_of
from annotate.rubric_rules import Path, problems
from evalsets.access import version_of
from evalsets.api.base import ApiView, ListView, Scope, once
from evalsets.api.paging import NumberedPages
from evalsets.api.problems import Refusal, error

TAG = "rubric"


class RubricVersions(ListView):
    """Newest first. POST writes the next one; a version that says the same already is told instead (200)."""

    tag, writes, row = TAG, Scope.ROUNDS, serializers.RubricRow
    ordering = "-number"
    takes = {"POST": serializers.NewRubricVersion}
    answers = {"POST": {200: serializers.RubricWhole, 201: serializers.RubricWhole}}

    def rows(self):
        return _versions(version_of(self.request.user, self.kwargs["slug"], self.kwargs["number"]))

    @once
    def post(self, request, slug, number):
        version = version_of(request.user, slug, number)
        content = self.body(request, serializers.NewRubricVersion)
        settles = set(content.pop("settles", ()))
        _refuse_what_is_wrong(content)
        written, is_new = services.write_rubric_version(
            rubric=services.latest_rubric(evalset=version.evalset, person=request.user).rubric,
            content=content,
            settles=_notes(request.user, version, settles),
            person=request.user,
        )
        told = serializers.RubricWhole(written).data
        return Response(told, status=201 if is_new else 200)


def _refuse_what_is_wrong(content) -> None:
    if wrong := problems(content):
        errors = [error(problem.message, field=_in_words(problem.where)) for problem in wrong]
        said = " ".join(dict.fromkeys(problem.message for problem in wrong))
        raise Refusal(409, "refused", said, errors=errors)


def _notes(person, version, ids: set[int]) -> list[RubricTask]:
    if not ids:
        return []
    told_of(person, version.evalset.slug)
    tasks = {shown.task.pk: shown.task for shown in to_do_of(person, version)["tasks"]}
    if unknown := sorted(ids - tasks.keys()):
        words = _("No open note has this id.")
        errors = [error(words, field="settles", value=pk) for pk in unknown]
        raise Refusal(409, "refused", words, errors=errors)
    return [tasks[pk] for pk in sorted(ids)]


def _in_words(where: Path) -> str:
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in where).lstrip(".")


def _versions(version):
    """Of the rubric that the next round would be graded by."""
    return own_versions(version.evalset).filter(rubric=services.latest_rubric(evalset=version.evalset).rubric)


def _own(person, slug, number, rubric_number):
    return get_object_or_404(_versions(version_of(person, slug, number)), number=rubric_number)


class OneRubricVersion(ApiView):
    tag = TAG
    answers = {"GET": serializers.RubricWhole}

    def get(self, request, slug, number, rubric_number):
        return Response(serializers.RubricWhole(_own(request.user, slug, number, rubric_number)).data)


class RubricChanges(ApiView):
    """What changed from one version to another, word by word."""

    tag = TAG
    asks = {"GET": serializers.RubricChangesQuery}
    answers = {"GET": serializers.RubricChanges}

    def get(self, request, slug, number):
        two = [_own(request.user, slug, number, self.asked[name]) for name in ("earlier", "later")]
        found = changes(*(content_of(version) for version in two))
        told = {"earlier": two[0].number, "later": two[1].number, "changes": found}
        return Response(serializers.RubricChanges(told).data)


class RubricNotes(ListView):
    """What the rubric should say: notes of decisions that no version has settled, the dismissed ones last."""

    tag, reads, row = TAG, Scope.ROUNDS, serializers.NoteRow
    pagination_class = NumberedPages

    def rows(self):
        version = labels_of(self.request.user, self.kwargs["slug"], self.kwargs["number"])
        told_of(self.request.user, version.evalset.slug)
        found = to_do_of(self.request.user, version)
        return found["tasks"] + found["dismissed"]


class MoveNote(BehindTheDoor):
    tag, writes = TAG, Scope.ROUNDS
    answers = {"POST": serializers.MovedNote}
    move = staticmethod(services.dismiss_rubric_task)

    @once
    def post(self, request, slug, number, task):
        version = labels_of(request.user, slug, number)
        found = get_object_or_404(RubricTask, pk=task, rubric__evalset=version.evalset)
        return Response(serializers.MovedNote(self.move(task=found)).data)


class DismissNote(MoveNote):
    """It leaves the list, and can be put back."""


class RestoreNote(MoveNote):
    """Put a dismissed note on the list again."""

    move = staticmethod(services.restore_rubric_task)
