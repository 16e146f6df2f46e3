"""Turn the values of a save or ``update()`` into stored values and changes that DynamoDB makes.

It reads Django's expressions (``F()``, ``Now()``) and the app's operations, and raises ``NotSupported`` for those that
DynamoDB cannot compute. The app computes changes that keys, claims or other items depend on. This module does not
depend on how the app writes items.
"""

from __future__ import annotations

import datetime
from collections.abc import Collection, Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Any

from django.db.models import F, Model, Value
from django.db.models.expressions import Combinable, CombinedExpression
from django.db.models.functions import Now
from msgspec import Struct
from msgspec.structs import replace

from dynamo_single import clock
from dynamo_single.exceptions import InvalidValue, NotSupported, UnknownField
from dynamo_single.orm.conditions.matching import normalized_value
from dynamo_single.orm.conditions.terms import Condition, join
from dynamo_single.orm.effects.all_effects import changes_extracted, watched_attributes
from dynamo_single.orm.effects.base import Subject
from dynamo_single.orm.effects.write import unmet_error
from dynamo_single.orm.items import decode, version
from dynamo_single.orm.items.encode import Values, index_names, stored_name
from dynamo_single.orm.items.form import form_of
from dynamo_single.orm.items.refresh import changed_attributes
from dynamo_single.orm.requests.actions import Item
from dynamo_single.orm.requests.updates import Change, Place, add, as_stored, evaluate, operand_names, unmet_change
from dynamo_single.orm.schema import registry
from dynamo_single.orm.schema.attributes import (
    Attribute,
    DecimalAttribute,
    IntegerAttribute,
    TimestampAttribute,
    UnicodeAttribute,
)
from dynamo_single.orm.schema.attributes.computed import steps_into
from dynamo_single.orm.schema.attributes.documents import SetAttribute
from dynamo_single.orm.schema.attributes.operations import (
    AddToSet,
    Append,
    Operation,
    Prepend,
    Removal,
    RemoveFromSet,
    is_expression,
)
from dynamo_single.orm.schema.attributes.shapes import (
    Elements,
    Shape,
    hidden_value_errors,
    is_element,
    stored_steps,
    sums_stay_right,
    with_decimal_places,
)
from dynamo_single.orm.schema.keys.secret_values import MASK
from dynamo_single.orm.schema.keys.values import (
    checked_text,
    from_attribute_value,
    shown,
    text_to_number,
    to_attribute_value,
)
from dynamo_single.orm.schema.types import DynamoModel

#: The maximum number of operands of a sum that DynamoDB computes.
MAX_OPERANDS = 2
_ALTERNATIVE = "Read the object, compute in Python, and save it under a condition: save(condition=Q(...))"


class Target(Struct, frozen=True):
    """The target of an assignment: an attribute, or a path in it; ``given_name`` is the name that the caller used."""

    model: Any
    attribute: Attribute
    place: Place
    given_name: str

    @property
    def label(self) -> str:
        """Its name in error messages."""
        return f"{self.model._meta.label}.{self.given_name}"

    def shown(self, value: object) -> str:
        """Return a value that it is set to, for a message: masked if the target is a secret."""
        return MASK if self.attribute.hides(self.place.path) else shown(value)

    def stored(self, value: object) -> Any:
        """Return a value as it is stored in a document; ``InvalidValue`` does not contain a secret."""
        with hidden_value_errors(self.attribute.hides(self.place.path), self.label):
            return to_attribute_value(value, path=self.given_name)


class _Linear(Struct, frozen=True):
    """An expression as a sum of paths with their signs, and a constant."""

    terms: tuple[tuple[Target, int], ...] = ()
    constant: Any = None


def changes_of(obj: DynamoModel, only: Collection[str] | None = None) -> tuple[Change, ...]:
    """Return the changes that an object's attributes are set to, and replace values that are known already, such as
    ``Now()``."""
    found = []
    for name, attribute in registry.attributes_of(type(obj)).items():
        value = obj.__dict__.get(name)
        if is_expression(value) and (only is None or name in only):
            target = Target(type(obj), attribute, Place(stored_name(type(obj), name)), name)
            result = resolve(target, value)
            if isinstance(result, Change):
                found.append(result)
            else:
                obj.__dict__[name] = result
    return tuple(found)


def refuse_changes(obj: DynamoModel, why: str) -> None:
    """Raise ``InvalidValue`` for attributes that are set to changes, and replace values that are known already."""
    changes = changes_of(obj)
    if changes:
        said = ", ".join(change.source_text for change in changes)
        raise InvalidValue(f"{obj._meta.label}: {said} changes a stored value. {why}")


def resolve(target: Target, value: object) -> object:
    """Return a ``Change``, or the Python value; the change of a path is validated against the declared shape."""
    result = _resolve(target, value)
    shape: Shape | Elements | None = target.attribute.shape
    if shape is None or not isinstance(result, Change):
        return result
    given = None if result.operand is None else from_attribute_value(result.operand)
    if not target.place.path:
        if result.operator in ("append", "prepend"):
            with hidden_value_errors(target.attribute.is_secret(), target.label):
                shape.check(given, target.label)
        # The value of another attribute may not match the declaration of this one.
        return replace(result, computed=True) if result.operator == "copy" else result
    member = shape.at(target.place.path, target.label)
    if result.operator in ("set", "remove"):
        if result.operator == "set" or not is_element(target.place.path):
            with hidden_value_errors(target.attribute.is_secret(), target.label):
                shape.check_at(target.place.path, given, target.label)
        return result
    # The app cannot know in advance what DynamoDB computes.
    leaves_right = result.operator == "sum" and sums_stay_right(member)
    return result if member is None or leaves_right else replace(result, computed=True)


def _resolve(target: Target, value: object) -> object:
    is_hidden = target.attribute.hides(target.place.path)
    said = f"{target.given_name}={value if is_expression(value) and not is_hidden else target.shown(value)}"
    if isinstance(value, Removal):
        return None if not target.place.path else Change(target.place, "remove", source_text=said)
    if isinstance(value, Operation):
        return replace(_operation(target, value), source_text=said)
    if not is_expression(value):
        return value if not target.place.path else _set(target, value, said)
    linear = _linear(target, value)
    if not linear.terms:
        return linear.constant if not target.place.path else _set(target, linear.constant, said)
    return replace(_sum(target, linear), source_text=said)


def _set(target: Target, value: object, said: str) -> Change:
    if isinstance(value, Model):
        raise InvalidValue(f"Cannot set {target.label} to {target.shown(value)}: a document contains only values.")
    return Change(target.place, "set", _stored_at(target, value), source_text=said)


def _stored_at(target: Target, value: object) -> dict[str, object]:
    """Return the stored value of a place inside a document, with the declared places of its decimal numbers."""
    shape: Shape | Elements | None = target.attribute.shape
    stored: dict[str, object] = target.stored(with_decimal_places(shape, target.place.path, value, target.label))
    return stored


# operations of ours

_OPERATORS: dict[type[Operation], Any] = {
    Append: "append",
    Prepend: "prepend",
    AddToSet: "include",
    RemoveFromSet: "exclude",
}


def _operation(target: Target, value: Operation) -> Change:
    operator = _OPERATORS[type(value)]
    of_set = operator in ("include", "exclude")
    attribute = target.attribute
    fits = isinstance(attribute, SetAttribute) if of_set else attribute.attr_type == "L"
    if not target.place.path and not fits:
        changed = "sets" if of_set else "lists"
        raise NotSupported(
            f"{target.label} is a {type(attribute).__name__}: {type(value).__name__}() changes {changed}."
        )
    if of_set and not value.values:
        raise InvalidValue(
            f"{target.label}: {target.shown(value)} has no members, and DynamoDB has no empty set. Omit it."
        )
    given: Any = set(value.values) if of_set else list(value.values)
    if target.place.path:
        return Change(target.place, operator, _stored_at(target, given))
    # A set that may not be missing must not lose its last member, which only Python sees.
    return Change(
        target.place,
        operator,
        attribute.to_attribute_value(given),
        computed=operator == "exclude" and not attribute.null,
    )


# Django's expressions


def _linear(target: Target, value: object) -> _Linear:
    if type(value) is F:
        name: str = value.name  # type: ignore[attr-defined]  # missing in the stubs
        return _Linear(terms=((_source(target, name), 1),))
    if isinstance(value, Now):
        return _Linear(constant=clock.instant())
    if isinstance(value, Value):
        return _Linear(constant=value.value)
    if isinstance(value, CombinedExpression) and value.connector in (Combinable.ADD, Combinable.SUB):
        sign = 1 if value.connector == Combinable.ADD else -1
        left, right = _linear(target, value.lhs), _linear(target, value.rhs)
        if _Linear() in (left, right):
            raise InvalidValue(f"Cannot set {target.label} to {target.shown(value)}: None is not a number.")
        terms = (*left.terms, *((source, sign * its_sign) for source, its_sign in right.terms))
        return _Linear(terms, _combined_constant(target, value, left.constant, right.constant, sign))
    what = f"{value.connector}" if isinstance(value, CombinedExpression) else f"{type(value).__name__}()"
    raise NotSupported(
        f"Cannot set {target.label} to {target.shown(value)}: DynamoDB adds and subtracts numbers, and does not "
        f"support {what}. {_ALTERNATIVE}."
    )


def _combined_constant(target: Target, value: object, left: object, right: object, sign: int) -> object:
    if right is None:
        return left
    if left is None and sign > 0:
        return right
    if _is_number(right) and (left is None or _is_number(left)):
        total = add(_decimal(left or 0), _decimal(right) * sign)
        return int(total) if isinstance(left or 0, int) and isinstance(right, int) else total
    if isinstance(right, datetime.timedelta) and (left is None or isinstance(left, datetime.timedelta)):
        return (left or datetime.timedelta()) + sign * right
    if isinstance(right, datetime.timedelta) and isinstance(left, datetime.datetime):
        return left + sign * right
    raise NotSupported(
        f"Cannot set {target.label} to {target.shown(value)}: only numbers and datetimes support addition. "
        f"{_ALTERNATIVE}."
    )


def _is_number(value: object) -> bool:
    return isinstance(value, int | float | Decimal) and not isinstance(value, bool)


def _decimal(value: Any) -> Decimal:
    return Decimal(repr(value)) if isinstance(value, float) else Decimal(value)


def _source(target: Target, name: str) -> Target:
    try:
        return target_of(target.model, name)
    except UnknownField as error:
        raise UnknownField(f"F({name!r}) in {target.given_name}: {error}") from error


def _sum(target: Target, linear: _Linear) -> Change:
    places = tuple((source.place, sign) for source, sign in linear.terms)
    (first, sign), *more = linear.terms
    if not more and sign > 0 and linear.constant is None:
        _check_copy(target, first)
        return Change(target.place, "copy", places=places, computed=not _needs_no_rounding(target, linear))
    constant = _constant(target, linear)
    signs = [sign for _, sign in linear.terms]
    if len(signs) + (constant is not None) > MAX_OPERANDS or signs == [-1, -1]:
        raise NotSupported(
            f"Cannot set {target.label} to a sum of more than {MAX_OPERANDS} parts: DynamoDB adds or subtracts "
            f"two. {_ALTERNATIVE}."
        )
    whole = isinstance(target.attribute, IntegerAttribute) and not target.place.path
    computed = (whole and not all(_is_integer(source) for source, _ in linear.terms)) or not _needs_no_rounding(
        target, linear
    )
    return Change(target.place, "sum", constant, places, computed=computed)


def _needs_no_rounding(target: Target, linear: _Linear) -> bool:
    """Return whether a sum or a copy needs no rounding to decimal places: DynamoDB does not round."""
    attribute = target.attribute
    if target.place.path or not isinstance(attribute, DecimalAttribute) or attribute.quantum is None:
        return True
    if linear.constant is not None and not attribute.keeps(_decimal(linear.constant)):
        return False
    return all(_is_integer(source) or _is_as_coarse(source, attribute.quantum) for source, _ in linear.terms)


def _is_as_coarse(source: Target, quantum: Decimal) -> bool:
    attribute = source.attribute
    known = isinstance(attribute, DecimalAttribute) and attribute.quantum is not None and not source.place.path
    return known and attribute.quantum >= quantum


def _is_integer(source: Target) -> bool:
    return isinstance(source.attribute, IntegerAttribute) and not source.place.path


def _constant(target: Target, linear: _Linear) -> Any:
    """Return the constant of a sum as a stored value; all operands have to be numbers of the same kind."""
    attribute, constant = target.attribute, linear.constant
    of_time = isinstance(attribute, TimestampAttribute) and not target.place.path
    for source, _ in linear.terms:
        fits = _is_number_place(source) if not of_time else _is_stored_alike(source.attribute, attribute)
        if not fits:
            raise NotSupported(
                f"Cannot compute {target.label} from {source.given_name}, a {type(source.attribute).__name__}: "
                f"DynamoDB adds {'times to datetimes of the same kind' if of_time else 'numbers only'}. "
                f"{_ALTERNATIVE}."
            )
    if isinstance(attribute, TimestampAttribute) and of_time:
        if len(linear.terms) > 1 or linear.terms[0][1] < 0 or not isinstance(constant, datetime.timedelta):
            raise NotSupported(f"{target.label} is a datetime: add a timedelta to it. {_ALTERNATIVE}.")
        if attribute.attr_type != "N":
            raise NotSupported(f"{target.label} has a string, and DynamoDB adds to numbers only. {_ALTERNATIVE}.")
        return {"N": str(constant // attribute.unit)}
    if not _is_number_place(target):
        raise NotSupported(f"{target.label} is a {type(attribute).__name__}, and a sum is a number. {_ALTERNATIVE}.")
    if constant is None:
        return None
    if not _is_number(constant):
        raise InvalidValue(f"{target.label}: {target.shown(constant)} is not a number.")
    if target.place.path or isinstance(attribute, DecimalAttribute):
        # DynamoDB rounds the result if an addend has more decimal places.
        return target.stored(_decimal(constant))
    return attribute.to_attribute_value(constant)


def _is_number_place(target: Target) -> bool:
    return bool(target.place.path) or (target.attribute.attr_type == "N" and target.attribute.key_kind == "number")


def _is_stored_alike(one: Attribute, other: Attribute) -> bool:
    return type(one) is type(other) and getattr(one, "unit", None) == getattr(other, "unit", None)


def _check_copy(target: Target, source: Target) -> None:
    if target.place.path or (not source.place.path and _is_same_kind(target.attribute, source.attribute)):
        return
    what = "a nested value" if source.place.path else f"a {type(source.attribute).__name__}"
    raise NotSupported(
        f"Cannot set {target.label} to {source.given_name}: {what} may not have the stored form of a "
        f"{type(target.attribute).__name__}. {_ALTERNATIVE}."
    )


def _is_same_kind(one: Attribute, other: Attribute) -> bool:
    if one.field.is_relation or other.field.is_relation:
        return bool(one.field.related_model is other.field.related_model)
    if one.attr_type == "N" and one.key_kind == other.key_kind == "number":
        return not isinstance(one, IntegerAttribute) or isinstance(other, IntegerAttribute)
    return _is_stored_alike(one, other) or (isinstance(one, UnicodeAttribute) and isinstance(other, UnicodeAttribute))


# names


def target_of(model: type[DynamoModel], name: str) -> Target:
    """Return the attribute, or the path in a map or list, of a name; raises ``UnknownField``."""
    fields = {key: field for field in model._meta.concrete_fields for key in (field.name, field.attname)}
    field = model._meta.pk if name == "pk" else fields.get(name)
    if field is not None and hasattr(field, "attribute"):
        return Target(model, field.attribute, Place(stored_name(model, field.attname)), name)
    first, *steps = name.split("__")
    field = fields.get(first)
    if field is None or not steps or not hasattr(field, "attribute"):
        known = ", ".join(each.name for each in model._meta.concrete_fields)
        raise UnknownField(f"{model._meta.label} has no attribute {name!r}. It has {known}.")
    if field.attribute.attr_type not in ("M", "L"):
        whole = (
            f"{first}=models.AddToSet({{...}})" if field.attribute.attr_type in ("SS", "NS", "BS") else f"{first}=..."
        )
        raise UnknownField(
            f"{model._meta.label}.{name}: {first} is a {type(field.attribute).__name__}, and only maps and "
            f"lists have elements: write update({whole})."
        )
    place = Place(stored_name(model, field.attname), _path(model, field.attribute, steps))
    return Target(model, field.attribute, place, name)


def _path(model: type[DynamoModel], attribute: Attribute, steps: Iterable[str]) -> tuple[str | int, ...]:
    names = [checked_text(step, path=f"a place in {attribute.name}") for step in steps]
    path = stored_steps(attribute, steps_into(attribute.attr_type, names))
    if attribute.attr_type == "L" and isinstance(path[0], str):
        raise UnknownField(
            f"{model._meta.label}.{attribute.name} is a list, whose elements have numbers from 0 up, not {path[0]!r}."
        )
    return path


# Changes that DynamoDB cannot make: the app computes them from the item that it read, and the write is conditional on
# the operands.

#: The maximum number of attempts to compute a change while other processes change its operands.
ATTEMPTS = 8


def attribute_names(model: type[DynamoModel], changes: Collection[Change]) -> frozenset[str]:
    """Return the names of the attributes that the changes write."""
    changed = {change.place.name for change in changes}
    stored = form_of(model).stored if changed else {}
    return frozenset(name for name, each in stored.items() if each in changed)


def is_computed_by_dynamodb(
    model: type[DynamoModel], changes: Collection[Change], changed: Collection[str], *, alone: bool
) -> bool:
    """Return whether DynamoDB can make the changes.

    ``changed`` contains the attributes that the same write sets. A write that is ``alone`` gets the new values in its
    response, unless other items change with it.
    """
    depended = watched_attributes(model)
    if any(change.computed for change in changes) or attribute_names(model, changes) & depended:
        return False
    if changes_extracted(model, changes, changed if alone else ()):
        return False
    return not alone or depended.isdisjoint(changed)


def compute(subject: Subject, changes: Sequence[Change], before: Item) -> tuple[Values, Condition]:
    """Compute the changes: return the values by attribute, and the condition that the operands are unchanged.

    Raises ``InvalidValue`` if the item has no value that a change needs.
    """
    missing = unmet_change(changes, before)
    if missing is not None:
        raise unmet_error(subject, missing, before)
    after = evaluate(changes, before)
    attributes = registry.attributes_of(subject.model)
    stored = form_of(subject.model).stored
    values = {name: _value(attributes[name], after[each]) for name, each in stored.items() if each in after}
    return values, join(as_stored(before, name) for name in sorted(operand_names(changes)))


def _value(attribute: Attribute, stored: Mapping[str, Any] | None) -> object:
    if stored is None:
        return None
    # A sum need not be what the attribute takes, as a whole number: then it is a wrong value, not a wrong item.
    is_sum = attribute.key_kind == "number"
    return attribute.prepare(text_to_number(stored["N"])) if is_sum else attribute.from_attribute_value(dict(stored))


def with_current_operands(
    model: type[DynamoModel], changes: Sequence[Change], before: Item, found: Item
) -> Item | None:
    """Return the read item with the operands of the ``found`` one, or ``None`` if the change must not be repeated.

    It must not be if no operand changed, or if it would overwrite another version. It also has the index keys of
    ``found`` too.
    """
    operands = operand_names(changes)
    if version.is_outdated(model, before, found) or all(_is_same(before, found, name) for name in operands):
        return None
    stored = form_of(model).stored
    followers = (copy for copy in registry.copies_of(model) if stored[copy.source] in operands)
    names = {*operands, *index_names(model), *(copy.attr_name for copy in followers)}
    mixed = {name: value for name, value in before.items() if name not in names}
    return {**mixed, **{name: found[name] for name in names if name in found}}


def operand_values(obj: DynamoModel, changes: Sequence[Change], read: Item, item: Item) -> Values:
    """Return the operands' values in an item, by attribute, except attributes that were set in the object."""
    operands, set_here = operand_names(changes), changed_attributes(obj, read)
    held = decode.values_of(type(obj), item, frozenset(operands))
    names = {name for name, each in form_of(type(obj)).stored.items() if each in operands} - set_here
    return {name: held[name] for name in names & obj.__dict__.keys()}


def _is_same(one: Item, other: Item, name: str) -> bool:
    return (name in one) == (name in other) and (
        name not in one or normalized_value(one[name]) == normalized_value(other[name])
    )
