"""Serializers with fields for sets, documents, bytes, decimals without a bound, and references read together."""

from __future__ import annotations

import binascii
from base64 import b64decode, b64encode
from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Any, ClassVar, Final

from django.utils.translation import gettext_lazy as _
from rest_framework import serializers
from rest_framework.relations import MANY_RELATION_KWARGS, ManyRelatedField

from dynamo_single.orm.schema.fields import base
from dynamo_single.table.request import MAX_DIGITS
from dynamo_single.transactions import atomic

#: The most references of one field in a request: one transaction writes a hundred items.
MAX_REFERENCES: Final = 90


class DecimalField(serializers.DecimalField):  # type: ignore[misc]  # the package has no types
    """A decimal number with the bounds of its attribute, or else with DynamoDB's 38 digits."""

    def __init__(self, max_digits: int | None = MAX_DIGITS, decimal_places: int | None = None, **options: Any) -> None:
        super().__init__(max_digits, decimal_places, **options)


class BinaryField(serializers.Field):  # type: ignore[misc]  # as above
    """Bytes as Base64 text."""

    default_error_messages: ClassVar = {"invalid": _("Enter Base64 text.")}

    def to_internal_value(self, data: object) -> bytes:
        """Decode Base64."""
        try:
            return b64decode(str(data), validate=True)
        except (binascii.Error, ValueError):
            self.fail("invalid")
            raise

    def to_representation(self, value: bytes) -> str:
        """Encode in Base64."""
        return b64encode(value).decode()


class SetField(serializers.ListField):  # type: ignore[misc]  # as above
    """A set as a sorted list. An empty list is ``None``, since DynamoDB stores no empty set."""

    def __init__(self, *, model_field: Any, **options: Any) -> None:
        member = {"SS": serializers.CharField, "NS": DecimalField, "BS": BinaryField}[model_field.attribute.attr_type]
        if model_field.attribute.attr_type == "NS" and model_field.member is int:
            member = serializers.IntegerField
        super().__init__(child=member(), **options)

    def to_internal_value(self, data: Any) -> Any:
        """Return the set of a list."""
        return {*super().to_internal_value(data)} or None

    def to_representation(self, data: Iterable[Any]) -> Any:
        """Return the sorted list of a set."""
        return super().to_representation(sorted(data))


class DocumentField(serializers.JSONField):  # type: ignore[misc]  # as above
    """A map, a list or any JSON value. Sets are sorted lists, bytes Base64 text, and decimals numbers.

    A decimal that a ``float`` does not represent exactly is text.
    """

    def to_representation(self, value: object) -> Any:
        """Return a document that JSON can hold."""
        return _as_json(super().to_representation(value))


def _as_json(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _as_json(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_as_json(each) for each in value]
    if isinstance(value, set | frozenset):
        return [_as_json(each) for each in sorted(value)]
    if isinstance(value, bytes):
        return b64encode(value).decode()
    if isinstance(value, Decimal):
        if value == value.to_integral_value():
            return int(value)
        number = float(value)
        return number if Decimal(repr(number)) == value else str(value)
    return value


class ReferencesField(ManyRelatedField):  # type: ignore[misc]  # as above
    """Several objects by their keys, read by one BatchGetItem for each 100 keys; at most ``MAX_REFERENCES``."""

    default_error_messages: ClassVar = {"too_many": _("At most {limit} objects.")}

    def to_internal_value(self, data: Any) -> list[Any]:
        """Return the objects of some keys; raise ``ValidationError`` for the first that does not exist."""
        if isinstance(data, str) or not hasattr(data, "__iter__"):
            self.fail("not_a_list", input_type=type(data).__name__)
        keys = [*dict.fromkeys(map(str, data))]
        if not self.allow_empty and not keys:
            self.fail("empty")
        if len(keys) > MAX_REFERENCES:
            self.fail("too_many", limit=MAX_REFERENCES)
        found = self.child_relation.get_queryset().in_bulk(keys) if keys else {}
        for key in keys:
            if key not in found:
                self.child_relation.fail("does_not_exist", pk_value=key)
        return [found[key] for key in keys]


class KeyRelatedField(serializers.PrimaryKeyRelatedField):  # type: ignore[misc]  # as above
    """An object by its key: one GetItem. With ``many=True``, a ``ReferencesField``."""

    @classmethod
    def many_init(cls, *arguments: Any, **options: Any) -> ReferencesField:
        """Return the field of several objects."""
        of_many = {name: options[name] for name in MANY_RELATION_KWARGS if name in options}
        return ReferencesField(child_relation=cls(*arguments, **options), **of_many)


class ModelSerializer(serializers.ModelSerializer):  # type: ignore[misc]  # as above
    """REST framework's serializer with this module's fields.

    A new object and its many-to-many relations are written in one transaction. A change is written first, and then each
    relation with the requests of its ``set()``: after an error in between, the same request completes the change.
    """

    serializer_field_mapping: ClassVar = {
        **serializers.ModelSerializer.serializer_field_mapping,
        base.DecimalField: DecimalField,
        base.BinaryField: BinaryField,
        base.SetField: SetField,
        base.DocumentField: DocumentField,
    }
    serializer_related_field = KeyRelatedField

    def build_standard_field(self, field_name: str, model_field: Any) -> tuple[Any, dict[str, Any]]:
        """Return the class and the options of an attribute's field."""
        field_class, options = super().build_standard_field(field_name, model_field)
        if field_class is SetField:
            options["model_field"] = model_field
        return field_class, options

    def create(self, validated_data: Any) -> Any:
        """Create an object with its many-to-many relations: one PutItem without relations, else one transaction."""
        relations = {each.name: each for each in self.Meta.model._meta.many_to_many if each.name in validated_data}
        for name in [name for name, each in relations.items() if hasattr(each, "kept_in")]:
            kept = relations.pop(name)
            validated_data[kept.kept_in] = kept.keys_of(validated_data.pop(name))
        if not relations:
            return super().create(validated_data)
        values = {**validated_data}
        related = {name: values.pop(name) for name in relations}
        with atomic():
            created = super().create(values)
            for name, field in relations.items():
                holder, held = field.m2m_field_name(), field.m2m_reverse_field_name()
                for each in related[name]:
                    field.remote_field.through._default_manager.create(**{holder: created, held: each})
        return created
