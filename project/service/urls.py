"""The URLs of users."""

from django.urls import path

from project.service import views

urlpatterns = [
    path("", views.UserList.as_view(), name="service_users"),
    path("<str:pk>/", views.UserPage.as_view(), name="service_user"),
]
