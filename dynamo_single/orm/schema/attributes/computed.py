"""The base of attributes computed from another attribute of the same object: they are never set.

This module must not know how or when items are written.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, Self, overload

from django.utils.functional import Promise

from dynamo_single.exceptions import ConfigurationError, InvalidValue, NotSupported
from dynamo_single.orm.schema.attributes.base import Attribute, Label
from dynamo_single.orm.schema.attributes.references import DelegatingAttribute, RepeatedAttribute
from dynamo_single.orm.schema.attributes.scalars import UnicodeAttribute
from dynamo_single.orm.schema.keys.codecs import canonical
from dynamo_single.orm.schema.keys.secret_values import Path
from dynamo_single.orm.schema.keys.values import words


class ComputedAttribute(Attribute[Any, Any]):
    """Mixed into attributes whose value ``current()`` works out of the attribute ``source``, on every write path."""

    computed = True
    #: The attribute that it follows.
    source: str
    #: The description of the computation in messages.
    made = "computed"

    def origins(self) -> Iterator[tuple[Attribute, Path]]:
        """Yield the attribute that it follows."""
        source = getattr(self.field.model, self.source, None)
        if isinstance(source, Attribute):
            yield source, ()

    def make_field(self) -> Any:
        """A field that fixtures leave out, as they hold the source."""
        field: Any = super().make_field()
        field.serialize = False
        return field

    def current(self, values: Mapping[str, object]) -> Any:
        """Return the result for the source's current value; ``None`` without one."""
        raise NotImplementedError

    def __get__(self, instance: object, owner: object) -> Any:
        if instance is None:
            return self
        held = instance.__dict__
        if self.source not in held and self.name in held:
            return held[self.name]  # read without its source
        return self.current({self.source: getattr(instance, self.source)})

    def __set__(self, instance: object, value: object) -> None:
        try:
            if value == getattr(instance, self.name):
                return  # Django's validation sets every value that it has looked at
        except InvalidValue:
            pass  # the source holds another kind of value, which its own write refuses
        raise NotSupported(f"{self.name} is {self.made} from {self.origin} and cannot be set: set {self.origin}.")


# The attribute that stores a second form of a string, for comparisons without regard to case.  DynamoDB compares bytes,
# so a search that ignores case needs such a stored form.


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
    """Fold until the string no longer changes: one step can leave a character that the next one folds further."""
    folded = fold(text)
    while folded != text:
        text, folded = folded, fold(folded)
    return folded


#: Small Latin letters that do not decompose, by the letters that they resemble; and, under the empty string, letters
#: that look like apostrophes.
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
    """Return ``letters()``, with the letters ``a`` to ``z`` for the Latin letters that resemble them: ø, ł, æ.

    The resemblance comes from Unicode's transform from Latin to ASCII, for the letters of modern languages:
    https://github.com/unicode-org/cldr/blob/main/common/transforms/Latin-ASCII.xml. The table never changes, nor do the
    decomposition and the case of an assigned letter (https://www.unicode.org/policies/stability_policy.html).
    """
    return _fixed(lambda given: _letters(given).translate(_LATIN), text)


#: From the fold that removes least to the fold that removes most.
FOLDS: dict[str, Callable[[str], str]] = {"canonical": canonical, "letters": letters, "latin": latin}


class CanonicalAttribute(ComputedAttribute, UnicodeAttribute[Literal[True]]):
    """A folded copy of a string of the same model; computed on every write path, never set.

    ``source`` names the attribute. ``fold`` is ``"canonical"`` (without case, composition and outer white space),
    ``"letters"`` (also without accents and characters other than letters, digits and underscores) or ``"latin"`` (also
    with ``o`` for ``ø``, ``l`` for ``ł``, ``ae`` for ``æ`` and so on). ``source__iexact``, ``__icontains`` and
    ``__istartswith`` compare with the copy, which keys can contain. With ``blank=True`` a string that folds to nothing
    may be missing from an index.
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
        """Return the stored form of a string."""
        return FOLDS[self.fold](text)

    def current(self, values: Mapping[str, object]) -> str | None:
        """Return the copy for the source's current value; ``None`` if that is missing or not a string."""
        text = values.get(self.source)
        if isinstance(text, Promise):
            text = str(text)
        return self.folded(text) if isinstance(text, str) else None

    if TYPE_CHECKING:  # its fold may always be missing

        @overload
        def __get__(self, instance: None, owner: object) -> Self: ...
        @overload
        def __get__(self, instance: object, owner: object) -> str | None: ...
        def __get__(self, instance: object, owner: object) -> Any: ...


# The attribute that stores a second copy of a nested value, so that keys can name it.  DynamoDB does not index nested
# values.

#: A place inside a document: keys of maps, and numbers of lists' elements.
Steps = tuple[str | int, ...]


def steps_into(kind: str, names: Sequence[str]) -> Steps:
    """The steps into a map (``M``) or list (``L``), as ``filter()`` and ``update()`` name them.

    The first step into a map is a key, whatever it looks like; further numbers count elements.
    """
    counted = (name.isascii() and name.isdigit() and (number > 0 or kind == "L") for number, name in enumerate(names))
    return tuple(int(name) if is_number else name for name, is_number in zip(names, counted, strict=True))


def value_at(document: object, steps: Steps) -> Any:
    """Return the value at a path of a document; ``None`` if it is missing."""
    found: Any = document
    for step in steps:
        if isinstance(found, list | tuple) and isinstance(step, int):
            found = found[step] if step < len(found) else None
        else:
            found = found.get(step) if isinstance(found, dict) and isinstance(step, str) else None
    return found


class ExtractedAttribute(ComputedAttribute, RepeatedAttribute[Any]):
    """A copy of a nested value of the same model: ``author = ExtractedAttribute("data__author__lastname")``.

    It is updated with the document on every write path and is never set. It can be used in the keys of indexes and in
    unique rules, which do not support nested values (AWS: `key attributes are top-level attributes of type String,
    Number, or Binary
    <https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/HowItWorks.CoreComponents.html>`_). ``output`` is
    the attribute that stores it, a string by default; a value of another type raises ``InvalidValue``. A missing value
    is not stored, and the item is not in such an index; ``null=False`` rejects the object.

    An update of that place, or of a map that it is in, reads the object first: two requests; all other places of the
    document change by one.
    """

    made = "extracted"
    looked_up = ("steps", "target")

    def __init__(
        self,
        path: str,
        verbose_name: Label | None = None,
        *,
        output: Attribute | None = None,
        null: bool = True,
        unique: bool = False,
        help_text: Label = "",
        error_messages: dict[str, Any] | None = None,
        attr_name: str | None = None,
        secret: bool | None = None,
    ) -> None:
        if not isinstance(path, str):
            raise ConfigurationError(
                f"ExtractedAttribute({path!r}): the path must be a string that names a value in a document, such as "
                "'data__author__lastname'."
            )
        if output is None:
            output = UnicodeAttribute()
        is_plain = isinstance(output, Attribute) and not (isinstance(output, DelegatingAttribute) or output.computed)
        if not is_plain or output.document or output.field_options.get("auto_now") or output.settled:
            raise ConfigurationError(
                f"ExtractedAttribute({path!r}) stores a string, number, datetime or Boolean: pass output= an attribute "
                "of one of these types, such as models.DecimalAttribute()."
            )
        self.path = path
        self.output = output
        super().__init__(
            verbose_name if verbose_name is not None else output.field_options["verbose_name"],
            null=null,
            blank=True,
            editable=False,
            unique=unique,
            canonical=output.canonical,
            help_text=help_text,
            error_messages=error_messages,
            attr_name=attr_name,
            secret=output.secret if secret is None else secret,
        )

    def origins(self) -> Iterator[tuple[Attribute, Path]]:
        """Yield the document with the place in it."""
        yield from ((document, self.steps) for document, _path in super().origins())

    def make_field(self) -> Any:
        """Return the field of its output, which forms omit."""
        stored, own = self.output.copy(), self.field_options
        kept = ("null", "blank", "default", "editable", "unique", "verbose_name")
        given = {name: own[name] for name in ("help_text", "error_messages") if own[name]}
        stored.field_options = {**stored.field_options, **{name: own[name] for name in kept}, **given}
        field: Any = stored.make_field()
        field.serialize = False
        return field

    @property
    def origin(self) -> str:  # type: ignore[override]  # a plain attribute elsewhere
        """What it is extracted from, for messages."""
        return self.path

    @property
    def source(self) -> str:  # type: ignore[override]  # a plain attribute elsewhere
        """The attribute that holds the document."""
        return self.path.partition("__")[0]

    @cached_property
    def steps(self) -> Steps:
        """The place inside the document."""
        names = self.path.split("__")[1:]
        document: Attribute | None = getattr(self.field.model, self.source, None)
        steps = steps_into("L" if document is not None and document.attr_type == "L" else "M", names)
        shape = None if document is None else document.shape
        found: Steps = steps if shape is None or not steps else shape.stored_steps(steps)
        return found

    @cached_property
    def target(self) -> Attribute:
        """The output attribute, under this one's name."""
        return self.under_own_name(self.output)

    def current(self, values: Mapping[str, object]) -> Any:
        """Return the value at the path, in its stored Python form; ``None`` if it is missing.

        Raises ``InvalidValue`` for a value of another kind.
        """
        return self.prepare(value_at(values.get(self.source), self.steps))

    @property
    def expects(self) -> str:  # type: ignore[override]  # see attr_type
        """The accepted values in messages."""
        return f"{self.target.expects} at {self.path}"

    def prepare(self, value: object) -> Any:
        """Prepare the value like the output; the error for another type names the path."""
        try:
            return super().prepare(value)
        except InvalidValue as error:
            said = words("%(path)s: %(text)s", path=self.path, text=error.in_words())
            raise InvalidValue(f"{error} It is extracted from {self.path}.", words=said) from error
