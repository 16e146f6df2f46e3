"""Django's own login views, and a page that shows the current user."""

from __future__ import annotations

from django.contrib.auth import views
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.urls import path


def whoami(request: HttpRequest) -> HttpResponse:
    """The user's name."""
    return HttpResponse(request.user.get_username() or "nobody")


urlpatterns = [
    path("login/", views.LoginView.as_view(template_name="form.html", next_page="/me/"), name="login"),
    path("logout/", views.LogoutView.as_view(next_page="/me/"), name="logout"),
    path("password/", views.PasswordChangeView.as_view(template_name="form.html", success_url="/me/"), name="password"),
    path("me/", whoami),
    path("private/", login_required(whoami)),
]
