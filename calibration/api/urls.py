from django.urls import path

from calibration.api import figures, files, gold, judging

app_name = "calibration_api"

VERSION = "evalsets/<slug:slug>/versions/<int:number>/"
RUN = f"{VERSION}judge-runs/<int:run>/"

urlpatterns = [
    path("methods/", figures.Methods.as_view(), name="methods"),
    path("imports/", files.Imports.as_view(), name="imports"),
    path("evalsets/<slug:slug>/versions/", files.Versions.as_view(), name="versions"),
    path(f"{VERSION}runs/", files.Runs.as_view(), name="runs"),
    path(f"{VERSION}export/", gold.Export.as_view(), name="export"),
    path(f"{VERSION}judges/", judging.Judges.as_view(), name="judges"),
    path(f"{VERSION}judge-runs/", judging.JudgeRuns.as_view(), name="judge_runs"),
    path(RUN, judging.Run.as_view(), name="judge_run"),
    path(f"{RUN}stop/", judging.StopRun.as_view(), name="stop_judge_run"),
    path(f"{RUN}resume/", judging.ResumeRun.as_view(), name="resume_judge_run"),
    path(f"{RUN}verdicts/", judging.Verdicts.as_view(), name="verdicts"),
    path(f"{RUN}reports/", figures.Reports.as_view(), name="reports"),
    path(f"{RUN}reports/<int:report>/", figures.Report.as_view(), name="report"),
    path(f"{VERSION}agreement/", figures.Agreement.as_view(), name="agreement"),
    path(f"{VERSION}check/", figures.Check.as_view(), name="check"),
    path(f"{VERSION}rates/", figures.Rates.as_view(), name="rates"),
    path(f"{VERSION}gold/", gold.Gold.as_view(), name="gold"),
    path(f"{VERSION}gold/files/<str:file>", gold.GoldFile.as_view(), name="gold_file"),
]
