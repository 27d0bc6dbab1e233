from django.urls import path

from annotate.views import adjudication, audit, decisions, grading, rounds, rubric, second_looks, warm_up

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
    path("grade/<int:round_id>/advance/", grading.advance, name="advance"),
    path("grade/<int:round_id>/warm-up/", warm_up.warm_up, name="warm_up"),
    path("grade/<int:round_id>/rubric/", grading.grader_rubric, name="grader_rubric"),
    path(f"{VERSION}rounds/", rounds.rounds, name="rounds"),
    path(f"{VERSION}rounds/new/", rounds.open_round, name="open_round"),
    path(ROUND, rounds.round, name="round"),
    path(f"{ROUND}warm-up/", warm_up.warm_up_results, name="warm_up_results"),
    path(f"{ROUND}responses/", rounds.round_responses, name="round_responses"),
    path(f"{ROUND}move/", rounds.move_round, name="move_round"),
    path(f"{ROUND}reassign/", rounds.reassign, name="reassign"),
    path(f"{ROUND}second-look/", second_looks.draw_second_look, name="draw_second_look"),
    path(f"{VERSION}rubric/", rubric.rubric, name="rubric"),
    path(f"{VERSION}rubric/new/", rubric.new_rubric, name="new_rubric"),
    path(f"{VERSION}rubric/<int:rubric_number>/", rubric.rubric_version, name="rubric_version"),
    path(f"{VERSION}rubric/<int:earlier>/changes/<int:later>/", rubric.rubric_changes, name="rubric_changes"),
    path(f"{VERSION}rubric/notes/<int:task>/", rubric.move_rubric_task, name="move_rubric_task"),
    path(f"{VERSION}audit/", audit.audits, name="audits"),
    path(f"{AUDIT}<int:position>/", audit.audited, name="audited"),
    path(f"{AUDIT}<int:position>/mark/", audit.mark, name="mark_claim"),
    path(f"{AUDIT}<int:position>/finish/", audit.finish, name="finish_audited"),
    path(DISAGREEMENTS, adjudication.list_disagreements, name="disagreements"),
    path(
        f"{DISAGREEMENTS}<int:round_number>/<str:dimension>/<str:target>/",
        adjudication.adjudicate,
        name="adjudicate",
    ),
    path(
        f"{DISAGREEMENTS}<int:round_number>/splits/<int:split>/decide/",
        adjudication.decide_split,
        name="decide_split",
    ),
    path(
        f"{DISAGREEMENTS}<int:round_number>/splits/<int:split>/take-back/",
        adjudication.take_split_back,
        name="take_split_back",
    ),
    path(
        f"{DISAGREEMENTS}<int:round_number>/claims/<int:claim>/split/",
        adjudication.split_claim,
        name="split_claim",
    ),
    path(
        f"{DISAGREEMENTS}<int:round_number>/decisions/<int:decision>/revoke/",
        adjudication.revoke,
        name="revoke",
    ),
    path(f"{DISAGREEMENTS}log/", decisions.log, name="decisions"),
    path(f"{DISAGREEMENTS}log.csv", decisions.log_csv, name="decisions_csv"),
]
