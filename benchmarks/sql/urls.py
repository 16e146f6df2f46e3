"""The two pages that are measured: the admin, and Django's login."""

from django.contrib import admin
from django.contrib.auth.views import LoginView
from django.urls import path

urlpatterns = [
    path("admin/", admin.site.urls),
    path("accounts/login/", LoginView.as_view(template_name="admin/login.html"), name="login"),
]
