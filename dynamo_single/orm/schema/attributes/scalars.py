"""Attributes that hold one text, number, truth value, UUID or run of bytes."""

from __future__ import annotations

import base64
import datetime
import ipaddress
import math
import secrets
import string
import uuid
from decimal import ROUND_FLOOR, ROUND_HALF_EVEN, Context, Decimal, InvalidOperation
from typing import Any, ClassVar, Literal, TypeVar

from django.core.exceptions import ValidationError
from django.db import models
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from dynamo_single.exceptions import ConfigurationError, NotSupported, TooManyDigits
from dynamo_single.orm.schema.attributes.base import Attribute, Label, Null
from dynamo_single.orm.schema.fields import base, simple
from dynamo_single.orm.schema.keys import identifiers, values
from dynamo_single.orm.schema.keys.values import gettext_noop, words_at
from dynamo_single.orm.schema.types import ModelField
from dynamo_single.table import names

Numeric = TypeVar("Numeric", int, float, Decimal)
_NANOID = f"{string.ascii_letters}{string.digits}_-"
_NANOID_LENGTH = 21

#: More digits than any number of DynamoDB has when it is written out with its places.
_ANY_DIGITS = 1000
_WIDE = Context(prec=_ANY_DIGITS, traps=[InvalidOperation])


class UnicodeAttribute(Attribute[str, Null]):
    """A string. ``multiline=True`` uses a text area in forms."""

    attr_type = "S"
    key_kind = "text"
    expects = gettext_noop("a string (str)")
    field_class: ClassVar[type[models.Field[Any, Any]]] = base.TextField

    def __init__(
        self,
        verbose_name: Label | None = None,
        *,
        multiline: bool = False,
        null: Null = False,  # type: ignore[assignment]  # see Attribute
        **options: Any,
    ) -> None:
        super().__init__(verbose_name, **options | {"null": null})
        self.multiline = multiline

    def make_field(self) -> ModelField:
        """Return a one-line or a long text field."""
        return (base.LongTextField if self.multiline else self.field_class)(**self.field_options)

    def clean(self, value: object) -> str:
        """Only ``str`` and lazy translations are text."""
        if type(value) is not str:
            if isinstance(value, Promise):
                value = str(value)
            if not isinstance(value, str):
                raise self.refuse(value)
        return values.checked_text(value, path=self.name)

    def to_text(self, value: object) -> str:
        """The text itself."""
        # Each ``pk`` of several parts passes here; what ASCII holds needs no further look.
        if type(value) is str and value.isascii() and type(self).clean is UnicodeAttribute.clean:
            return value
        return super().to_text(value)


#: The methods other than ``clean`` that may change or reject a string.
_DECIDING_TEXT = ("prepare", "encode", "to_attribute_value", "operand")


def is_plain_text(attribute: Attribute) -> bool:
    """Return whether an attribute takes each text that a key takes, and stores it as it is."""
    kind = type(attribute)
    is_own = any(getattr(kind, name) is not getattr(Attribute, name) for name in _DECIDING_TEXT)
    return not is_own and getattr(kind, "clean", None) is UnicodeAttribute.clean


class EmailAttribute(UnicodeAttribute[Null]):
    """An e-mail address, validated as Django's ``EmailField`` does."""

    field_class = base.EmailField


class IdAttribute(UnicodeAttribute[Null]):
    """An identifier that the app makes on creation: ``<prefix>-<uuid>``, or a bare UUID without a prefix.

    ``uuid_version`` 4 is random; 1 contains the time and a random number of the process, as in the record schema of
    docs/how-to. With ``kind="nanoid"`` it has 21 random letters, digits, ``_`` and ``-`` instead of a UUID: 126 bits.
    With ``kind="ulid"`` it has a ULID, which sorts by its creation time; ``first_at()`` returns bounds for that.
    """

    def __init__(
        self,
        verbose_name: Label | None = None,
        *,
        prefix: str = "",
        kind: Literal["uuid", "nanoid", "ulid"] = "uuid",
        uuid_version: int = 4,
        null: Null = False,  # type: ignore[assignment]  # see Attribute
        **options: Any,
    ) -> None:
        if uuid_version not in (1, 4):
            raise ConfigurationError(f"IdAttribute makes UUIDs of version 1 or 4, not {uuid_version!r}.")
        if kind not in ("uuid", "nanoid", "ulid"):
            raise ConfigurationError(
                f"IdAttribute makes identifiers of the kind 'uuid', 'nanoid' or 'ulid', not {kind!r}."
            )
        if kind != "uuid" and uuid_version != 4:
            raise ConfigurationError(f"IdAttribute(kind={kind!r}) makes no UUIDs: leave uuid_version out.")
        super().__init__(
            verbose_name, **{"default": self.make, "editable": False, "blank": True, "null": null, **options}
        )
        self.prefix = prefix
        self.kind = kind
        self.uuid_version = uuid_version

    def make(self) -> str:
        """A new identifier."""
        if self.kind == "nanoid":
            identifier = "".join(secrets.choice(_NANOID) for _ in range(_NANOID_LENGTH))
        elif self.kind == "ulid":
            identifier = identifiers.make_ulid()
        else:
            identifier = str(identifiers.make_uuid() if self.uuid_version == 1 else uuid.uuid4())
        return self._prefixed(identifier)

    def first_at(self, moment: datetime.datetime) -> str:
        """Return the smallest identifier of the kind ``"ulid"`` for a datetime, for ``__gte`` and ``__lt``.

        Does not send a request. Raises ``NotSupported`` for other kinds, whose identifiers do not contain their
        creation time, and ``InvalidValue`` for values other than datetimes since 1970.
        """
        if self.kind != "ulid":
            raise NotSupported(
                f"{self.name} does not contain its creation time, so there is no first identifier of a time. Use "
                'IdAttribute(kind="ulid"), or add a TimestampAttribute to the key.'
            )
        return self._prefixed(identifiers.first_at(moment))

    def _prefixed(self, identifier: str) -> str:
        return f"{self.prefix}-{identifier}" if self.prefix else identifier


class UUIDAttribute(Attribute[uuid.UUID, Null]):
    """A UUID, stored as text in the usual form with hyphens."""

    attr_type = "S"
    key_kind = "uuid"
    expects = gettext_noop("a UUID")
    field_class = base.UUIDField

    def clean(self, value: object) -> uuid.UUID:
        """A UUID, or text that is one."""
        if isinstance(value, uuid.UUID):
            return value
        if not isinstance(value, str):
            raise self.refuse(value)
        return uuid.UUID(value)

    def encode(self, value: uuid.UUID) -> str:
        """Text with hyphens."""
        return str(value)

    def decode(self, inner: str) -> uuid.UUID:
        """From text."""
        return uuid.UUID(inner)


class _NumericAttribute(Attribute[Numeric, Null]):
    """A number, stored as DynamoDB's number text."""

    attr_type = "N"

    def encode(self, value: Numeric) -> str:
        """DynamoDB's number text."""
        return values.number_to_text(value, path=self.name)


class IntegerAttribute(_NumericAttribute[int, Null]):
    """A whole number of up to 38 digits."""

    key_kind: str | None = "number"
    expects = gettext_noop("a whole number")
    field_class = base.IntegerField
    rounds = True

    def clean(self, value: object) -> int:
        """Whole numbers, and text that is one; neither booleans nor fractions."""
        if (integer := values.short_integer(value)) is not None:
            return integer
        number = exact_number(self, value)
        if number != number.to_integral_value():
            raise self.refuse(value)
        return int(number)

    def lookup_value(self, value: object) -> int | Decimal | None:
        """Any number: there are whole ones below and above a fraction."""
        if isinstance(value, float | Decimal):
            with self.refusing(value):
                number = exact_number(self, value)
            return int(number) if number == number.to_integral_value() else number
        return self.prepare(value)

    def floor(self, value: Any) -> int:
        """The highest whole number that is not above a number."""
        number: int = math.floor(value)
        return number

    def decode(self, inner: str) -> int:
        """From DynamoDB's number text; a stored fraction is refused."""
        return self.clean(inner)


class NumberAttribute(_NumericAttribute[float, Null]):
    """A number: ``int`` where it is whole, else ``float``. Where digits matter use ``DecimalAttribute``."""

    key_kind = "number"
    expects = gettext_noop("a number")
    field_class = base.NumberField

    def clean(self, value: object) -> float:
        """Numbers, and text that is one; not booleans."""
        if (integer := values.short_integer(value)) is not None:
            return integer
        number = exact_number(self, value)
        return int(number) if number == number.to_integral_value() else float(number)

    def decode(self, inner: str) -> float:
        """From DynamoDB's number text."""
        return self.clean(inner)


class DecimalAttribute(_NumericAttribute[Decimal, Null]):
    """An exact decimal number of up to 38 digits.

    With ``decimal_places`` a value has that many wherever it is stored and read: it is rounded half to even, as Django
    does on SQLite. More than ``max_digits`` digits then raise ``TooManyDigits``, which is Django's
    ``decimal.InvalidOperation``. Forms and validation reject both before that. A lookup's value is not rounded.
    https://docs.djangoproject.com/en/stable/ref/models/fields/#decimalfield
    """

    key_kind = "number"
    expects = gettext_noop("a decimal number")
    field_class = base.DecimalField

    def __init__(
        self,
        verbose_name: Label | None = None,
        *,
        max_digits: int | None = None,
        decimal_places: int | None = None,
        null: Null = False,  # type: ignore[assignment]  # see Attribute
        **options: Any,
    ) -> None:
        super().__init__(verbose_name, **options | {"null": null})
        self.field_options |= {"max_digits": max_digits, "decimal_places": decimal_places}
        self.max_digits = max_digits
        #: The smallest number with the declared places, if they are declared; Django's checks report a wrong type.
        self.quantum = Decimal(1).scaleb(-decimal_places) if isinstance(decimal_places, int) else None
        self._context = Context(prec=max_digits or _ANY_DIGITS, traps=[InvalidOperation])

    def clean(self, value: object) -> Decimal:
        """Numbers and text that is one, with the declared places; a float as Django reads it."""
        number = self._exact(value)
        try:
            if self.quantum is not None:
                number = number.quantize(self.quantum, ROUND_HALF_EVEN, self._context)
        except InvalidOperation as error:
            raise self._too_many_digits(number) from error
        if self.quantum is None and len(number.normalize(_WIDE).as_tuple().digits) > (self.max_digits or _ANY_DIGITS):
            raise self._too_many_digits(number)
        values.split_number(number, path=self.name)
        return number

    def lookup_value(self, value: object) -> object:
        """Return the number with all of its places, which may be between two storable numbers."""
        if value is None:
            return None
        with self.refusing(value):
            number = self._exact(value)
            values.split_number(number, path=self.name)
        return number

    @property
    def rounds(self) -> bool:  # type: ignore[override]  # the class's, elsewhere
        """Whether there are declared places, between which a lookup's value can lie."""
        return self.quantum is not None

    def floor(self, value: Any) -> Decimal:
        """The highest number with the declared places that is not above a number, of however many digits."""
        number: Decimal = value
        return number if self.quantum is None else number.quantize(self.quantum, ROUND_FLOOR, _WIDE)

    def operand(self, value: object) -> dict[str, object]:
        """A number of any digits: more than ``max_digits`` are above or below all that are stored."""
        if value is None:
            return {"NULL": True}
        with self.refusing(value):
            return {"N": self.encode(finite_number(self, value))}

    def placed(self, value: object) -> Decimal:
        """Return a number inside a document with the declared places, of however many digits."""
        return self.decode(str(self._exact(value)))

    def _exact(self, value: object) -> Decimal:
        if self.max_digits is not None and isinstance(value, float) and math.isfinite(value):
            value = self._context.create_decimal_from_float(value)
        return finite_number(self, value)

    def _too_many_digits(self, number: Decimal) -> TooManyDigits:
        return TooManyDigits(
            f"{self.name}: {self.shown(number)} has more than {self.max_digits} digits with its "
            f"{self.field_options['decimal_places']} decimal places. Nothing was written. Store a smaller number, or "
            "declare a larger max_digits.",
            words=words_at(self.name, _("This number has more than %(most)d digits."), most=self.max_digits),
        )

    def keeps(self, number: Decimal) -> bool:
        """Return whether a number has no more places than are declared."""
        return self.quantum is None or number == number.quantize(self.quantum, ROUND_HALF_EVEN, _WIDE)

    def to_text(self, value: object) -> str:
        """The shortest text of the number, so that equal numbers have one ``pk``."""
        prepared: Any = self.prepare(value)
        return values.number_to_text(prepared, path=self.name)

    def decode(self, inner: str) -> Decimal:
        """From DynamoDB's number text, with the declared places, which DynamoDB does not keep."""
        return Decimal(inner) if self.quantum is None else Decimal(inner).quantize(self.quantum, ROUND_HALF_EVEN, _WIDE)


def exact_number(attribute: Attribute, value: object) -> Decimal:
    """The value as a finite ``Decimal`` that DynamoDB can hold."""
    number = finite_number(attribute, value)
    values.split_number(number, path=attribute.name)
    return number


def finite_number(attribute: Attribute, value: object) -> Decimal:
    """The value as a finite ``Decimal`` of any number of digits."""
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal | str):
        raise attribute.refuse(value)
    number = Decimal(repr(value)) if isinstance(value, float) else Decimal(value)
    if not number.is_finite():
        raise attribute.refuse(value)
    return number


class BooleanAttribute(Attribute[bool, Null]):
    """True or false.

    ``stored_as="number"``: as the number 1 or 0, as PynamoDB's ``LegacyBooleanAttribute`` does. Reading accepts both
    forms of that class; filters and conditions find only numbers.
    """

    attr_type = "BOOL"
    key_kind = "boolean"
    expects = gettext_noop("True or False")
    field_class = base.BooleanField

    def __init__(
        self,
        verbose_name: Label | None = None,
        *,
        stored_as: Literal["number"] | None = None,
        null: Null = False,  # type: ignore[assignment]  # see Attribute
        **options: Any,
    ) -> None:
        super().__init__(verbose_name, **options | {"null": null})
        self.store_as(stored_as, {"number": _BooleanNumber})

    def clean(self, value: object) -> bool:
        """Return the value for input of Django's ``BooleanField``: booleans, 1 and 0, and their strings."""
        texts = {
            "True": True,
            "true": True,
            "t": True,
            "1": True,
            "False": False,
            "false": False,
            "f": False,
            "0": False,
        }
        if isinstance(value, str) and value in texts:
            return texts[value]
        if isinstance(value, int | bool) and value in (0, 1):
            return bool(value)
        raise self.refuse(value)


class _BooleanNumber(Attribute[bool, Null]):
    """The form of booleans as numbers."""

    attr_type = "N"

    def encode(self, value: bool) -> str:
        """1 or 0."""
        return "1" if value else "0"

    def decode(self, inner: str) -> bool:
        """From 1 or 0; raises ``ValueError`` for another number."""
        return {"1": True, "0": False}[inner] if inner in ("1", "0") else _boolean_number(inner)

    def from_attribute_value(self, stored: dict[str, object]) -> bool | None:
        """Return the value of a number, or of a boolean, which PynamoDB's class reads too."""
        found = stored.get("BOOL")
        return found if isinstance(found, bool) else super().from_attribute_value(stored)


def _boolean_number(text: str) -> bool:
    number = Decimal(text)
    if number not in (0, 1):
        raise ValueError(text)
    return bool(number)


class BinaryAttribute(Attribute[bytes, Null]):
    """Bytes. Forms edit them only with ``editable=True``, as in Django.

    ``stored_as="base64"``: base64 text inside of the binary value, which PynamoDB writes with ``legacy_encoding=True``.
    """

    attr_type = "B"
    expects = gettext_noop("bytes")
    field_class = base.BinaryField

    def __init__(
        self,
        verbose_name: Label | None = None,
        *,
        stored_as: Literal["base64"] | None = None,
        null: Null = False,  # type: ignore[assignment]  # see Attribute
        **options: Any,
    ) -> None:
        super().__init__(verbose_name, **{"editable": False, "null": null, **options})
        self.store_as(stored_as, {"base64": _Base64Binary})

    def clean(self, value: object) -> bytes:
        """Anything that is bytes."""
        if not isinstance(value, bytes | bytearray | memoryview):
            raise self.refuse(value)
        return bytes(value)

    def decode(self, inner: Any) -> bytes:
        """Return bytes from the client's binary value."""
        return bytes(inner)


class _Base64Binary(Attribute[bytes, Null]):
    """The form of bytes as base64, which does not sort as they do."""

    only_equal = True

    def encode(self, value: bytes) -> bytes:
        """Base64 in bytes."""
        return base64.b64encode(value)

    def decode(self, inner: Any) -> bytes:
        """From base64; raises ``ValueError`` for other bytes."""
        return base64.b64decode(bytes(inner), validate=True)


# Attributes of strings with a format that Django validates: slugs, URLs and IP addresses.  ``save()`` accepts any
# string for them, as Django's fields do; forms and ``full_clean()`` apply Django's validators.


class SlugAttribute(UnicodeAttribute[Null]):
    """A short string for URLs, validated as Django's ``SlugField`` does; 50 characters by default (``max_length``).

    ``allow_unicode=True`` takes letters of all scripts.
    """

    field_class = simple.SlugField

    def __init__(
        self,
        verbose_name: Label | None = None,
        *,
        allow_unicode: bool = False,
        null: Null = False,  # type: ignore[assignment]  # see Attribute
        **options: Any,
    ) -> None:
        super().__init__(verbose_name, **options | {"null": null})
        self.field_options["allow_unicode"] = allow_unicode


class URLAttribute(UnicodeAttribute[Null]):
    """A URL, validated as Django's ``URLField`` does; 200 characters by default (``max_length``)."""

    field_class = simple.URLField


class IPAddressAttribute(UnicodeAttribute[Null]):
    """An IPv4 or IPv6 address as text, validated as Django's ``GenericIPAddressField`` does.

    ``protocol`` is ``both``, ``IPv4`` or ``IPv6``; ``unpack_ipv4=True`` converts ``::ffff:10.0.0.1`` to ``10.0.0.1``.
    An IPv6 address is stored in its shortest form. Addresses sort as strings: ``10.0.0.10`` is below ``10.0.0.9``.
    """

    expects = gettext_noop("an IP address")
    field_class = simple.IPAddressField

    def __init__(
        self,
        verbose_name: Label | None = None,
        *,
        protocol: str = "both",
        unpack_ipv4: bool = False,
        null: Null = False,  # type: ignore[assignment]  # see Attribute
        **options: Any,
    ) -> None:
        super().__init__(verbose_name, **options | {"null": null})
        self.field_options |= {"protocol": protocol, "unpack_ipv4": unpack_ipv4}
        #: Normalizes an address.
        self.reader: Any = models.GenericIPAddressField(unpack_ipv4=unpack_ipv4)

    def stored_options(self) -> dict[str, object]:
        """Return the options that affect the normal form of an address."""
        return {"unpack_ipv4": True} if self.field_options["unpack_ipv4"] else {}

    def prepare(self, value: object) -> str | None:
        """Normalize the value like Django, which treats an empty string as no address."""
        return None if value == "" else super().prepare(value)

    def clean(self, value: object) -> str:
        """Text, or an address of Python's ``ipaddress``; an IPv6 address in its one form."""
        if isinstance(value, ipaddress.IPv4Address | ipaddress.IPv6Address):
            value = str(value)
        text = super().clean(value)
        if ":" not in text:
            return text
        try:
            return str(self.reader.to_python(text))
        except ValidationError:
            return text  # the start of one, to be looked for; what is saved is validated by forms


# The attribute that counts the writes of an object, to detect concurrent writes.


class VersionAttribute(IntegerAttribute[Literal[True]]):
    """How often the object was written: 1 on creation, one more with each write, never set by hand.

    Saving or deleting an object that another process has written since it was read raises ``StaleObject``. An object
    that is older than the attribute has none (``None``) until it is written. PynamoDB's ``VersionAttribute`` under the
    same ``attr_name`` counts in the same way, so that each program detects the other's writes.
    """

    computed = True
    #: In no key: ``update()`` counts without reading, so that no key could follow.
    key_kind = None
    origin = "the number of writes"

    def __init__(
        self, verbose_name: Label | None = None, *, help_text: Label = "", attr_name: str = names.VERSION
    ) -> None:
        super().__init__(verbose_name, null=True, editable=False, help_text=help_text, attr_name=attr_name)

    def next_after(self, version: Any) -> int:
        """Return the version for the next write of an object."""
        return int(version or 0) + 1
