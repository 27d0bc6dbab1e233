"""Two judges that need no model and no key, and that are poor on purpose.

They are there so that everybody can see how badly word counting and phrase lists agree with people; neither
understands anything. docs/judges.md says where they go wrong.
"""

import json
import re
from collections.abc import Callable

from calibration.judges.clients import Answer
from calibration.judges.prompts import Prompt, Target

LEXICAL_VERSION = "lexical-baseline 1"
PHRASES_VERSION = "phrase-matcher 1"
COVERED = 0.6  # the share of a claim's words that one passage must contain
SHORT_ANSWER_WORDS = 60  # a refusal phrase in a longer response is taken for a hedge before an answer

_WORD = re.compile(r"\w+")
_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")
_NEGATION = re.compile(
    r"\b(?:not|no|never|none|cannot|without|nicht|kein|keine|keinen|nie|ohne)\b|n['’]t\b", re.IGNORECASE
)
_STOP_WORDS = frozenset(
    """
    a an and are as at be been by can for from has have in is it its may of on or that the their this to was
    were will with you your
    als am an auf bei das dem den der des die ein eine einem einen einer es für im in ist mit nach oder sie
    sind und von wird zu zum zur
    """.split()
)

_REFUSALS = [
    r"(?:do(?:es)? not|do(?:es)?n['’]t) (?:contain|include|mention|provide|say|state|specify|cover|answer)",
    r"(?:no|not enough|insufficient) (?:information|mention|details?) (?:is |are )?(?:about|on|in|available)",
    r"(?:can(?:not|['’]t)|could(?: not|n['’]t)|unable to|not able to) (?:find|answer|determine|help|locate)",
    r"i (?:do not|don['’]t) (?:know|have)",
    r"(?:not|nothing) (?:covered|found|mentioned|described|stated|documented) (?:in|by|about)",
    r"(?:enth(?:ä|ae)lt|enthalten|nenn(?:t|en)|erw(?:ä|ae)hn(?:t|en)) (?:\w+ ){0,4}(?:nicht|kein\w*)",
    r"(?:kein\w*|keinerlei) (?:angaben?|informationen?|hinweise?|antwort)",
    r"(?:kann|k(?:ö|oe)nnen) (?:\w+ ){0,6}nicht (?:beantwort\w+|finden|sagen|helfen)",
    r"(?:geht|gehen) (?:\w+ ){0,6}nicht hervor",
    r"(?:wei(?:ß|ss)) (?:ich )?(?:es )?nicht",
]
_QUESTIONS_BACK = [
    r"(?:could|can) you (?:please )?(?:clarify|specify|tell)",
    r"(?:which|what) (?:\w+ ){0,6}(?:do|did|are) you (?:mean|refer|use|using|have)",
    r"please (?:clarify|specify|tell me|let me know) (?:which|what|whether)",
    r"k(?:ö|oe)nn(?:t)?en sie (?:bitte )?(?:\w+ ){0,6}(?:genauer|sagen|angeben|pr(?:ä|ae)zisieren)",
    r"(?:welche[nrsm]?) (?:\w+ ){0,6}(?:meinen|verwenden|nutzen|haben) sie",
    r"meinen sie ",
]
_REFUSAL = re.compile("|".join(_REFUSALS), re.IGNORECASE)
_QUESTION_BACK = re.compile("|".join(_QUESTIONS_BACK), re.IGNORECASE)


def lexical_label(target: Target) -> tuple[str, str]:
    """Label a claim by how many of its words the best passage contains, with the reason."""
    claim = target.claim or ""
    words = content_words(claim)
    if not words:
        return "unverifiable", "the claim has no word to look for"
    if not target.passages:
        return "unsupported", "no passage was served"
    best = max(target.passages, key=lambda passage: len(words & content_words(passage.text)))
    share = len(words & content_words(best.text)) / len(words)
    found = f"{share:.0%} of the claim's words stand in one passage"
    if share < COVERED:
        return "unsupported", found
    missing = sorted(numbers_in(claim) - numbers_in(best.text))
    if missing:
        return "contradicted", f"{found}, but not the number {missing[0]}"
    if says_no(claim) and not says_no(best.text):
        return "contradicted", f"{found}, but the passage negates nothing"
    return "supported", found


def phrase_label(target: Target) -> tuple[str, str]:
    """Label a response by phrases of refusing and of asking back, English and German, with the reason."""
    text = target.response
    refusal = _REFUSAL.search(text)
    if refusal and len(_WORD.findall(text)) <= SHORT_ANSWER_WORDS:
        return "REFUSED", f"a short text with the phrase {refusal.group()!r}"
    asked = _QUESTION_BACK.search(text)
    if asked and text.rstrip().endswith("?"):
        return "CLARIFY", f"ends with a question and has the phrase {asked.group()!r}"
    return "ANSWERED", "no phrase of refusing or asking back decides otherwise"


class RuleClient:
    """A rule behind the protocol of an LLM: its answer is read by the same parser."""

    def __init__(self, rule: Callable[[Target], tuple[str, str]], version: str):
        self._rule = rule
        self._version = version

    def ask(self, prompt: Prompt, *, timeout: float) -> Answer:
        label, reason = self._rule(prompt.target)
        return Answer(text=json.dumps({"reason": reason, "label": label}), model=self._version)

    def close(self) -> None:
        pass


def lexical_client() -> RuleClient:
    return RuleClient(lexical_label, LEXICAL_VERSION)


def phrase_client() -> RuleClient:
    return RuleClient(phrase_label, PHRASES_VERSION)


def numbers_in(text: str) -> set[str]:
    return set(_NUMBER.findall(text))


def says_no(text: str) -> bool:
    return bool(_NEGATION.search(text))


def content_words(text: str) -> set[str]:
    return {word.casefold() for word in _WORD.findall(text)} - _STOP_WORDS
