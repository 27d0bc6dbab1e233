"""The one table of keys: the page binds from it and its cheat sheet is drawn from it."""

from dataclasses import dataclass

from django.utils.translation import gettext_lazy as _


@dataclass(frozen=True)
class Key:
    keys: tuple[str, ...]  # as KeyboardEvent.key has them
    action: str  # the page's element with this data-action is used
    says: str

    @property
    def caps(self) -> list[str]:
        """How the keys are called on a keyboard."""
        return [str(_("Space")) if key == " " else key for key in self.keys]


GRADING = (
    Key(("u", "Backspace"), "take-back", _("take back the latest label")),
    Key(("f",), "flag", _("flag for the lead, with a note")),
    Key(("s",), "split", _("propose a split of the claim")),
    Key(("n",), "note", _("write a note, which goes with the label")),
    Key(("j",), "next-passage", _("to the next passage")),
    Key(("k",), "previous-passage", _("to the passage before")),
    Key(("m",), "mark", _("mark the passage: it decided the label")),
    Key(("e",), "evidence", _("light up the claim's words in the passages")),
    Key(("w",), "next-hit", _("to the next lit word")),
    Key(("b",), "previous-hit", _("to the lit word before")),
    Key((" ",), "skip", _("skip to the end of your queue")),
    Key(("Enter",), "onward", _("go on from a label looked at again")),
    Key(("r",), "rubric", _("show the rubric")),
    Key(("?",), "keys", _("show the keys")),
)
REASONS = {
    "ambiguous_text": "a",
    "guideline_gap": "g",
    "annotator_error": "s",
    "edge_case": "c",
    "subjective_disagreement": "m",
    "other": "o",
}
DECIDING = (
    Key(("n",), "note", _("write a note")),
    Key(("t",), "for-rubric", _("the rubric should say this")),
    Key(("x",), "own-split", _("split the claim")),
    Key(("Enter",), "decide", _("save the decision and go on")),
)
LOOKING = (  # at a target that may be decided or not
    Key(("j", "ArrowRight"), "next", _("to the next one, without deciding")),
    Key(("k", "ArrowLeft"), "previous", _("to the one before, without deciding")),
    Key(("u", "Backspace"), "latest", _("back to the latest decision")),
    Key(("z",), "revoke", _("take the decision back")),
    Key(("e",), "evidence", _("light up the claim's words in the passages")),
    Key(("r",), "rubric", _("show the rubric")),
    Key(("?",), "keys", _("show the keys")),
)
ADJUDICATING = (*DECIDING, *LOOKING)

# Of the claim audit. Its marks are not labels: they say nothing about the sources.
MARKS = {"well_split": "1", "badly_split": "2", "not_in_response": "3"}
BACK = Key(("u", "Backspace"), "back", _("go back, to change a mark"))
AUDITING = {
    "mark": (
        Key(("e",), "evidence", _("light up the claim's words in the response")),
        BACK,
        Key(("?",), "keys", _("show the keys")),
    ),
    "finish": (
        Key(("m",), "missing", _("say how many claims are missing")),
        Key(("n",), "note", _("write a note")),
        Key(("Enter",), "finish", _("save the response and go on")),
        BACK,
        Key(("?",), "keys", _("show the keys")),
    ),
}


def mark_keys(choices) -> tuple[Key, ...]:
    return tuple(Key((MARKS[value],), f"mark-{value}", says) for value, says in choices)


WARM_UP = (
    Key(("e",), "evidence", _("light up the claim's words in the passages")),
    Key(("r",), "rubric", _("show the rubric")),
    Key(("?",), "keys", _("show the keys")),
)
WARM_UP_EXPLAINED = (
    Key(("Enter",), "onward", _("on to the next case")),
    Key(("r",), "rubric", _("show the rubric")),
    Key(("?",), "keys", _("show the keys")),
)


def label_keys(labels) -> tuple[Key, ...]:
    return tuple(Key((label["key"],), f"label-{label['name']}", label["name"]) for label in labels)


def reason_keys(choices) -> tuple[Key, ...]:
    return tuple(Key((REASONS[value],), f"reason-{value}", says) for value, says in choices)


def as_data(table) -> list[dict]:
    return [{"keys": list(key.keys), "action": key.action} for key in table]
