from django.urls import path

from annotate.views import adjudication, grading, rounds

app_name = "annotate"

VERSION = "evalsets/<slug:slug>/<int:number>/"
ROUND = f"{VERSION}rounds/<int:round_number>/"
DISAGREEMENTS = f"{VERSION}disagreements/"

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
