"""The demo's e-mails and SMS messages. The server prints them and keeps them for a page of the demo."""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.conf import settings
from django.core.mail import EmailMessage
from django.core.mail.backends.console import EmailBackend as ConsoleBackend
from django.http import Http404
from django.views.generic import TemplateView

from dynamo_single.clock import now


@dataclass(frozen=True, slots=True)
class Sent:
    """An e-mail, or an SMS message, which has no subject."""

    at: datetime
    to: str
    subject: str
    body: str


#: The last messages that this process sent. A restart of the server clears them.
outbox: deque[Sent] = deque(maxlen=50)


class EmailBackend(ConsoleBackend):
    """Print e-mails like Django's console backend, and keep the last 50."""

    def send_messages(self, email_messages: Sequence[EmailMessage]) -> int:
        """Return the number of printed e-mails."""
        for message in email_messages:
            outbox.append(Sent(now(), ", ".join(message.to), str(message.subject), str(message.body)))
        return super().send_messages(email_messages) or 0


def show(number: str, text: str) -> None:
    """Print and keep an SMS message instead of sending it."""
    outbox.append(Sent(now(), number, "", text))
    sys.stdout.write(f"\nText to {number}: {text}\n")
    sys.stdout.flush()


class MailsPage(TemplateView):
    """The last e-mails and SMS messages, with their links. Sends no requests. Returns 404 unless ``DEBUG`` is set."""

    template_name = "site/mails.html"

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        """Add the messages, the newest first."""
        if not settings.DEBUG:
            raise Http404("The e-mails of the demo contain links to accounts, so this page exists only with DEBUG.")
        return super().get_context_data(**kwargs, sent=list(reversed(outbox)))
