"""The attribute that keeps a text a second time, in a form that can be compared without regard to case.

DynamoDB compares bytes, so what is to be found whatever its case has to be stored so. This module must not know how or
when items are written.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Literal, Self, overload

from django.utils.functional import Promise

from dynamo_single.exceptions import ConfigurationError
from dynamo_single.orm.schema.attributes.base import Label
from dynamo_single.orm.schema.attributes.following import FollowingAttribute
from dynamo_single.orm.schema.attributes.scalars import UnicodeAttribute
from dynamo_single.orm.schema.encoding.codecs import canonical


def letters(text: str) -> str:
    """Give a text's letters, digits and underscores without case, accents and all that stands between them.

    Marks that are letters of their script (vowel signs, nukta, virama, the voicing of kana) stay.
    """
    return _fixed(_letters, text)


def _letters(text: str) -> str:
    plain = unicodedata.normalize("NFKD", unicodedata.normalize("NFKD", text).casefold())
    kept = (character for character in plain if character == "_" or _stays(character))
    return unicodedata.normalize("NFC", "".join(kept)).casefold()


def _stays(character: str) -> bool:
    kind = unicodedata.category(character)[0]
    return kind in "LN" or (kind == "M" and unicodedata.combining(character) in (0, 7, 8, 9))


def _fixed(fold: Callable[[str], str], text: str) -> str:
    """Fold until nothing changes any more: one step can leave a character that the next one folds further."""
    folded = fold(text)
    while folded != text:
        text, folded = folded, fold(folded)
    return folded


#: Small letters of the Latin script that are written like others and decompose into none, by those that they resemble;
#: and, under the empty text, letters that are written as apostrophes are.
_RESEMBLING = {
    "a": "ⱥ",
    "ae": "æ",
    "b": "ƀƃɓ",
    "c": "ƈȼ",
    "d": "ðđƌɖɗ",
    "e": "ɇɛ",
    "f": "ƒ",
    "g": "ǥɠ",
    "h": "ħⱨ",
    "hv": "ƕ",
    "i": "ıɨ",
    "j": "ȷɉ",
    "k": "ƙⱪꝁ",
    "l": "łƚⱡɫ",
    "m": "ɱ",
    "n": "ŋƞɲ",
    "o": "ø",
    "oe": "œ",
    "oi": "ƣ",
    "p": "ƥᵽ",
    "q": "ĸ",
    "r": "ɍɽ",
    "s": "ȿẜẝ",
    "t": "ŧƫƭʈⱦ",
    "th": "þ",
    "u": "ʉ",
    "v": "ʋⱱ",
    "w": "ⱳ",
    "y": "ƴɏ",
    "z": "ƶȥɀⱬ",
    "": "ʹʺʻʼʽʾʿˈˋ",
}
_LATIN = {ord(character): plain for plain, characters in _RESEMBLING.items() for character in characters}


def latin(text: str) -> str:
    """Give what ``letters()`` gives, with the letters ``a`` to ``z`` for the Latin ones that resemble them: ø, ł, æ.

    Which letters resemble which is that of Unicode's transform from Latin to ASCII, of the letters that languages
    write today: https://github.com/unicode-org/cldr/blob/main/common/transforms/Latin-ASCII.xml. The table never
    changes; what Unicode's versions keep of it (https://www.unicode.org/policies/stability_policy.html), the
    decomposition and the case of a letter that is assigned, does not either.
    """
    return _fixed(lambda given: _letters(given).translate(_LATIN), text)


#: From the one that takes least away to the one that takes most.
FOLDS: dict[str, Callable[[str], str]] = {"canonical": canonical, "letters": letters, "latin": latin}


class CanonicalAttribute(FollowingAttribute, UnicodeAttribute[Literal[True]]):
    """A text of the same model once more, folded; computed on every write path, never set.

    ``source`` names the attribute. ``fold`` is ``"canonical"`` (without case, composition and outer white space),
    ``"letters"`` (also without accents and whatever is neither letter, digit nor underscore) or ``"latin"`` (also with
    ``o`` for ``ø``, ``l`` for ``ł``, ``ae`` for ``æ`` and so on). ``source__iexact``, ``__icontains`` and
    ``__istartswith`` compare with the copy, which can stand in a key. ``blank=True`` lets a text of which nothing is
    left stay out of an index.
    """

    def __init__(
        self,
        verbose_name: Label | None = None,
        *,
        source: str,
        fold: str = "canonical",
        blank: bool = False,
        unique: bool = False,
        help_text: Label = "",
        error_messages: dict[str, object] | None = None,
        attr_name: str | None = None,
        secret: bool | None = None,
    ) -> None:
        if fold not in FOLDS:
            raise ConfigurationError(f"CanonicalAttribute has fold={' or '.join(map(repr, FOLDS))}, not {fold!r}.")
        super().__init__(
            verbose_name,
            null=True,
            blank=True,
            editable=False,
            unique=unique,
            help_text=help_text,
            error_messages=error_messages,
            attr_name=attr_name,
            secret=secret,
        )
        self.source = source
        self.fold = fold
        self.may_be_blank = blank

    @property
    def origin(self) -> str:  # type: ignore[override]  # a plain attribute elsewhere
        """What it is computed of, for messages."""
        return self.source

    def folded(self, text: str) -> str:
        """The form of a text that is stored."""
        return FOLDS[self.fold](text)

    def current(self, values: Mapping[str, object]) -> str | None:
        """What the source's value gives now; ``None`` where it has none, or none that is text."""
        text = values.get(self.source)
        if isinstance(text, Promise):
            text = str(text)
        return self.folded(text) if isinstance(text, str) else None

    if TYPE_CHECKING:  # its text is always one that may be missing

        @overload
        def __get__(self, instance: None, owner: object) -> Self: ...
        @overload
        def __get__(self, instance: object, owner: object) -> str | None: ...
        def __get__(self, instance: object, owner: object) -> Any: ...
