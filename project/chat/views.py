"""Lists of servers, members and messages, paged by cursor."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib.auth.mixins import LoginRequiredMixin
from django.http import HttpResponse
from django.shortcuts import get_object_or_404
from django.urls import reverse
from django.views.generic import CreateView, DetailView, ListView

from dynamo_single.models import QuerySet
from dynamo_single.pagination import CursorListMixin
from project.chat.models import Member, Message, Profile, Server


class ServerList(CursorListMixin, ListView):  # type: ignore[type-arg]  # not generic at run time
    """A page of servers by name, with the number of members: one Query."""

    queryset = Server.objects.order_by("name")
    paginate_by = 12
    template_name = "chat/servers.html"


class MemberList(CursorListMixin, ListView):  # type: ignore[type-arg]  # not generic at run time
    """A server and a page of its members by name: one GetItem and one Query, however many members there are."""

    paginate_by = 48
    template_name = "chat/members.html"

    def get_queryset(self) -> QuerySet[Any]:
        """Return the server's memberships, which contain the names."""
        self.server = get_object_or_404(Server, pk=self.kwargs["pk"])
        return Member.objects.filter(server=self.server).order_by("username")

    def get_context_data(self, **context: Any) -> dict[str, Any]:
        """Add the server."""
        return super().get_context_data(server=self.server, tab="members", **context)


class ProfilePage(DetailView):  # type: ignore[type-arg]  # not generic at run time
    """A profile with its servers: one GetItem, and one Query and one BatchGetItem for the servers."""

    model = Profile
    template_name = "chat/profile.html"


class MessageForm(forms.ModelForm):  # type: ignore[type-arg]  # not generic at run time
    """A form for the text of a message."""

    class Meta:
        model = Message
        fields = ("text",)
        widgets = {"text": forms.Textarea(attrs={"rows": 3})}  # noqa: RUF012 - as Django declares it


class Chat(CursorListMixin, ListView):  # type: ignore[type-arg]  # not generic at run time
    """A server and a page of its messages, the newest first: one GetItem and one Query."""

    paginate_by = 15
    template_name = "chat/chat.html"

    def get_queryset(self) -> QuerySet[Any]:
        """Return the server's messages, the newest first."""
        self.server = get_object_or_404(Server, pk=self.kwargs["pk"])
        return Message.objects.filter(server=self.server).order_by("-sent_at")

    def get_context_data(self, **context: Any) -> dict[str, Any]:
        """Add the server and a form for a new message."""
        return super().get_context_data(server=self.server, tab="chat", form=MessageForm(), **context)


class Post(LoginRequiredMixin, CreateView):  # type: ignore[type-arg]  # not generic at run time
    """Write a message: one GetItem of the server, and one PutItem."""

    form_class = MessageForm
    http_method_names = ("post",)
    template_name = "chat/post.html"

    def get_context_data(self, **context: Any) -> dict[str, Any]:
        """Add the server, for a form with errors."""
        return super().get_context_data(server=get_object_or_404(Server, pk=self.kwargs["pk"]), **context)

    def form_valid(self, form: Any) -> HttpResponse:
        """Save the message on this server with the current user as its author."""
        form.instance.server = get_object_or_404(Server, pk=self.kwargs["pk"])
        form.instance.author = self.request.user.get_username()
        return super().form_valid(form)

    def get_success_url(self) -> str:
        """Return the URL of the newest messages."""
        return reverse("chat", kwargs=self.kwargs)
