from django.urls import path

from calibration.views import (
    agreement,
    alerts,
    audit,
    claims,
    compare,
    exchange,
    extractions,
    gold,
    judges,
    method,
    panels,
    prompts,
    rates,
    report,
    retrieval,
    second_look,
    summary,
    trust,
    watch,
)

app_name = "calibration"

ALERT = "evalsets/<slug:slug>/alerts/<int:alert>"
VERSION = "evalsets/<slug:slug>/<int:number>"
JUDGE_RUN = f"{VERSION}/judges/runs/<int:run>"
WATCH = f"{VERSION}/watches/<slug:watch>"
EXTRACTION = f"{VERSION}/extractions/<int:extraction>"
RESPONSE = f"{VERSION}/claims/responses/<int:pk>"
REPORT = f"{JUDGE_RUN}/calibration/<slug:dimension>"

urlpatterns = [
    path("method/", method.method, name="method"),
    path("evalsets/<slug:slug>/alerts/", alerts.alerts, name="alerts"),
    path(f"{ALERT}/acknowledge/", alerts.acknowledge_alert, name="acknowledge_alert"),
    path(f"{ALERT}/reopen/", alerts.reopen_alert, name="reopen_alert"),
    path(f"{ALERT}/send/", alerts.send_alert_again, name="send_alert_again"),
    path("evalsets/new/", exchange.upload, name="upload"),
    path(f"{VERSION}/responses/new/", exchange.upload_responses, name="upload_responses"),
    path(f"{VERSION}/export/", exchange.export_version, name="export_version"),
    path(f"{VERSION}/agreement/", agreement.agreement, name="agreement"),
    path(
        f"{VERSION}/agreement/<slug:picture>.<slug:kind>", agreement.agreement_chart, name="agreement_chart"
    ),
    path(f"{VERSION}/trust/", trust.trust, name="trust"),
    path(f"{VERSION}/trust/thresholds/", trust.change_thresholds, name="change_thresholds"),
    path(f"{VERSION}/trust/design/", trust.change_design, name="change_design"),
    path(
        f"{VERSION}/agreement/second-looks/<int:round_number>/", second_look.second_look, name="second_look"
    ),
    path(f"{VERSION}/judges/", judges.judges, name="judges"),
    path(f"{VERSION}/judges/panels/new/", panels.new_panel, name="new_panel"),
    path(f"{VERSION}/judges/baselines/", panels.run_baselines, name="run_baselines"),
    path(f"{VERSION}/judges/new/", judges.new_judge, name="new_judge"),
    path(f"{VERSION}/judges/<int:judge>/prices/", judges.judge_prices, name="judge_prices"),
    path(f"{VERSION}/judges/prompts/", prompts.prompts, name="prompts"),
    path(f"{VERSION}/judges/prompts/new/", prompts.new_prompt, name="new_prompt"),
    path(f"{VERSION}/judges/confirm/", judges.confirm_judge_run, name="confirm_judge_run"),
    path(f"{VERSION}/judges/start/", judges.start_judge_run, name="start_judge_run"),
    path(f"{JUDGE_RUN}/", judges.judge_run, name="judge_run"),
    path(f"{JUDGE_RUN}/progress/", judges.progress, name="judge_run_progress"),
    path(f"{JUDGE_RUN}/stop/", judges.stop_judge_run, name="stop_judge_run"),
    path(f"{JUDGE_RUN}/resume/", judges.resume_judge_run, name="resume_judge_run"),
    path(f"{JUDGE_RUN}/verdicts/", judges.verdicts, name="verdicts"),
    path(f"{REPORT}/", report.report, name="report"),
    path(f"{REPORT}/build/", report.build, name="build_report"),
    path(f"{REPORT}/cases/", report.cases, name="report_cases"),
    path(f"{REPORT}/cases/doubt/", report.doubt, name="doubt_gold"),
    path(f"{REPORT}/<int:report>/kappa.<slug:kind>", report.kappa_chart, name="kappa_chart"),
    path(f"{VERSION}/claims/", claims.claims, name="claims"),
    path(f"{VERSION}/claims/runs/<int:run_number>/", claims.run_claims, name="run_claims"),
    path(f"{RESPONSE}/", claims.response_claims, name="response_claims"),
    path(f"{RESPONSE}/add/", claims.add, name="add_claim"),
    path(f"{RESPONSE}/<int:claim>/change/", claims.change, name="change_claim"),
    path(f"{RESPONSE}/<int:claim>/remove/", claims.remove, name="remove_claim"),
    path(f"{VERSION}/extractions/", extractions.extractions, name="extractions"),
    path(f"{VERSION}/extractions/confirm/", extractions.confirm_extraction, name="confirm_extraction"),
    path(f"{VERSION}/extractions/start/", extractions.start, name="start_extraction"),
    path(f"{EXTRACTION}/", extractions.extraction_run, name="extraction_run"),
    path(f"{EXTRACTION}/progress/", extractions.progress, name="extraction_progress"),
    path(f"{EXTRACTION}/stop/", extractions.stop, name="stop_extraction"),
    path(f"{EXTRACTION}/resume/", extractions.resume, name="resume_extraction"),
    path(f"{EXTRACTION}/cancel/", extractions.cancel, name="cancel_extraction"),
    path(f"{EXTRACTION}/answers/", extractions.answers, name="extraction_answers"),
    path(f"{VERSION}/audit/result/", audit.extraction, name="extraction"),
    path(f"{VERSION}/rates/", rates.rates, name="rates"),
    path(f"{VERSION}/rates/<slug:picture>.<slug:kind>", rates.rates_chart, name="rates_chart"),
    path(f"{VERSION}/rates/retrieval/", retrieval.retrieval, name="retrieval"),
    path(f"{VERSION}/rates/compare/", compare.compare, name="compare"),
    path(f"{VERSION}/rates/compare/<slug:picture>.<slug:kind>", compare.compare_chart, name="compare_chart"),
    path(f"{VERSION}/summaries/", summary.summaries, name="summaries"),
    path(f"{VERSION}/summaries/build/", summary.build, name="build_summary"),
    path(f"{VERSION}/summaries/<int:summary>/", summary.summary, name="summary"),
    path(f"{VERSION}/summaries/<int:summary>.html", summary.summary_file, name="summary_file"),
    path(f"{VERSION}/summaries/<int:summary>.json", summary.summary_json, name="summary_json"),
    path(f"{VERSION}/watches/", watch.watches, name="watches"),
    path(f"{WATCH}/", watch.watch, name="watch"),
    path(f"{WATCH}/batches/", watch.add_batch, name="add_batch"),
    path(f"{WATCH}/judge/", watch.judge_again, name="judge_batches"),
    path(f"{WATCH}/marks/", watch.mark, name="watch_mark"),
    path(f"{WATCH}/marks/<int:mark>/remove/", watch.unmark, name="watch_unmark"),
    path(f"{WATCH}/series.<slug:kind>", watch.watch_chart, name="watch_chart"),
    path(f"{VERSION}/gold/", gold.gold, name="gold"),
    path(f"{VERSION}/gold/download/", gold.gold_download, name="gold_download"),
]
