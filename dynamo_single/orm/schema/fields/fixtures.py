"""Values in fixtures that JSON does not have: as DynamoDB's own JSON, and back."""

from __future__ import annotations

import json
from typing import Any

from django.core.exceptions import ValidationError
from django.utils.translation import gettext_lazy as _

from dynamo_single.exceptions import InvalidValue
from dynamo_single.orm.schema.encoding.values import binary_to_text, text_to_binary, to_json

#: The only key of a map that stands in a fixture for a value that JSON would change.
FIXTURE_KEY = "$dynamodb"


def to_fixture(attribute: Any, value: object, shown: object = None) -> object:
    """A value, or ``shown`` in its place, as a JSON serializer can write it and ``from_fixture`` reads it back."""
    if value is None:
        return None
    marked = isinstance(value, dict) and set(value) == {FIXTURE_KEY}
    try:
        if not marked:
            return to_json(value if shown is None else shown)
    except TypeError:
        pass
    return {FIXTURE_KEY: binary_to_text(attribute.to_attribute_value(value))}


def from_fixture(attribute: Any, value: object) -> object:
    """The value that ``to_fixture`` wrote; any other is given back as it is."""
    if not isinstance(value, dict) or set(value) != {FIXTURE_KEY}:
        return value
    try:
        return attribute.from_attribute_value(text_to_binary(value[FIXTURE_KEY]))
    except (InvalidValue, ValueError, TypeError, AttributeError) as error:
        raise ValidationError(
            _("A map with the one key %(key)s holds a value in DynamoDB's JSON."),
            code="invalid",
            params={"key": FIXTURE_KEY},
        ) from error


class FixtureDecoder(json.JSONDecoder):
    """JSON text of a fixture."""

    def __init__(self, *, attribute: Any, **options: Any) -> None:
        super().__init__(**options)
        self.attribute = attribute

    def decode(self, s: str, *args: Any) -> object:
        """The value that was written."""
        return from_fixture(self.attribute, super().decode(s, *args))
