from django.urls import path

from calibration.api import (
    comparing,
    drifting,
    extracting,
    figures,
    files,
    gold,
    judging,
    summarising,
    trusting,
    watching,
)

app_name = "calibration_api"

EVALSET = "evalsets/<slug:slug>/"
VERSION = f"{EVALSET}versions/<int:number>/"
ALERT = f"{EVALSET}alerts/<int:alert>/"
RUN = f"{VERSION}judge-runs/<int:run>/"
EXTRACTION = f"{VERSION}extractions/<int:extraction>/"
WATCH = f"{VERSION}watches/<slug:watch>/"

urlpatterns = [
    path("methods/", figures.Methods.as_view(), name="methods"),
    path("imports/", files.Imports.as_view(), name="imports"),
    path("samples/", files.Samples.as_view(), name="samples"),
    path(f"{EVALSET}versions/", files.Versions.as_view(), name="versions"),
    path(f"{EVALSET}alerts/", trusting.Alerts.as_view(), name="alerts"),
    path(f"{ALERT}acknowledge/", trusting.AcknowledgeAlert.as_view(), name="acknowledge_alert"),
    path(f"{ALERT}reopen/", trusting.ReopenAlert.as_view(), name="reopen_alert"),
    path(f"{ALERT}send/", trusting.SendAlertAgain.as_view(), name="send_alert_again"),
    path(f"{VERSION}runs/", files.Runs.as_view(), name="runs"),
    path(f"{VERSION}labels/", files.Labels.as_view(), name="labels"),
    path(f"{VERSION}export/", gold.Export.as_view(), name="export"),
    path(f"{VERSION}extractions/", extracting.Extractions.as_view(), name="extractions"),
    path(EXTRACTION, extracting.Extraction.as_view(), name="extraction"),
    path(f"{EXTRACTION}stop/", extracting.StopExtraction.as_view(), name="stop_extraction"),
    path(f"{EXTRACTION}resume/", extracting.ResumeExtraction.as_view(), name="resume_extraction"),
    path(f"{EXTRACTION}cancel/", extracting.CancelExtraction.as_view(), name="cancel_extraction"),
    path(f"{EXTRACTION}answers/", extracting.Answers.as_view(), name="extraction_answers"),
    path(f"{VERSION}judges/", judging.Judges.as_view(), name="judges"),
    path(f"{VERSION}judges/panels/", judging.Panels.as_view(), name="panels"),
    path(f"{VERSION}judges/baselines/", judging.Baselines.as_view(), name="baselines"),
    path(f"{VERSION}judge-warm-up/", drifting.JudgeWarmUp.as_view(), name="judge_warm_up"),
    path(f"{VERSION}judge-runs/", judging.JudgeRuns.as_view(), name="judge_runs"),
    path(RUN, judging.Run.as_view(), name="judge_run"),
    path(f"{RUN}stop/", judging.StopRun.as_view(), name="stop_judge_run"),
    path(f"{RUN}resume/", judging.ResumeRun.as_view(), name="resume_judge_run"),
    path(f"{RUN}verdicts/", judging.Verdicts.as_view(), name="verdicts"),
    path(f"{RUN}reports/", figures.Reports.as_view(), name="reports"),
    path(f"{RUN}reports/<int:report>/", figures.Report.as_view(), name="report"),
    path(f"{RUN}drift/", drifting.Drift.as_view(), name="drift"),
    path(f"{RUN}drift/findings/", drifting.Findings.as_view(), name="findings"),
    path(f"{RUN}drift/plan/", drifting.SentinelPlans.as_view(), name="sentinel_plan"),
    path(f"{RUN}drift/plan/end/", drifting.EndSentinelPlan.as_view(), name="end_sentinel_plan"),
    path(f"{RUN}drift/runs/", drifting.SentinelRuns.as_view(), name="sentinel_runs"),
    path(f"{VERSION}trust/", trusting.Trust.as_view(), name="trust"),
    path(f"{VERSION}trust/designs/", trusting.Designs.as_view(), name="designs"),
    path(f"{VERSION}agreement/", figures.Agreement.as_view(), name="agreement"),
    path(
        f"{VERSION}agreement/second-looks/<int:round_number>/",
        comparing.SecondLook.as_view(),
        name="second_look",
    ),
    path(f"{VERSION}check/", figures.Check.as_view(), name="check"),
    path(f"{VERSION}rates/", figures.Rates.as_view(), name="rates"),
    path(f"{VERSION}rates/pairs/", comparing.Pairs.as_view(), name="pairs"),
    path(f"{VERSION}rates/comparison/", comparing.Comparison.as_view(), name="comparison"),
    path(f"{VERSION}rates/retrieval/", comparing.Retrieval.as_view(), name="retrieval"),
    path(f"{VERSION}rates/retrieval/wrong-answers/", comparing.WrongAnswers.as_view(), name="wrong_answers"),
    path(f"{VERSION}claim-audit/", comparing.ClaimAudit.as_view(), name="claim_audit"),
    path(f"{VERSION}plan/", comparing.Plan.as_view(), name="plan"),
    path(f"{VERSION}summaries/", summarising.Summaries.as_view(), name="summaries"),
    path(f"{VERSION}summaries/<int:summary>/", summarising.OneSummary.as_view(), name="summary"),
    path(f"{VERSION}watches/", watching.Watches.as_view(), name="watches"),
    path(WATCH, watching.OneWatch.as_view(), name="watch"),
    path(f"{WATCH}series/", watching.Series.as_view(), name="series"),
    path(f"{WATCH}batches/", watching.Batches.as_view(), name="batches"),
    path(f"{WATCH}batches/<str:day>/", watching.Batch.as_view(), name="batch"),
    path(f"{WATCH}judge/", watching.JudgeAgain.as_view(), name="judge_batches"),
    path(f"{WATCH}marks/", watching.Marks.as_view(), name="marks"),
    path(f"{WATCH}marks/<int:mark>/", watching.Mark.as_view(), name="mark"),
    path(f"{VERSION}gold/", gold.Gold.as_view(), name="gold"),
    path(f"{VERSION}gold/edited/", gold.EditedGold.as_view(), name="edited_gold"),
    path(f"{VERSION}gold/files/<str:file>", gold.GoldFile.as_view(), name="gold_file"),
]
