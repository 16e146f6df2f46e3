"""The URLs of companies."""

from django.urls import path

from project.directory import views

urlpatterns = [
    path("", views.CompanyList.as_view(), name="companies"),
    path("<str:pk>/", views.CompanyPage.as_view(), name="company"),
]
