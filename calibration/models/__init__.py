"""How far a judge goes: judges, their runs and verdicts, the frozen reports, and what is told of them."""

from calibration.models.alerts import Alert, AlertDelivery
from calibration.models.judging import (
    Call,
    Endpoint,
    Judge,
    JudgeRun,
    JudgingRuns,
    PromptVersion,
    Verdict,
    WorkerSighting,
)
from calibration.models.trust import (
    CalibrationReport,
    CalibrationSplit,
    GateThresholds,
    GoldDoubt,
    Summary,
    VerdictSighting,
)
from calibration.models.uploads import Upload
from calibration.models.watches import Watch, WatchBatch, WatchJudging, WatchMark

__all__ = [
    "Alert",
    "AlertDelivery",
    "CalibrationReport",
    "CalibrationSplit",
    "Call",
    "Endpoint",
    "GateThresholds",
    "GoldDoubt",
    "Judge",
    "JudgeRun",
    "JudgingRuns",
    "PromptVersion",
    "Summary",
    "Upload",
    "Verdict",
    "VerdictSighting",
    "Watch",
    "WatchBatch",
    "WatchJudging",
    "WatchMark",
    "WorkerSighting",
]
