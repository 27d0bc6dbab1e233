from django.urls import path, re_path

from evalsets import token_pages, views

app_name = "evalsets"

VERSION = "evalsets/<slug:slug>/<int:number>/"

urlpatterns = [
    path("tokens/", token_pages.tokens, name="tokens"),
    path("tokens/<slug:token>/revoke/", token_pages.revoke, name="revoke_token"),
    # "new" and "sample" are pages that span the apps and are served by another one.
    re_path(r"^evalsets/(?!(?:new|sample)/$)(?P<slug>[-a-zA-Z0-9_]+)/$", views.evalset, name="evalset"),
    path("evalsets/<slug:slug>/members/", views.members, name="members"),
    path("evalsets/<slug:slug>/members/<int:pk>/remove/", views.remove_member, name="remove_member"),
    path(VERSION, views.version, name="version"),
    path(f"{VERSION}freeze/", views.freeze, name="freeze"),
    path(f"{VERSION}items/", views.items, name="items"),
    path(f"{VERSION}responses/<int:pk>/", views.response, name="response"),
    path(f"{VERSION}runs/freeze/", views.freeze_runs, name="freeze_runs"),
    path(f"{VERSION}runs/<int:run_number>/freeze/", views.freeze_run, name="freeze_run"),
]
