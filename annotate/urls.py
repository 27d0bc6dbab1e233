from django.urls import path

from annotate import views

app_name = "annotate"
urlpatterns = [
    path("grade/<int:round_id>/", views.grade, name="grade"),
    path("grade/<int:round_id>/label/", views.label, name="label"),
    path("grade/<int:round_id>/take-back/", views.take_back, name="take_back"),
    path("grade/<int:round_id>/flag/", views.flag, name="flag"),
    path("grade/<int:round_id>/skip/", views.skip, name="skip"),
    path("grade/<int:round_id>/split/", views.split, name="split"),
    path("grade/<int:round_id>/rubric/", views.grader_rubric, name="grader_rubric"),
]
