"""Sentences that are English in messages, logs and on a terminal, and in a reader's language on a page.

A template is marked by ``gettext_noop``, so that ``makemessages`` finds it.
"""

from __future__ import annotations

from collections.abc import Mapping

from django.utils.translation import gettext
from msgspec import Struct


class Sentence(Struct, frozen=True):
    """A template of ``%(name)s`` and the values in it, which may be sentences themselves.

    A template ``has_words`` unless it only puts other things together.
    """

    template: str
    values: Mapping[str, object]
    has_words: bool = True

    def __str__(self) -> str:
        """In English."""
        return self.template % self.values if self.values else self.template

    def translated(self) -> str:
        """In the language that is active."""
        values = {name: each.translated() if isinstance(each, Sentence) else each for name, each in self.values.items()}
        template = gettext(self.template) if self.has_words else self.template
        return template % values if values else template


def sentence(template: str, **values: object) -> Sentence:
    """A sentence; the template goes through ``gettext_noop`` where it is written."""
    return Sentence(template, values)


def literal(text: str) -> Sentence:
    """A text in no language of ours, as an error's own message."""
    return Sentence("%(text)s", {"text": text}, has_words=False)


def joined(found: list[Sentence], between: str = ", ") -> Sentence:
    """Several sentences, one after the other."""
    template = between.join(f"%(part{number})s" for number in range(len(found)))
    return Sentence(template, {f"part{number}": each for number, each in enumerate(found)}, has_words=False)
