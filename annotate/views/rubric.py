"""The lead's rubric pages: its versions, a new one from an old one, what changed, and what it should say."""

from django.contrib import messages
from django.http import Http404
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from annotate import services
from annotate.access import labels_of
from annotate.material import content_of
from annotate.models import RubricTask, RubricVersion
from annotate.presets import BUNDLES
from annotate.rubric_diff import changes
from annotate.rubric_forms import RubricEditor
from annotate.rubric_queries import examples_of, own_versions, to_do_of
from annotate.rubric_words import BUNDLE_NAMES, PARTS
from evalsets.access import version_of
from evalsets.models import EvalSetVersion


@require_safe
def rubric(request, slug, number):
    version = version_of(request.user, slug, number)
    services.rubric_v1(evalset=version.evalset)
    context = {"version": version, "rubrics": own_versions(version.evalset)}
    return render(request, "annotate/rubric.html", context | to_do_of(request.user, version))


@require_safe
def rubric_version(request, slug, number, rubric_number):
    version = version_of(request.user, slug, number)
    found = _own(version, rubric_number)
    context = {"version": version, "rubric": found, "cases": found.warm_up_cases.all()}
    return render(request, "annotate/rubric_version.html", context)


@require_safe
def rubric_changes(request, slug, number, earlier, later):
    version = version_of(request.user, slug, number)
    before, after = _own(version, earlier), _own(version, later)
    context = {
        "version": version,
        "before": before,
        "after": after,
        "changes": [
            (" · ".join(str(PARTS.get(part, part)) for part in change.where), change)
            for change in changes(content_of(before), content_of(after))
        ],
    }
    return render(request, "annotate/rubric_changes.html", context)


@require_http_methods(["GET", "HEAD", "POST"])
def new_rubric(request, slug, number):
    version = version_of(request.user, slug, number)
    base = _base(version, request.GET.get("from", ""), request.user)
    to_do = to_do_of(request.user, version)
    if request.method == "POST":
        editor = RubricEditor.received(request.POST)
    else:
        editor = _prefilled(request, version, base)
    if editor.wants_to_save:
        return _save(request, version, base, editor, to_do["tasks"])
    context = {
        "version": version,
        "base": base,
        "editor": editor,
        "bundles": [(name, BUNDLE_NAMES[name], parts) for name, parts in BUNDLES.items()],
        **to_do,
    }
    return render(request, "annotate/rubric_editor.html", context, status=400 if editor.wrong else 200)


@require_POST
def move_rubric_task(request, slug, number, task):
    version = labels_of(request.user, slug, number)
    task = get_object_or_404(RubricTask, pk=task, rubric__evalset=version.evalset)
    try:
        if request.POST.get("move") == "restore":
            services.restore_rubric_task(task=task)
            messages.success(request, _("The note is on the list again."))
        else:
            services.dismiss_rubric_task(task=task)
            messages.success(request, _("The note was dismissed; it can be put back below."))
    except services.Refused as refused:
        messages.error(request, str(refused))
    return redirect(reverse("annotate:rubric", args=[slug, number]) + "#to-do")


def _own(version: EvalSetVersion, rubric_number: int) -> RubricVersion:
    return get_object_or_404(own_versions(version.evalset), number=rubric_number)


def _base(version: EvalSetVersion, given: str, person) -> RubricVersion:
    """The version to start from: the one asked for, else the latest."""
    latest = services.latest_rubric(evalset=version.evalset, person=person)
    if not given:
        return latest
    if not (given.isdecimal() and len(given) < 9):
        raise Http404
    return _own(version, int(given))


def _prefilled(request, version: EvalSetVersion, base: RubricVersion) -> RubricEditor:
    editor = RubricEditor.starting_from(content_of(base))
    ids = request.GET.getlist("example")
    dimension = base.dimensions.filter(name=request.GET.get("dimension", "")).first()
    if ids and dimension:
        # Which passage decided it is somebody's word.
        labels_of(request.user, version.evalset.slug, version.number)
        texts = examples_of(version, dimension.target, ids)
        editor.add_examples(dimension.name, request.GET.get("label", ""), texts)
    return editor


def _save(request, version, base, editor: RubricEditor, tasks):
    written, is_new = services.write_rubric_version(
        rubric=base.rubric,
        content=editor.content,
        settles=[shown.task for shown in tasks if shown.task.pk in editor.settles],
        person=request.user,
    )
    said = (
        _("Version %(number)s of the rubric is written.")
        if is_new
        else _("Version %(number)s says exactly this already; no new one was made.")
    )
    messages.success(request, said % {"number": written.number})
    slug, number = version.evalset.slug, version.number
    if is_new:
        return redirect("annotate:rubric_changes", slug, number, base.number, written.number)
    return redirect("annotate:rubric_version", slug, number, written.number)
