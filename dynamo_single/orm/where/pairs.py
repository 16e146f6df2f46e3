"""``F()`` in a condition: two attributes of one item compared with each other.

DynamoDB compares what is stored, so both have to be stored in the same way. This module must not know keys, plans or
requests.
"""

from __future__ import annotations

from typing import Any

from django.db.models.expressions import Col, ExpressionList, Value
from django.db.models.fields.json import KeyTransform
from msgspec import Struct

from dynamo_single.exceptions import NotSupported
from dynamo_single.orm.conditions.lowering import ORDERED_TYPES
from dynamo_single.orm.conditions.terms import Compare, ComparePair, Condition, Nothing, Or
from dynamo_single.orm.conditions.wording import FILTER_IN_PYTHON
from dynamo_single.orm.schema.attributes import Attribute, IntegerAttribute, JSONAttribute
from dynamo_single.orm.schema.attributes.references import StandIn
from dynamo_single.orm.schema.fields.fields import IdentityField
from dynamo_single.orm.schema.kinds import DynamoModel
from dynamo_single.orm.where.lookup import Subject, paths_of, subject_of

COMPARED = ("exact", "lt", "lte", "gt", "gte")
#: What lies in a document is compared with attributes that are stored as it is.
_AS_IN_DOCUMENTS = ("text", "number")


def is_attribute(value: object) -> bool:
    """Whether a lookup's value is another attribute, or a place in one."""
    return isinstance(value, Col | KeyTransform)


def with_attributes(values: object) -> tuple[object, ...] | None:
    """The members of a list, or the bounds of a range, if there are attributes among them; else ``None``."""
    if isinstance(values, ExpressionList):
        # Of a member that is no expression Django makes one.
        members = values.get_source_expressions()
        return tuple(each.value if isinstance(each, Value) else each for each in members)
    return tuple(values) if isinstance(values, list | tuple) and any(map(is_attribute, values)) else None


def read_pair(model: type[DynamoModel], subject: Subject, operator: str, value: object) -> Condition:
    """The comparison of a subject with another attribute; raises ``NotSupported`` if they are stored otherwise."""
    other = subject_of(model, value)
    _check_pair(model, subject, operator, other)
    places = [(one, two) for one in paths_of(subject) for two in paths_of(other)]
    conditions = [_pair(subject.field.attname, operator, other.field.attname, one, two) for one, two in places]
    return conditions[0] if len(conditions) == 1 else Or(tuple(conditions))


def _pair(name: str, operator: str, other: str, path: Any, other_path: Any) -> Condition:
    if (name, path) != (other, other_path):
        return ComparePair(name, operator, other, path, other_path)
    # DynamoDB refuses to compare a place with itself.
    return Compare(name, "isnull", False, path) if operator in ("exact", "lte", "gte") else Nothing()


def _check_pair(model: type[DynamoModel], subject: Subject, operator: str, other: Subject) -> None:
    lookup = "" if operator == "exact" else f"__{operator}"
    asked = f"{model._meta.label}: {_called(subject)}{lookup}=F({_called(other)!r}) is not supported"
    otherwise = f"Otherwise {FILTER_IN_PYTHON}."
    if operator not in COMPARED:
        raise NotSupported(f"{asked}: two attributes are compared by {', '.join(COMPARED)}. {otherwise}")
    of_several = any(isinstance(each.field, IdentityField) for each in (subject, other))
    if subject.sized or other.sized or of_several:
        raise NotSupported(f"{asked}: a size, and a pk of several values, are compared with values only. {otherwise}")
    forms = [_form_of(each.field.attribute) for each in (subject, other) if not each.steps]
    in_document = len(forms) < 2
    if len(set(forms)) > 1 or (in_document and any(form.kind not in _AS_IN_DOCUMENTS for form in forms)):
        raise NotSupported(
            f"{asked}: {_called(subject)} is {_said(subject)} and {_called(other)} is {_said(other)}. They are not "
            f"stored alike, and DynamoDB compares stored values. {otherwise}"
        )
    if operator != "exact" and not all(form.is_ordered for form in forms):
        raise NotSupported(f"{asked}: DynamoDB orders text, numbers and binary only. {otherwise}")


class _Form(Struct, frozen=True):
    """DynamoDB's type of an attribute's values, and how they are written in it."""

    type: str
    kind: Any

    @property
    def is_ordered(self) -> bool:
        return self.type in ORDERED_TYPES and self.kind is not JSONAttribute


def _form_of(attribute: Attribute) -> _Form:
    while isinstance(attribute, StandIn):
        attribute = attribute.target
    if isinstance(attribute, IntegerAttribute):
        return _Form(attribute.attr_type, "number")  # versions and counters too, which have no form in a key
    return _Form(attribute.attr_type, attribute.key_kind or type(attribute))


def _said(subject: Subject) -> str:
    return "in a document" if subject.steps else f"a {type(subject.field.attribute).__name__}"


def _called(subject: Subject) -> str:
    return "pk" if isinstance(subject.field, IdentityField) else subject.name
