from django.contrib import admin
from django.contrib.auth import views as auth
from django.contrib.auth.decorators import login_not_required
from django.urls import include, path, re_path
from django.views.i18n import set_language

from config import api, views

urlpatterns = [
    path("", views.home, name="home"),
    path("healthz", views.healthz, name="healthz"),
    path("login/", auth.LoginView.as_view(redirect_authenticated_user=True), name="login"),
    path("logout/", auth.LogoutView.as_view(), name="logout"),
    path("language/", login_not_required(set_language), name="set_language"),
    path("admin/", admin.site.urls),
    path("api/v1/", api.Start.as_view(), name="api"),
    path("api/v1/schema/", api.Schema.as_view(), name="api_schema"),
    path("api/v1/", include("evalsets.api.urls")),
    path("api/v1/", include("annotate.api.urls")),
    path("api/v1/", include("calibration.api.urls")),
    re_path(r"^api(?:/[\s\S]*)?$", api.not_there),
    path("", include("evalsets.urls")),
    path("", include("annotate.urls")),
    path("", include("calibration.urls")),
]

handler400 = "config.api.bad"
handler500 = "config.api.broken"
