"""How far a judge goes: judges, their runs and verdicts, the frozen reports, and what is told of them."""

from calibration.models.alerts import Alert, AlertDelivery
from calibration.models.drift import DriftFinding, SentinelPlan, WarmUpVerdict
from calibration.models.judging import (
    Call,
    Endpoint,
    ExtractionPromptVersion,
    Judge,
    JudgeRun,
    PromptVersion,
    Verdict,
    Worded,
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
    "DriftFinding",
    "Endpoint",
    "ExtractionPromptVersion",
    "GateThresholds",
    "GoldDoubt",
    "Judge",
    "JudgeRun",
    "PromptVersion",
    "SentinelPlan",
    "Summary",
    "Upload",
    "Verdict",
    "VerdictSighting",
    "WarmUpVerdict",
    "Watch",
    "WatchBatch",
    "WatchJudging",
    "WatchMark",
    "Worded",
    "WorkerSighting",
]
