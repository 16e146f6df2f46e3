"""The demo's URLs: the public site, the admin and the account pages."""

from django.contrib import admin
from django.urls import include, path

from dynamo_single.contrib.accounts.admin import AdminLoginForm, AdminPasswordChangeForm
from project.site.mails import MailsPage
from project.site.views import FrontPage

admin.site.login_form = AdminLoginForm
admin.site.password_change_form = AdminPasswordChangeForm

urlpatterns = [
    path("", FrontPage.as_view(), name="front"),
    path("companies/", include("project.directory.urls")),
    path("books/", include("project.records.urls")),
    path("users/", include("project.service.urls")),
    path("servers/", include("project.chat.urls")),
    path("mails/", MailsPage.as_view(), name="mails"),
    path("admin/", admin.site.urls),
    path("accounts/", include("dynamo_single.contrib.accounts.urls")),
]
