from django.db.models import Exists, OuterRef
from django.http import Http404, HttpResponse
from django.shortcuts import render
from django.utils.http import urlencode
from django.views.decorators.http import require_safe

from annotate.access import labels_of
from annotate.models import Annotation
from calibration import figures
from calibration.clearest import clearest_examples
from calibration.measures import agreement_of, headline_of
from calibration.pairing import dimensions_of, table_of
from calibration.scope import AgreementForm
from calibration.thresholds import policy_in_force

PAIRS_SHOWN = GRADERS_SHOWN = 30
DRAWN = 6  # pairs of graders, systems and strata in a picture; the CSV file has them all
KINDS = ("svg", "png", "csv")


@require_safe
def agreement(request, slug, number):
    version = labels_of(request.user, slug, number)
    form = AgreementForm(request.GET, version=version)
    if not form.is_valid():
        return render(request, "calibration/scope_error.html", {"version": version, "form": form}, status=400)
    round = form.chosen_round
    dimension = form.chosen_dimension(round)
    table = table_of(version=version, round=round, dimension=dimension)
    found = agreement_of(table)
    bar = policy_in_force(version).min_human_agreement
    context = {
        "version": version,
        "form": form,
        "round": round,
        "dimension": dimension,
        "dimensions": dimensions_of(round),
        "figures": found,
        "bar": bar,
        "rounds": _rounds(version, form.rounds, dimension, round, found),
        **_listed(found),
    }
    if round and found["n_labelled"]:
        context |= _pictures(found, bar) | _cost(table, found, round, form)
        context["query"] = urlencode({"round": round.number, "dimension": dimension})
    return render(request, "calibration/agreement.html", context)


def _listed(found) -> dict:
    """Pairs and graders, those with the most labels first."""
    pairs = sorted(found["pairs"], key=lambda pair: -pair["n"])
    graders = sorted(found["graders"], key=lambda grader: -grader["n"])
    return {
        "pairs": pairs[:PAIRS_SHOWN],
        "pairs_not_shown": max(0, len(pairs) - PAIRS_SHOWN),
        "graders": graders[:GRADERS_SHOWN],
        "graders_not_shown": max(0, len(graders) - GRADERS_SHOWN),
        "use": _use(found, graders[:GRADERS_SHOWN]),
    }


def _pictures(found, bar) -> dict:
    rows = figures.agreement_rows(found, shown=DRAWN)
    confusion = found["confusion"]
    return {
        "not_drawn": len(figures.agreement_rows(found)) - len(rows),
        "ladder": figures.inline_svg(figures.ladder(rows, bar=bar), figures.described(rows, bar)),
        "heat": figures.inline_svg(figures.heat_map(confusion), figures.confusion_described(confusion)),
        "kinds": KINDS,
    }


def _cost(table, found, round, form) -> dict:
    """The pair of labels to look at, the costliest unless another is asked for, with its examples."""
    costs = found["label_costs"]
    asked = form.cleaned_data["pair"]
    cost = next((c for c in costs if f"{c['one']}:{c['other']}" == asked), costs[0] if costs else None)
    if cost is None:
        return {"costs": []}
    examples = clearest_examples(table=table, round=round, one=cost["one"], other=cost["other"])
    start = {} if round.rubric_version.rubric.is_imported else {"from": round.rubric_version.number}
    rewrite = start | {
        "dimension": found["dimension"],
        "label": cost["one"],
        "example": [example.address for example in examples],
    }
    pair = f"{found['dimension']}:{cost['one']}:{cost['other']}"
    return {
        "costs": costs,
        "cost": cost,
        "examples": examples,
        "rewrite": urlencode(rewrite, doseq=True),
        "rewrite_other": urlencode(rewrite | {"label": cost["other"]}, doseq=True),
        "queue": urlencode({"round": round.number, "status": "all", "pair": pair}),
    }


def _use(found, graders) -> list[dict]:
    """Grader by grader, the labels in their order."""
    return [
        {"name": grader["name"], "labels": [u for u in found["label_use"] if u["grader"] == grader["name"]]}
        for grader in graders
    ]


def _rounds(version, rounds, dimension, current, found) -> list[dict]:
    """Each round by itself: labels given by another rubric, or again, are never pooled."""
    labels = Annotation.objects.filter(round=OuterRef("pk"), dimension=dimension)
    labelled = set(version.rounds.filter(Exists(labels)).values_list("pk", flat=True))
    made: list[dict] = []
    for round in rounds:
        if round.pk not in labelled:
            continue
        same = round == current
        head = (
            found["headline"]
            if same
            else headline_of(table_of(version=version, round=round, dimension=dimension))
        )
        made.append({"round": round, "headline": head, "current": same, "changed_from": None})
        before = made[-2]["round"].rubric_version if len(made) > 1 else None
        rubric = round.rubric_version
        if before and before.rubric_id == rubric.rubric_id and before.number != rubric.number:
            made[-1]["changed_from"] = before
    return made if len(made) > 1 else []


@require_safe
def agreement_chart(request, slug, number, picture, kind):
    """A picture of the page as a file: SVG, PNG or the numbers behind it."""
    version = labels_of(request.user, slug, number)
    form = AgreementForm(request.GET, version=version)
    if not form.is_valid() or form.chosen_round is None:
        raise Http404
    round = form.chosen_round
    dimension = form.chosen_dimension(round)
    found = agreement_of(table_of(version=version, round=round, dimension=dimension))
    content, mime = _drawn(picture, kind, found, policy_in_force(version).min_human_agreement)
    name = f"{picture}-{slug}-{number}-round-{round.number}-{dimension}.{kind}"
    return HttpResponse(
        content, content_type=mime, headers={"Content-Disposition": f'attachment; filename="{name}"'}
    )


def _drawn(picture, kind, found, bar) -> tuple[str | bytes, str]:
    if picture == "kappa":
        spec = figures.ladder(figures.agreement_rows(found, shown=DRAWN), bar=bar)
        numbers = figures.ladder_csv(figures.agreement_rows(found))
    elif picture == "confusion":
        spec, numbers = figures.heat_map(found["confusion"]), figures.confusion_csv(found["confusion"])
    else:
        raise Http404
    return figures.as_file(spec, numbers, kind)
