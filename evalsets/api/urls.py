from django.urls import path

from evalsets.api import views

app_name = "evalsets_api"

VERSION = "evalsets/<slug:slug>/versions/<int:number>/"

urlpatterns = [
    path("evalsets/", views.EvalSets.as_view(), name="evalsets"),
    path("evalsets/<slug:slug>/", views.EvalSet.as_view(), name="evalset"),
    path("evalsets/<slug:slug>/members/", views.Members.as_view(), name="members"),
    path("evalsets/<slug:slug>/members/<int:member>/", views.Member.as_view(), name="member"),
    path("evalsets/<slug:slug>/systems/", views.Systems.as_view(), name="systems"),
    path(VERSION, views.Version.as_view(), name="version"),
    path(f"{VERSION}freeze/", views.FreezeVersion.as_view(), name="freeze"),
    path(f"{VERSION}composition/", views.Composition.as_view(), name="composition"),
    path(f"{VERSION}items/", views.Items.as_view(), name="items"),
    path(f"{VERSION}runs/<int:run_number>/", views.Run.as_view(), name="run"),
    path(f"{VERSION}runs/<int:run_number>/freeze/", views.FreezeRun.as_view(), name="freeze_run"),
    path(f"{VERSION}responses/", views.Responses.as_view(), name="responses"),
]
