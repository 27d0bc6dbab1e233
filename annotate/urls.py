from django.urls import path

from annotate.views import adjudication, audit, grading, rounds

app_name = "annotate"

VERSION = "evalsets/<slug:slug>/<int:number>/"
ROUND = f"{VERSION}rounds/<int:round_number>/"
DISAGREEMENTS = f"{VERSION}disagreements/"
AUDIT = f"{VERSION}audit/<int:sample_number>/"

urlpatterns = [
    path("grade/<int:round_id>/", grading.grade, name="grade"),
    path("grade/<int:round_id>/label/", grading.label, name="label"),
    path("grade/<int:round_id>/take-back/", grading.take_back, name="take_back"),
    path("grade/<int:round_id>/flag/", grading.flag, name="flag"),
    path("grade/<int:round_id>/skip/", grading.skip, name="skip"),
    path("grade/<int:round_id>/split/", grading.split, name="split"),
    path("grade/<int:round_id>/rubric/", grading.grader_rubric, name="grader_rubric"),
    path(f"{VERSION}rounds/", rounds.rounds, name="rounds"),
    path(f"{VERSION}rounds/new/", rounds.open_round, name="open_round"),
    path(ROUND, rounds.round, name="round"),
    path(f"{ROUND}move/", rounds.move_round, name="move_round"),
    path(f"{ROUND}reassign/", rounds.reassign, name="reassign"),
    path(f"{VERSION}rubric/", rounds.rubric, name="rubric"),
    path(f"{VERSION}audit/", audit.audits, name="audits"),
    path(f"{AUDIT}<int:position>/", audit.audited, name="audited"),
    path(f"{AUDIT}<int:position>/mark/", audit.mark, name="mark_claim"),
    path(f"{AUDIT}<int:position>/finish/", audit.finish, name="finish_audited"),
    path(DISAGREEMENTS, adjudication.list_disagreements, name="disagreements"),
    path(
        f"{DISAGREEMENTS}<int:round_number>/<str:dimension>/<int:target>/",
        adjudication.adjudicate,
        name="adjudicate",
    ),
    path(
        f"{DISAGREEMENTS}<int:round_number>/splits/<int:split>/decide/",
        adjudication.decide_split,
        name="decide_split",
    ),
]
