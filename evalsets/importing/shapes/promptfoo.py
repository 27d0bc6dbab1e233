"""promptfoo: the results of an eval, as its JSON or JSON Lines output."""

from collections.abc import Iterator, Mapping

from evalsets.importing.shapes.base import HUMAN, JUDGE, Flat, Said, Shape, each, spread, text_of


def _recognise(record: Mapping[str, object]) -> bool:
    return isinstance(record.get("vars"), Mapping) and "provider" in record and "prompt" in record


def _flatten(record: Mapping[str, object]) -> Flat:
    provider, prompt, answer = record["provider"], record["prompt"], record.get("response")
    test, wording = text_of(record.get("testIdx")), text_of(record.get("promptIdx"))
    columns: dict[str, object] = {
        "id": f"{test}-{wording}" if test and wording else record.get("id"),
        "test": f"test-{test}" if test else None,
        **spread(record["vars"], "vars"),
        **spread(provider if isinstance(provider, Mapping) else {"id": provider}, "provider"),
        "prompt.label": prompt.get("label") if isinstance(prompt, Mapping) else prompt,
        "prompt.raw": _part(prompt, "raw"),
        "output": _part(answer, "output"),
        "error": record.get("error"),
        "description": _part(record.get("testCase"), "description"),
        "comment": _part(record.get("gradingResult"), "comment"),
        **spread(record.get("metadata") or {}, "metadata"),
    }
    return Flat(columns, list(_said(record.get("gradingResult"))))


def _part(value: object, key: str) -> object:
    return value.get(key) if isinstance(value, Mapping) else None


def _said(grading: object) -> Iterator[Said]:
    if not isinstance(grading, Mapping):
        return
    parts = each(grading.get("componentResults"))
    for part in parts:
        assertion = part.get("assertion")
        assertion = assertion if isinstance(assertion, Mapping) else {}
        kind = text_of(assertion.get("type"))
        question = text_of(assertion.get("metric")) or kind or "assertion"
        yield Said(
            question,
            "pass" if part.get("pass") else "fail",
            HUMAN if kind == "human" else JUDGE,
            "" if kind == "human" else f"promptfoo {kind}".strip(),
        )
    if not parts and "pass" in grading:
        yield Said("pass", "pass" if grading["pass"] else "fail", JUDGE, "promptfoo")


SHAPE = Shape(
    name="promptfoo",
    title="promptfoo",
    recognise=_recognise,
    flatten=_flatten,
    suggest={
        "id": "id",
        "test": "item_id",
        "output": "response",
        "provider.id": "system.model",
        "provider.label": "system.name",
        "prompt.label": "system.settings.prompt",
        "vars.question": "question",
        "vars.query": "question",
        "vars.input": "question",
        "vars.context": "context",
        "metadata.context": "context",
    },
    cannot_carry=(
        "outputs that are no text: they are refused, line by line",
        "that tests are repeats of one another: each is an item of its own",
        "its CSV, which has a column for each provider and prompt, its YAML and its HTML: write JSON",
        "the assertions' scores and reasons: only pass and fail are labels here",
    ),
    lists=(("results", "results"), ("results",)),
)
