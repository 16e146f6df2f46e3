"""The URLs of books."""

from django.urls import path

from project.records import views

urlpatterns = [
    path("", views.BookList.as_view(), name="books"),
    path("<str:pk>/", views.BookPage.as_view(), name="book"),
]
