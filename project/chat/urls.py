"""The URLs of the chat."""

from django.urls import path

from project.chat import views

urlpatterns = [
    path("", views.ServerList.as_view(), name="servers"),
    path("profiles/<str:pk>/", views.ProfilePage.as_view(), name="profile"),
    path("<str:pk>/members/", views.MemberList.as_view(), name="members"),
    path("<str:pk>/", views.Chat.as_view(), name="chat"),
    path("<str:pk>/post/", views.Post.as_view(), name="post_message"),
]
