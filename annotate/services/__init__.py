"""Every write of what people say. Each function is one transaction; gold is settled inside it."""

from annotate.services.adjudication import (
    accept_split,
    adjudicate,
    decline_split,
    open_for_adjudication,
    revoke,
    split_claim,
    take_over_gold,
    take_split_back,
)
from annotate.services.audit import draw_audit, finish_audited, forget_audits, mark_claim
from annotate.services.imported import record_imported_labels
from annotate.services.labels import Answered, annotate, flag, propose_split, skip, take_back, unflag
from annotate.services.opening import Planned, open_round, open_round_with, plan_round
from annotate.services.rounds import (
    close_round,
    new_seed,
    pause_round,
    reassign,
    reassign_unfinished,
    resume_round,
    share_with,
    spread,
)
from annotate.services.rubric_tasks import dismiss_rubric_task, note_for_rubric, restore_rubric_task
from annotate.services.rubrics import (
    ensure_grader,
    imported_rubric,
    latest_rubric,
    rubric_v1,
    write_rubric_version,
)
from annotate.services.second_look import draw_second_look, drawable, second_look_rubric
from annotate.services.targets import Conflict, NotAssigned, Refused
from annotate.services.warm_up import answer_warm_up, is_warming_up

__all__ = [
    "Answered",
    "Conflict",
    "NotAssigned",
    "Planned",
    "Refused",
    "accept_split",
    "adjudicate",
    "annotate",
    "answer_warm_up",
    "close_round",
    "decline_split",
    "dismiss_rubric_task",
    "draw_audit",
    "draw_second_look",
    "drawable",
    "ensure_grader",
    "finish_audited",
    "flag",
    "forget_audits",
    "imported_rubric",
    "is_warming_up",
    "latest_rubric",
    "mark_claim",
    "new_seed",
    "note_for_rubric",
    "open_for_adjudication",
    "open_round",
    "open_round_with",
    "pause_round",
    "plan_round",
    "propose_split",
    "reassign",
    "reassign_unfinished",
    "record_imported_labels",
    "restore_rubric_task",
    "resume_round",
    "revoke",
    "rubric_v1",
    "second_look_rubric",
    "share_with",
    "skip",
    "split_claim",
    "spread",
    "take_back",
    "take_over_gold",
    "take_split_back",
    "unflag",
    "write_rubric_version",
]
