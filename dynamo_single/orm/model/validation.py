"""The validation of extracted and unique values in forms: ``validate_unique()`` and ``validate_constraints()``.

Sends one GetItem if the object needs one claim, and one BatchGetItem if it needs several. The result is only an early
warning; the transaction of ``save()`` decides. This module must not know how claims are written.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from copy import copy
from typing import TYPE_CHECKING, Any

from django.core.exceptions import NON_FIELD_ERRORS, ValidationError
from django.db.models import CheckConstraint
from msgspec import Struct

from dynamo_single.exceptions import InvalidValue
from dynamo_single.lazy_modules import LazyModule
from dynamo_single.orm.conditions.terms import EVERYTHING, names_in
from dynamo_single.orm.effects import unique_claims
from dynamo_single.orm.items.encode import possible_keys
from dynamo_single.orm.items.unique_rules import Rule, declared_rules, rules_of
from dynamo_single.orm.reading import single
from dynamo_single.orm.reading.single import has_expired
from dynamo_single.orm.requests.actions import Item, ItemKey
from dynamo_single.orm.schema import registry
from dynamo_single.orm.schema.types import DynamoModel
from dynamo_single.table import names
from dynamo_single.table.flow import run
from dynamo_single.table.request import NewItem
from dynamo_single.table.table import get_table

if TYPE_CHECKING:
    from dynamo_single.orm.effects import check_constraints
else:
    check_constraints = LazyModule("dynamo_single.orm.effects.check_constraints")

Errors = dict[str, list[Any]]
#: The field, or the whole object, that an error belongs to.
Place = Callable[[ValidationError], str]


class _Question(Struct, frozen=True, eq=False):
    """A check of one item: the position of its error, the item's key, and its meaning if the item is stored.

    If there is no key, nothing is read and ``answer`` gets ``None``.
    """

    place: Place
    key: ItemKey | None
    answer: Callable[[Item | None], ValidationError | None]


def _errors(obj: DynamoModel, questions: Sequence[_Question]) -> Errors:
    """Return the errors of all checks. Their items are read in one batch."""
    keys = [each.key for each in questions if each.key is not None]
    items = run(single.get_items(get_table(type(obj)._options.alias), keys)) if keys else {}
    found: Errors = {}
    for each in questions:
        error = each.answer(None if each.key is None else items.get(each.key))
        if error is not None:
            found.setdefault(each.place(error), []).append(error)
    return found


def extracted_errors(obj: DynamoModel, excluded: Collection[str]) -> Errors:
    """Return errors of extracted values, by the document that contains them. Sends no requests.

    Each value is validated by its declared type, choices and validators.
    """
    found: Errors = {}
    for attribute in registry.extracted_of(type(obj)):
        if attribute.source in excluded:
            continue
        field = copy(attribute.field)
        field.editable = True  # Django skips fields that are not editable
        try:
            value = attribute.current(obj.__dict__)
            field.validate(value, obj)
            field.run_validators(value)
        except InvalidValue as error:
            found.setdefault(attribute.source, []).append(ValidationError(error.in_words(), code="invalid_value"))
        except ValidationError as error:
            said = [ValidationError(f"{attribute.path}: {message}", code="invalid") for message in error.messages]
            found.setdefault(attribute.source, []).extend(said)
    return found


def unique_errors(obj: Any, own_key: ItemKey | None, unique_checks: Any) -> Errors:
    """Report ``unique=True`` and ``unique_together`` errors of ``validate_unique()``.

    ``own_key`` is the key that the object is stored under, or ``None`` for a new one.
    """
    questions: list[_Question | None] = []
    for _, check in unique_checks:
        fields = [obj._meta.get_field(name) for name in check]
        if not _is_primary_key(obj, check, fields):
            rule = _rule(obj, tuple(field.attname for field in fields))
            questions.append(_of_rule(obj, own_key, rule, _at(check)))
        elif own_key is None:
            questions += _of_primary_key(obj, check)
    return _errors(obj, [each for each in questions if each is not None])


def _is_primary_key(obj: DynamoModel, check: Sequence[str], fields: Sequence[Any]) -> bool:
    """Return whether a unique rule covers the whole primary key: its one attribute, several, or ``pk`` itself."""
    key: tuple[str, ...] = type(obj)._unique_key
    # If the attributes are checked by name, checking their identity would repeat the request.
    return set(check) == set(key) if key else len(fields) == 1 and fields[0].primary_key


def constraint_errors(obj: DynamoModel, own_key: ItemKey | None, exclude: Collection[str]) -> Errors:
    """Report the errors of ``validate_constraints()`` for constraints without excluded attributes."""
    questions: list[_Question | None] = []
    for rule in declared_rules(type(obj)._meta.concrete_model):
        if rule.constraint is None or _involved(rule) & set(exclude):
            continue
        place = _at(rule.constraint.fields, only="unique")
        questions.append(_of_rule(obj, own_key, rule if rule.needs_claims else None, place))
    return _errors(obj, [each for each in questions if each is not None])


def check_errors(obj: DynamoModel, exclude: Collection[str]) -> Iterator[ValidationError]:
    """Yield an error for each violated ``CheckConstraint`` without excluded attributes. Sends no request."""
    model = type(obj)
    if not any(isinstance(each, CheckConstraint) for each in model._meta.constraints):
        return
    stored = {each.attr_name: each for each in registry.attributes_of(model).values()}
    for rule in check_constraints.rules_of(model):
        attributes = [stored[name] for name in set(names_in(rule.condition)) if name in stored]
        if {name for each in attributes for name in (each.name, each.field.name)} & set(exclude):
            continue
        try:
            values = {each.attr_name: each.to_attribute_value(obj.__dict__.get(each.name)) for each in attributes}
        except InvalidValue:
            continue  # reported for the field
        if not rule.is_met_by(values):
            yield ValidationError(
                rule.constraint.get_violation_error_message(), code=rule.constraint.violation_error_code
            )


def _at(fields: Any, *, only: str | None = None) -> Place:
    """Return the field of an error, or the whole object; as in Django, a code other than ``only`` belongs to the
    object."""
    field = fields[0] if len(fields) == 1 else NON_FIELD_ERRORS
    return lambda error: field if only in (None, error.code) else NON_FIELD_ERRORS


def _involved(rule: Rule) -> set[str]:
    """The names of the fields that a rule looks at, as forms exclude them."""
    stored = rule.stored_names
    return {each.field.name for each in registry.attributes_of(rule.model).values() if each.attr_name in stored}


def _rule(obj: DynamoModel, fields: tuple[str, ...]) -> Rule | None:
    """Return the rule over these attributes; ``None`` if the primary key keeps them unique."""
    return next((rule for rule in rules_of(type(obj)) if rule.fields == fields and not rule.name), None)


def _of_rule(obj: DynamoModel, own_key: ItemKey | None, rule: Rule | None, place: Place) -> _Question | None:
    if rule is None:
        return None
    try:
        key = rule.key_of(_item(obj, rule))
    except InvalidValue as error:
        return _known(place, error)

    def answer(claim: Item | None) -> ValidationError | None:
        holder = unique_claims.claim_owner(claim)
        return None if holder is None or holder == own_key else _message(obj, rule)

    return None if key is None else _Question(place, key, answer)


def _known(place: Place, error: InvalidValue) -> _Question:
    return _Question(place, None, lambda item: ValidationError(error.in_words(), code="invalid_key"))


def _item(obj: DynamoModel, rule: Rule) -> NewItem:
    """Return the part of the object's item that the rule needs."""
    found = {}
    for name, attribute in registry.attributes_of(rule.model).items():
        if attribute.attr_name in {*rule.stored_names, names.DELETED_AT} and (value := _value(obj, name)) is not None:
            found[attribute.attr_name] = attribute.to_attribute_value(value)
    return found


def _value(obj: DynamoModel, name: str) -> object:
    attribute = registry.attributes_of(type(obj))[name]
    return attribute.prepare(attribute.current(obj.__dict__))


def _message(obj: DynamoModel, rule: Rule) -> ValidationError:
    """Django's own message and code, as its ``UniqueConstraint.validate()`` chooses them."""
    constraint = rule.constraint
    fields = [attribute.field.name for attribute in rule.attributes]
    if constraint is not None and (
        rule.condition != EVERYTHING or constraint.violation_error_message != constraint.default_violation_error_message
    ):
        return ValidationError(constraint.get_violation_error_message(), code=constraint.violation_error_code)
    return _djangos(obj, fields)


def _of_primary_key(obj: DynamoModel, check: Sequence[str]) -> list[_Question]:
    """Return whether such an object exists, for each key that it could have."""
    sharding = registry.layout_of(type(obj)).primary.sharding
    # An object of another time has another shard, and is in the way as well.
    values = obj.__dict__ if sharding is None else {**obj.__dict__, sharding.at: None}
    try:
        if obj.pk in (None, ""):
            return []
        keys = possible_keys(type(obj), values)
    except InvalidValue as error:
        return [_known(_at(check), error)]

    def answer(item: Item | None) -> ValidationError | None:
        return None if item is None or has_expired(item) else _djangos(obj, list(check))

    return [_Question(_at(check), key, answer) for key in keys]


def _djangos(obj: DynamoModel, fields: list[str]) -> ValidationError:
    error: ValidationError = obj.unique_error_message(type(obj), fields)
    return error
