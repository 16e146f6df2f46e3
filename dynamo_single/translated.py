"""Sentences that are English in messages, logs and on a terminal, and translated on a page.

Templates are marked with ``gettext_noop``, so that ``makemessages`` finds them.
"""

from __future__ import annotations

from collections.abc import Mapping

from django.utils.translation import gettext
from msgspec import Struct


class Sentence(Struct, frozen=True):
    """A template with placeholders such as ``%(name)s``, and its values, which may be sentences.

    A template that only joins its values has no words to translate (``has_words``).
    """

    template: str
    values: Mapping[str, object]
    has_words: bool = True

    def __str__(self) -> str:
        """Return the sentence in English."""
        return self.template % self.values if self.values else self.template

    def translated(self) -> str:
        """Return the sentence in the active language."""
        values = {name: each.translated() if isinstance(each, Sentence) else each for name, each in self.values.items()}
        template = gettext(self.template) if self.has_words else self.template
        return template % values if values else template


def sentence(template: str, **values: object) -> Sentence:
    """Return a sentence, whose template the caller marks with ``gettext_noop``."""
    return Sentence(template, values)


def literal(text: str) -> Sentence:
    """Return a string that is not translated, such as the message of an error."""
    return Sentence("%(text)s", {"text": text}, has_words=False)


def joined(found: list[Sentence], between: str = ", ") -> Sentence:
    """Return several sentences as one."""
    template = between.join(f"%(part{number})s" for number in range(len(found)))
    return Sentence(template, {f"part{number}": each for number, each in enumerate(found)}, has_words=False)
