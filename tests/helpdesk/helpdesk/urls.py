"""The addresses of the help desk."""

from django.contrib import admin
from django.urls import include, path
from dynamo_single.contrib.accounts.admin import AdminLoginForm, AdminPasswordChangeForm
from dynamo_single.contrib.rest_framework.views import DeleteToken, IssueToken
from rest_framework.routers import SimpleRouter

from desk import api, views

admin.site.login_form = AdminLoginForm
admin.site.password_change_form = AdminPasswordChangeForm

router = SimpleRouter()
router.register("organizations", api.OrganizationViewSet, basename="organization")
router.register("tickets", api.TicketViewSet, basename="ticket")
router.register("comments", api.CommentViewSet, basename="comment")

urlpatterns = [
    path("", views.organizations, name="organizations"),
    path("<str:pk>/board/", views.board, name="board"),
    path("<str:pk>/figures/", views.figures, name="figures"),
    path("tickets/<str:pk>/", views.ticket, name="ticket"),
    path("accounts/", include("dynamo_single.contrib.accounts.urls")),
    path("admin/", admin.site.urls),
    path("api/token/", IssueToken.as_view()),
    path("api/logout/", DeleteToken.as_view()),
    path("api/", include(router.urls)),
]
