from django.urls import path

from calibration.api import files

app_name = "calibration_api"

VERSION = "evalsets/<slug:slug>/versions/<int:number>/"

urlpatterns = [
    path("imports/", files.Imports.as_view(), name="imports"),
    path("evalsets/<slug:slug>/versions/", files.Versions.as_view(), name="versions"),
    path(f"{VERSION}runs/", files.Runs.as_view(), name="runs"),
]
