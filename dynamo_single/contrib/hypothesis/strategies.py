"""Strategies for values of attributes, and for stored objects.

``hypothesis.extra.django.from_model()`` finds an object by all its values, which no key supports, and its registry has
one strategy for each class of fields, without their bounds.
"""

from __future__ import annotations

import re
import string
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from types import EllipsisType
from typing import Any, Final, TypeVar

from django.core.exceptions import ValidationError
from django.core.files.base import ContentFile
from django.core.validators import RegexValidator
from django.db.models import NOT_PROVIDED
from hypothesis import reject
from hypothesis import strategies as st
from hypothesis.errors import InvalidArgument, ResolutionFailed
from hypothesis.strategies import SearchStrategy

from dynamo_single import clock, models
from dynamo_single.exceptions import AlreadyExists, EmptyKeyPart, InvalidValue, UniqueViolation
from dynamo_single.orm.schema import registry
from dynamo_single.orm.schema.attributes import JSONAttribute, TTLAttribute
from dynamo_single.orm.schema.attributes.references import AuthorField
from dynamo_single.orm.schema.fields import base, simple

M = TypeVar("M", bound=models.Model)

#: The most characters, bytes or members of a value without a bound of its own.
LENGTH: Final = 50
#: The whole numbers that every program and index can sort.
INTEGERS: Final = (-(2**63), 2**63 - 1)
#: The years that timestamps of all forms can have.
MOMENTS: Final = (datetime(1970, 1, 2), datetime(9998, 12, 31))
#: The fields that the app sets itself.
COMPUTED: Final = (base.IdentityField, base.CopiedField, AuthorField)

_CHARACTERS: Final = st.characters(codec="utf-8", exclude_characters="\x00")
_LETTERS: Final = string.ascii_lowercase + string.digits


def from_field(field: Any) -> SearchStrategy[Any]:
    """Return a strategy for the valid values of a model's field, such as ``Company._meta.get_field("name")``.

    Values respect choices, lengths, digits, validators, and schemas of maps and lists. Strings, bytes and
    collections without a bound have up to 50 elements. Reference fields draw stored objects. Expiry times are in the
    future.
    """
    values = _of_kind(field)
    if getattr(field, "choices", None):
        values = st.sampled_from([value for value, _label in field.flatchoices])
    if not isinstance(field, base.ReferenceField):
        values = values.filter(lambda value: _is_valid(field, value))
    return st.none() | values if field.null else values


def from_model(model: type[M], /, **field_strategies: SearchStrategy[Any] | EllipsisType) -> SearchStrategy[M]:
    """Return a strategy for stored objects of a model, like that of ``hypothesis.extra.django``.

    It draws a value for each attribute without a default; to draw other attributes, pass a strategy or ``...``.
    Required references draw their objects in the same way. An object with the key of a stored one replaces its values.
    A drawn object takes the requests of ``save()``, and one or two more if the key is taken.
    """
    fields = {field.name: field for field in model._meta.concrete_fields if not isinstance(field, COMPUTED)}
    unknown = sorted(field_strategies.keys() - fields.keys())
    if unknown:
        raise InvalidArgument(f"Cannot draw {', '.join(unknown)}: {model._meta.label} has no attribute with this name.")
    chosen: dict[str, SearchStrategy[Any]] = {}
    for name, field in fields.items():
        given = field_strategies.get(name)
        if isinstance(given, SearchStrategy):
            chosen[name] = given
        elif given is ... or _is_required(field):
            chosen[name] = from_field(field)
    return st.fixed_dictionaries(chosen).map(lambda values: _stored(model, values))


def _is_required(field: Any) -> bool:
    is_automatic = getattr(field, "auto_now", False) or getattr(field, "auto_now_add", False)
    has_default = field.default is not NOT_PROVIDED and (field.default != "" or field.blank)
    return not (has_default or field.null or is_automatic or field.attribute.computed)


def _stored(model: type[M], values: dict[str, Any]) -> M:
    obj = model(**values)
    try:
        try:
            obj.save()
        except AlreadyExists:
            obj = _replaced(model, obj.pk, values)
    except (EmptyKeyPart, UniqueViolation):
        # Normalization for a key can make an empty string of an invisible character.
        reject()
    return obj


def _replaced(model: type[M], pk: object, values: dict[str, Any]) -> M:
    manager: Any = getattr(model, "all_objects", model._base_manager)
    obj: M = manager.get(pk=pk)
    for name, value in values.items():
        field: Any = model._meta.get_field(name)
        if not field.attribute.immutable:
            setattr(obj, name, value)
    obj.save()
    return obj


def _is_valid(field: Any, value: object) -> bool:
    try:
        field.run_validators(value)
        field.attribute.check_storable(value)
    except (ValidationError, InvalidValue):
        return False
    return True


def _of_kind(field: Any) -> SearchStrategy[Any]:
    for kind in type(field).__mro__:
        if kind in _KINDS:
            return _KINDS[kind](field)
    raise ResolutionFailed(f"Cannot infer a strategy for {field}. Pass a strategy to from_model().")


def _text(field: Any) -> SearchStrategy[str]:
    patterns = [each.regex for each in field.validators if isinstance(each, RegexValidator) and not each.inverse_match]
    if patterns:
        return st.one_of(*(st.from_regex(re.compile(each)) for each in patterns))
    most = min(field.max_length or LENGTH, LENGTH)
    return st.text(_CHARACTERS, min_size=0 if field.blank else 1, max_size=most).filter(
        lambda value: field.blank or bool(value.strip())
    )


def _word(prefix: str, suffix: str) -> SearchStrategy[str]:
    return st.text(_LETTERS, min_size=1, max_size=20).map(lambda word: f"{prefix}{word}{suffix}")


def _number(field: Any) -> SearchStrategy[int | float]:
    floats = st.floats(-1e100, 1e100, allow_nan=False, allow_subnormal=False)
    # DynamoDB does not store a negative zero or a number between 0 and 1E-130.
    return st.integers(*INTEGERS) | floats.filter(lambda value: abs(value) > 1e-100).map(float)


def _decimal(field: Any) -> SearchStrategy[Decimal]:
    places = field.decimal_places or 0
    digits = min(field.max_digits or 20, 38)
    return st.integers(-(10**digits) + 1, 10**digits - 1).map(lambda number: Decimal(number).scaleb(-places))


def _moment(field: Any) -> SearchStrategy[datetime]:
    if isinstance(field.attribute, TTLAttribute):
        seconds = st.integers(24 * 60 * 60, 10 * 365 * 24 * 60 * 60)
        return seconds.map(lambda number: clock.now().replace(microsecond=0) + timedelta(seconds=number))
    least, most = MOMENTS
    if field.attname in _sharding(field.model):
        most = clock.now().replace(tzinfo=None)  # the number of shards is known up to now
    found = st.datetimes(least, most, timezones=st.just(UTC))
    return found.map(lambda moment: moment.replace(microsecond=moment.microsecond // 1000 * 1000))


def _sharding(model: Any) -> set[str]:
    """Return the attributes by whose time the shards of a model's keys are chosen."""
    keys = registry.layout_of(model).keys if hasattr(model, "_options") else ()
    return {key.sharding.at for key in keys if key.sharding is not None}


def _milliseconds(field: Any) -> SearchStrategy[Any]:
    return st.integers(0, 24 * 60 * 60 * 1000 - 1).map(lambda number: timedelta(milliseconds=number))


def _document(field: Any) -> SearchStrategy[Any]:
    return _of_attribute(field.attribute)


def _of_attribute(attribute: Any) -> SearchStrategy[Any]:
    """Return a strategy for a map, a list or JSON, with the declared elements if there are any."""
    if isinstance(attribute, JSONAttribute):
        return st.recursive(_scalars(), lambda inner: _list(inner) | _map(inner), max_leaves=5)
    declared = attribute.shape
    if attribute.attr_type == "L":
        return _list(_scalars() if declared is None else _of_member(declared.member))
    return _map(_scalars()) if declared is None else _of_member(declared)


def _of_member(member: Any) -> SearchStrategy[Any]:
    if hasattr(member, "members"):
        needed = {name: _of_member(each) for name, each in member.members.items()}
        optional = {name for name, each in member.members.items() if getattr(each, "null", False)}
        return st.fixed_dictionaries(
            {name: each for name, each in needed.items() if name not in optional},
            optional={name: each for name, each in needed.items() if name in optional},
        )
    field = member.make_field()
    field.attribute = member
    return from_field(field).filter(lambda value: value is not None)


def _scalars() -> SearchStrategy[Any]:
    return st.booleans() | st.integers(*INTEGERS) | st.text(_CHARACTERS, max_size=10)


def _list(elements: SearchStrategy[Any]) -> SearchStrategy[Any]:
    return st.lists(elements, max_size=4)


def _map(values: SearchStrategy[Any]) -> SearchStrategy[Any]:
    return st.dictionaries(st.text(_LETTERS, min_size=1, max_size=10), values, max_size=4)


def _members(field: Any) -> SearchStrategy[set[Any]]:
    kinds: dict[str, SearchStrategy[Any]] = {
        "SS": st.text(_CHARACTERS, min_size=1, max_size=10),
        "NS": st.integers(*INTEGERS),
        "BS": st.binary(min_size=1, max_size=10),
    }
    return st.sets(kinds[field.attribute.attr_type], min_size=0 if field.null or field.blank else 1, max_size=5)


def _reference(field: Any) -> SearchStrategy[Any]:
    # An optional reference may lead back to this model.
    return st.none() if field.null else from_model(field.related_model)


def _file(field: Any) -> SearchStrategy[ContentFile[bytes]]:
    return st.builds(ContentFile, st.binary(min_size=1, max_size=LENGTH), name=_word("", ".txt"))


_KINDS: Final[dict[type, Callable[[Any], SearchStrategy[Any]]]] = {
    base.TextField: _text,
    base.LongTextField: _text,
    base.EmailField: lambda field: _word("", "@example.com"),
    base.UUIDField: lambda field: st.uuids(),
    base.IntegerField: lambda field: st.integers(*_bounds(field)),
    base.NumberField: _number,
    base.DecimalField: _decimal,
    base.BooleanField: lambda field: st.booleans(),
    base.TimestampField: _moment,
    base.DateField: lambda field: st.dates(MOMENTS[0].date(), MOMENTS[1].date()),
    base.BinaryField: lambda field: st.binary(min_size=1, max_size=min(field.max_length or LENGTH, LENGTH)),
    base.DocumentField: _document,
    base.SetField: _members,
    base.ReferenceField: _reference,
    simple.SlugField: lambda field: _word("", ""),
    simple.URLField: lambda field: _word("https://example.com/", ""),
    simple.IPAddressField: lambda field: st.ip_addresses(v=4).map(str),
    simple.TimeField: lambda field: st.times().map(lambda value: value.replace(microsecond=0)),
    simple.DurationField: _milliseconds,
    simple.FileField: _file,
}


def _bounds(field: Any) -> tuple[int, int]:
    """Return the bounds of a whole number, of which validators may name closer ones."""
    limits = {each.code: each.limit_value for each in field.validators if hasattr(each, "limit_value")}
    least, most = INTEGERS
    return max(least, limits.get("min_value", least)), min(most, limits.get("max_value", most))
