"""Several judges as one: by the majority of their labels, or by the mean of their shares.

A judge whose verdict failed or is missing has no say; a panel of which half or more are silent says nothing,
and neither does one without a majority. Both are failures with a name, never a label. No database here.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

VERSION = "panel 1"
MAJORITY, MEAN = "majority", "mean"
RULES = (MAJORITY, MEAN)
NO_MAJORITY, NO_QUORUM = "no_majority", "no_quorum"
EQUAL = 1e-9


@dataclass(frozen=True)
class Said:
    """What the panel says of one target: a label or a failure, with who said what."""

    label: str = ""
    failure: str = ""
    detail: str = ""


def panel_says(votes: Mapping[str, Sequence[str]], *, rule: str, labels: Sequence[str]) -> Said:
    """One label from the verdicts of the members.

    Parameters
    ----------
    votes : mapping of str to sequence of str
        Of each member its valid labels of the target, first run first; empty where it has none.
    rule : {"majority", "mean"}
        majority: each member's first label is one vote, and a label needs more than half of the votes cast.
        mean: each member's runs are averaged, then the members; the label with the largest mean share.
    labels : sequence of str
        The label set.

    Returns
    -------
    Said
        ``no_quorum`` where half of the members or more have no label, ``no_majority`` where no label has
        more than half of the votes (majority) or two share the largest mean (mean).
    """
    if rule not in RULES:
        raise ValueError(f"rule must be one of {RULES}, got {rule!r}")
    cast = {name: own for name, own in votes.items() if own}
    silent = [name for name in votes if name not in cast]
    heard = f"no label by {', '.join(silent)}" if silent else ""
    if 2 * len(cast) <= len(votes):
        return Said(failure=NO_QUORUM, detail=f"{len(cast)} of {len(votes)} judges have a label: {heard}")
    shares = _votes_of(cast, labels) if rule == MAJORITY else _mean_of(cast, labels)
    told = ", ".join(f"{label} {share:.2f}" for label, share in shares.items() if share)
    best = max(shares.values())
    winners = [label for label, share in shares.items() if share > best - EQUAL]
    if len(winners) > 1 or (rule == MAJORITY and best <= 0.5):
        return Said(failure=NO_MAJORITY, detail=f"no label wins: {told}")
    return Said(label=winners[0], detail=f"{told}; {heard}" if heard else told)


def _votes_of(cast: Mapping[str, Sequence[str]], labels: Sequence[str]) -> dict[str, float]:
    first = [own[0] for own in cast.values()]
    return {label: first.count(label) / len(first) for label in labels}


def _mean_of(cast: Mapping[str, Sequence[str]], labels: Sequence[str]) -> dict[str, float]:
    return {
        label: sum(list(own).count(label) / len(own) for own in cast.values()) / len(cast) for label in labels
    }
