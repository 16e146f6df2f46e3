"""The demo's addresses: the admin, the way there, and the account pages."""

from django.contrib import admin
from django.urls import include, path
from django.views.generic import RedirectView

from accounts.admin import AdminLoginForm, AdminPasswordChangeForm

admin.site.login_form = AdminLoginForm
admin.site.password_change_form = AdminPasswordChangeForm

urlpatterns = [
    path("", RedirectView.as_view(pattern_name="admin:index")),
    path("admin/", admin.site.urls),
    path("accounts/", include("accounts.urls")),
]
