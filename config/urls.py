from django.contrib import admin
from django.contrib.auth import views as auth
from django.urls import include, path

from config import views

urlpatterns = [
    path("", views.home, name="home"),
    path("healthz", views.healthz, name="healthz"),
    path("login/", auth.LoginView.as_view(redirect_authenticated_user=True), name="login"),
    path("logout/", auth.LogoutView.as_view(), name="logout"),
    path("admin/", admin.site.urls),
    path("", include("evalsets.urls")),
    path("", include("annotate.urls")),
    path("", include("calibration.urls")),
]
