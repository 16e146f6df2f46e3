"""model_bakery's generators: one for each class of attributes, without model_bakery."""

from __future__ import annotations

from typing import Any

import pytest
from django.utils.module_loading import import_string

from dynamo_single import models
from dynamo_single.contrib.model_bakery import GENERATORS
from dynamo_single.orm.schema.attributes.base import Attribute
from dynamo_single.orm.schema.fields.base import LongTextField

#: The public classes of attributes.
ATTRIBUTES = [
    each for name in models.__all__ if isinstance(each := getattr(models, name), type) and issubclass(each, Attribute)
]


def path_of(field: Any) -> str:
    """Return the path by which model_bakery finds the generator of a field."""
    return f"{field.__module__}.{field.__qualname__}"


@pytest.mark.parametrize("path", GENERATORS)
def test_path_of_field_imports(path: str) -> None:
    assert path_of(import_string(path)) == path


@pytest.mark.parametrize("path", sorted({path for path in GENERATORS.values() if path.startswith("dynamo_single.")}))
def test_path_of_generator_imports(path: str) -> None:
    assert callable(import_string(path))


@pytest.mark.parametrize("kind", [kind for kind in ATTRIBUTES if hasattr(kind, "field_class")])
def test_attribute_has_a_generator(kind: Any) -> None:
    assert path_of(kind.field_class) in GENERATORS


def test_long_text_has_a_generator() -> None:
    assert path_of(LongTextField) in GENERATORS


def test_every_attribute_is_tested() -> None:
    """The base class has no field, and the copy of a nested value has the field of its output."""
    assert {kind.__name__ for kind in ATTRIBUTES if not hasattr(kind, "field_class")} == {
        "Attribute",
        "ExtractedAttribute",
    }
