"""Label Studio: the JSON export with its annotations and predictions, JSON_MIN and its CSV."""

from collections.abc import Iterator, Mapping

from evalsets.importing.cellvalues import list_in, object_in
from evalsets.importing.shapes.base import HUMAN, JUDGE, Flat, Said, Shape, each, spread, text_of

_MIN = {"annotator", "annotation_id"}
_NO_LABEL = "results that are no choice, label, rating or number were left out."
_BY_NUMBER = (
    "predictions were left out: the file has their numbers only (export a snapshot with them in full)."
)
# Where a result of that type keeps what was chosen.
_CHOSEN = ("choices", "labels", "rating", "number", "taxonomy")


def _recognise(record: Mapping[str, object]) -> bool:
    return (isinstance(record.get("data"), Mapping) and "annotations" in record) or record.keys() >= _MIN


def _flatten(record: Mapping[str, object]) -> Flat:
    if "annotations" not in record:
        return Flat(spread({column: _chosen_alone(value) for column, value in record.items()}))
    columns = {
        "id": record.get("id"),
        **spread(record["data"]),
        **spread(record.get("meta") or {}, "meta"),
    }
    said: list[Said] = []
    told: list[str] = []
    for annotation in each(record["annotations"]):
        if annotation.get("was_cancelled"):
            told.append("annotations that were cancelled were left out.")
            continue
        name = _person(annotation.get("completed_by"))
        said += _chosen(annotation, HUMAN, name)
        told += [_NO_LABEL for result in each(annotation.get("result")) if not _keys_of(result)]
    for prediction in each(record.get("predictions")):
        said += _chosen(prediction, JUDGE, text_of(prediction.get("model_version")))
    told += [_BY_NUMBER for prediction in _list(record.get("predictions")) if isinstance(prediction, int)]
    told += ["drafts of annotations were left out." for _draft in _list(record.get("drafts"))]
    return Flat(columns, said, told)


def _list(value: object) -> list:
    return value if isinstance(value, list) else []


def _chosen_alone(value: object) -> object:
    """What was chosen, out of the wrapping of several choices, ratings and numbers in JSON_MIN and CSV."""
    found = object_in(value)
    if isinstance(value, str) and value.startswith("[{"):
        found = list_in(value)
    if isinstance(found, list) and len(found) == 1:
        found = found[0]
    if isinstance(found, Mapping) and len(found) == 1:
        (key,) = found
        return found[key] if key in _CHOSEN else value
    return value


def _keys_of(result: Mapping[str, object]) -> list[str]:
    value = result.get("value")
    return [key for key in _CHOSEN if key in value] if isinstance(value, Mapping) else []


def _person(given: object) -> str:
    """`completed_by` is a number or, in exports that name people, an object."""
    if isinstance(given, Mapping):
        return text_of(given.get("email") or given.get("username") or given.get("id"))
    return text_of(given)


def _chosen(annotation: Mapping[str, object], kind: str, name: str) -> Iterator[Said]:
    for result in each(annotation.get("result")):
        for key in _keys_of(result):
            chosen = result["value"][key]  # type: ignore[index]
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
        "annotations that were cancelled, and drafts: they are left out, and counted",
        "regions, drawings and free text: only choices, labels, ratings and numbers are labels here",
        "predictions, where the export has their numbers only",
        "when a label was given, and the order in which it was changed",
    ),
)
