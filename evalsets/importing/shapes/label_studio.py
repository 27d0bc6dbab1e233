"""Label Studio: the JSON export with its annotations and predictions, JSON_MIN and its CSV."""

from collections.abc import Iterator, Mapping

from evalsets.importing.shapes.base import HUMAN, JUDGE, Flat, Said, Shape, each, spread, text_of

_MIN = {"annotator", "annotation_id"}
# Where a result of that type keeps what was chosen.
_CHOSEN = ("choices", "labels", "rating", "number", "taxonomy")


def _recognise(record: Mapping[str, object]) -> bool:
    return (isinstance(record.get("data"), Mapping) and "annotations" in record) or record.keys() >= _MIN


def _flatten(record: Mapping[str, object]) -> Flat:
    if "annotations" not in record:
        return Flat(spread(record))
    columns = {
        "id": record.get("id"),
        **spread(record["data"]),
        **spread(record.get("meta") or {}, "meta"),
    }
    said: list[Said] = []
    for annotation in each(record["annotations"]):
        if annotation.get("was_cancelled"):
            continue
        said += _chosen(annotation, HUMAN, _person(annotation.get("completed_by")))
    for prediction in each(record.get("predictions")):
        said += _chosen(prediction, JUDGE, text_of(prediction.get("model_version")))
    return Flat(columns, said)


def _person(given: object) -> str:
    """`completed_by` is a number or, in exports that name people, an object."""
    if isinstance(given, Mapping):
        return text_of(given.get("email") or given.get("username") or given.get("id"))
    return text_of(given)


def _chosen(annotation: Mapping[str, object], kind: str, name: str) -> Iterator[Said]:
    for result in each(annotation.get("result")):
        value = result.get("value")
        if not isinstance(value, Mapping):
            continue
        for key in _CHOSEN:
            if key in value:
                chosen = value[key]
                if isinstance(chosen, list) and len(chosen) == 1:
                    chosen = chosen[0]
                yield Said(text_of(result.get("from_name")) or key, chosen, kind, name)


SHAPE = Shape(
    name="label_studio",
    title="Label Studio",
    recognise=_recognise,
    flatten=_flatten,
    suggest={
        "annotator": "grader",
        "annotation_id": "-",
        "created_at": "-",
        "updated_at": "-",
        "lead_time": "-",
    },
    cannot_carry=(
        "skipped tasks: annotations that were cancelled are left out",
        "regions, drawings and free text: only choices, labels, ratings and numbers are labels here",
        "when a label was given, and the order in which it was changed",
    ),
)
