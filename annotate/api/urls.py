from django.urls import path

from annotate.api import lead, own

app_name = "annotate_api"

VERSION = "evalsets/<slug:slug>/versions/<int:number>/"
ROUND = f"{VERSION}rounds/<int:round_number>/"
CASE = f"{VERSION}disagreements/<int:round_number>/<str:dimension>/<str:target>/"
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
    path("my/rounds/", own.OwnRounds.as_view(), name="own_rounds"),
    path(f"{OWN}assignments/", own.OwnAssignments.as_view(), name="own_assignments"),
    path(f"{OWN}assignments/<int:assignment>/", own.OneAssignment.as_view(), name="own_assignment"),
    path(f"{OWN}assignments/<int:assignment>/annotations/", own.Label.as_view(), name="label"),
    path(f"{OWN}annotations/", own.OwnLabels.as_view(), name="own_labels"),
    path(f"{OWN}take-back/", own.TakeBack.as_view(), name="take_back"),
]
