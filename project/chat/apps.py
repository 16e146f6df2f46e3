"""The chat."""

from django.apps import AppConfig


class ChatConfig(AppConfig):
    """Servers, their members and messages."""

    name = "project.chat"
    verbose_name = "Chat"
