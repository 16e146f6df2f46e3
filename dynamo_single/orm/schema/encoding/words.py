"""What is wrong with a value, for the people who fill in a form: in their language, and without names of Python's.

The message of an error names attributes and types for programmers. This module must not know what is refused.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy
from django.utils.translation import gettext_lazy as _
from msgspec import Struct

#: Sentences that several places have.
HAS_TO_HAVE_VALUE = _("“%(name)s” has to have a value.")
NESTED_TOO_DEEP = _("This is nested deeper than %(levels)d levels.")
#: What stands between the name of an attribute and a place in its value.
_INSIDE = re.compile(r"__|[.\[]")


def gettext_noop(message: str) -> str:
    """The same text, which ``makemessages`` finds by this name; Django's function asks for the settings."""
    return message


class Words(Struct, frozen=True):
    """A template of Django's lazy translations, and the values in it; a text once it is needed."""

    template: str | Promise
    values: Mapping[str, object]

    def __str__(self) -> str:
        """In the language that is active."""
        return str(self.template) % self.values


def words(template: str | Promise, **values: object) -> Words:
    """A sentence; values may be lazy translations too."""
    return Words(template, values)


def words_at(path: str, template: str | Promise, **values: object) -> Words:
    """A sentence about a place: after the path to it, if it lies inside of a value; a form's field names the rest."""
    found = Words(template, values)
    return found if _INSIDE.search(path) is None else Words("%(path)s: %(text)s", {"path": path, "text": found})


def expecting(expects: str, path: str = "") -> Words:
    """What a value of the wrong kind is refused with; what is expected is looked up in the translations as well."""
    return words_at(path, _("This has to be %(expects)s."), expects=gettext_lazy(expects))
