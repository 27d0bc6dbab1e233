"""A judge that learns from people's labels, and one that knows their shares only: what an LLM has to beat.

Both are cross-fitted: the items are dealt into folds, and a target gets its label from a model that has seen
no target of its item. What is scored has thus never been learnt from. No database and no framework.
"""

import hashlib
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from calibration.judges.baseline import content_words, numbers_in, says_no

TRAINED_VERSION = "trained-baseline 1"
MAJORITY_VERSION = "majority-label 1"
FOLDS = 5
MOST_FEATURES = 20_000
LONG = 400  # words; a text of that length counts as 1


@dataclass(frozen=True)
class Text:
    """What a target is about: a claim or a response, the question, and the passages that were served."""

    text: str
    question: str = ""
    passages: tuple[str, ...] = ()


@dataclass(frozen=True)
class Guess:
    label: str
    share: float  # of probability, or of the labels that were learnt from
    learnt_from: int


def fold_of(item: str, seed: int, folds: int = FOLDS) -> int:
    """The fold follows from the seed and the item's id alone."""
    return int.from_bytes(hashlib.sha256(f"{seed}:{item}".encode()).digest()[:8]) % folds


def cross_fitted(
    texts: Sequence[Text],
    labels: Sequence[str | None],
    items: Sequence[str],
    *,
    seed: int,
    folds: int = FOLDS,
) -> list[Guess | None]:
    """A label for every text by a logistic regression on the labels of the other folds' items.

    Parameters
    ----------
    texts : sequence of Text, shape (n,)
        What is judged.
    labels : sequence of str or None, shape (n,)
        What people said; None where nobody did.
    items : sequence of str, shape (n,)
        The item of each text; all texts of an item share a fold.
    seed : int
        Decides the folds and the solver.
    folds : int
        Number of folds.

    Returns
    -------
    list of Guess or None
        None where the other folds hold no label at all. Where they hold one label only, it is that label.
    """
    said = [text.text for text in texts]
    counted = np.array([_counted(text) for text in texts])

    def fitted(known: list[int], asked: list[int]) -> list[Guess]:
        return _fitted(said, counted, labels, known, asked, seed)

    return _by_fold(labels, items, seed, folds, fitted)


def majority_labels(
    labels: Sequence[str | None], items: Sequence[str], *, order: Sequence[str], seed: int, folds: int = FOLDS
) -> list[Guess | None]:
    """For every target the label that is most frequent in the other folds; of equals the first in `order`."""

    def most_frequent(known: list[int], asked: list[int]) -> list[Guess]:
        counts = Counter(labels[row] for row in known)
        best = max(order, key=lambda label: counts[label])
        return [Guess(best, counts[best] / len(known), len(known)) for _row in asked]

    return _by_fold(labels, items, seed, folds, most_frequent)


def _by_fold(
    labels: Sequence[str | None],
    items: Sequence[str],
    seed: int,
    folds: int,
    fitted: Callable[[list[int], list[int]], list[Guess]],
) -> list[Guess | None]:
    fold = [fold_of(item, seed, folds) for item in items]
    guesses: list[Guess | None] = [None] * len(items)
    for number in range(folds):
        known = [row for row, own in enumerate(fold) if own != number and labels[row] is not None]
        asked = [row for row, own in enumerate(fold) if own == number]
        if known and asked:
            for row, guess in zip(asked, fitted(known, asked), strict=True):
                guesses[row] = guess
    return guesses


def _fitted(
    texts: Sequence[str],
    counted: NDArray[np.float64],
    labels: Sequence[str | None],
    known: list[int],
    asked: list[int],
    seed: int,
) -> list[Guess]:
    seen = [str(labels[row]) for row in known]
    if len(set(seen)) == 1:
        return [Guess(seen[0], 1.0, len(known)) for _row in asked]
    from scipy.sparse import csr_matrix, hstack
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.multiclass import OneVsRestClassifier
    from sklearn.preprocessing import StandardScaler

    words = TfidfVectorizer(
        ngram_range=(1, 2), sublinear_tf=True, max_features=MOST_FEATURES, token_pattern=r"\w+"
    )
    scale = StandardScaler()
    learnt = hstack(
        [_words_of(words, [texts[row] for row in known]), csr_matrix(scale.fit_transform(counted[known]))]
    )
    new = hstack(
        [words.transform([texts[row] for row in asked]), csr_matrix(scale.transform(counted[asked]))]
    )
    # One thread and sparse throughout: the other solvers wait for each other's threads on a busy machine.
    model = OneVsRestClassifier(
        LogisticRegression(solver="liblinear", class_weight="balanced", random_state=seed % 2**32)
    )
    model.fit(learnt.tocsr(), seen)
    shares = model.predict_proba(new.tocsr())
    best = shares.argmax(axis=1)
    return [
        Guess(str(model.classes_[column]), float(share[column]), len(known))
        for column, share in zip(best.tolist(), shares, strict=True)
    ]


def _words_of(words, said: list[str]):
    """TF-IDF of the texts; a text of signs only gets a word, because an empty vocabulary is an error."""
    try:
        return words.fit_transform(said)
    except ValueError:
        return words.fit_transform([*said, "none"])[: len(said)]


def _counted(text: Text) -> list[float]:
    """Overlap with the passages, numbers and negations that they do not have, and lengths."""
    words = content_words(text.text)
    served = [content_words(passage) for passage in text.passages]
    together: set[str] = set().union(*served)
    best = max(range(len(served)), key=lambda rank: len(words & served[rank]), default=None)
    nearest = text.passages[best] if best is not None else ""
    numbers = numbers_in(text.text)
    return [
        _share(words & content_words(nearest), words),
        _share(words & together, words),
        _share(words & content_words(text.question), words),
        _share(numbers - numbers_in(nearest), numbers),
        float(len(numbers)),
        float(says_no(text.text)),
        float(says_no(text.text) and not says_no(nearest)),
        min(1.0, len(text.text.split()) / LONG),
        float(text.text.rstrip().endswith("?")),
        float(not text.passages),
    ]


def _share(part: set[str], whole: set[str]) -> float:
    return len(part) / len(whole) if whole else 0.0
