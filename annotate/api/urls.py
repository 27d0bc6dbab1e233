from django.urls import path

from annotate.api import audits, lead, own, rubrics

app_name = "annotate_api"

VERSION = "evalsets/<slug:slug>/versions/<int:number>/"
ROUND = f"{VERSION}rounds/<int:round_number>/"
CASE = f"{VERSION}disagreements/<int:round_number>/<str:dimension>/<str:target>/"
SPLIT = f"{ROUND}splits/<int:split>/"
RUBRIC = f"{VERSION}rubric/"
NOTE = f"{RUBRIC}notes/<int:task>/"
SAMPLE = f"{VERSION}claim-audit/samples/<int:sample_number>/responses/"
AUDITED = f"{SAMPLE}<int:position>/"
OWN = "my/rounds/<int:round_id>/"

urlpatterns = [
    path(f"{VERSION}rounds/", lead.Rounds.as_view(), name="rounds"),
    path(ROUND, lead.OneRound.as_view(), name="round"),
    path(f"{ROUND}pause/", lead.PauseRound.as_view(), name="pause_round"),
    path(f"{ROUND}resume/", lead.ResumeRound.as_view(), name="resume_round"),
    path(f"{ROUND}close/", lead.CloseRound.as_view(), name="close_round"),
    path(f"{ROUND}second-look/", lead.SecondLook.as_view(), name="draw_second_look"),
    path(f"{ROUND}warm-up/", lead.WarmUpResults.as_view(), name="warm_up_results"),
    path(f"{VERSION}disagreements/", lead.Disagreements.as_view(), name="disagreements"),
    path(CASE, lead.OneCase.as_view(), name="case"),
    path(f"{CASE}open/", lead.OpenCase.as_view(), name="open_case"),
    path(f"{VERSION}adjudications/", lead.Decisions.as_view(), name="decisions"),
    path(f"{VERSION}adjudications/<int:entry>/revoke/", lead.Revoke.as_view(), name="revoke"),
    path(f"{ROUND}reassign/", lead.Reassign.as_view(), name="reassign"),
    path(f"{ROUND}splits/", lead.Splits.as_view(), name="splits"),
    path(f"{SPLIT}accept/", lead.AcceptSplit.as_view(), name="accept_split"),
    path(f"{SPLIT}decline/", lead.DeclineSplit.as_view(), name="decline_split"),
    path(f"{SPLIT}take-back/", lead.TakeSplitBack.as_view(), name="take_split_back"),
    path(f"{RUBRIC}versions/", rubrics.RubricVersions.as_view(), name="rubric_versions"),
    path(f"{RUBRIC}versions/<int:rubric_number>/", rubrics.OneRubricVersion.as_view(), name="rubric_version"),
    path(f"{RUBRIC}changes/", rubrics.RubricChanges.as_view(), name="rubric_changes"),
    path(f"{RUBRIC}notes/", rubrics.RubricNotes.as_view(), name="rubric_notes"),
    path(f"{NOTE}dismiss/", rubrics.DismissNote.as_view(), name="dismiss_note"),
    path(f"{NOTE}restore/", rubrics.RestoreNote.as_view(), name="restore_note"),
    path(f"{VERSION}claim-audit/samples/", audits.AuditSamples.as_view(), name="audit_samples"),
    path(SAMPLE, audits.AuditSample.as_view(), name="audit_sample"),
    path(AUDITED, audits.Audited.as_view(), name="audited"),
    path(f"{AUDITED}marks/", audits.MarkClaim.as_view(), name="mark_claim"),
    path(f"{AUDITED}finish/", audits.FinishAudited.as_view(), name="finish_audited"),
    path("my/rounds/", own.OwnRounds.as_view(), name="own_rounds"),
    path(f"{OWN}assignments/", own.OwnAssignments.as_view(), name="own_assignments"),
    path(f"{OWN}assignments/<int:assignment>/", own.OneAssignment.as_view(), name="own_assignment"),
    path(f"{OWN}assignments/<int:assignment>/annotations/", own.Label.as_view(), name="label"),
    path(f"{OWN}annotations/", own.OwnLabels.as_view(), name="own_labels"),
    path(f"{OWN}take-back/", own.TakeBack.as_view(), name="take_back"),
]
