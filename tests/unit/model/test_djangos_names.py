"""Django's names for fields and options lead to the alternative, and Django 5.2's positional arguments work."""

from __future__ import annotations

import re
from typing import Any

import django
import pytest
from django.db import models as djangos

from dynamo_single import models
from dynamo_single.exceptions import ConfigurationError
from dynamo_single.orm.model.async_methods import save_options
from dynamo_single.orm.schema.attributes import field_names as table

ATTRIBUTES = [getattr(models, name) for name in models.__all__ if name.endswith("Attribute")]
FIELDS = [name for name in djangos.__all__ if isinstance(getattr(djangos, name), type)]
FIELDS = [name for name in FIELDS if issubclass(getattr(djangos, name), djangos.Field)]
EARLIER = pytest.mark.skipif(django.VERSION >= (6,), reason="Django 6 takes no positional arguments")
DEFAULTS = (False, False, None, None)


@pytest.mark.parametrize("name", FIELDS)
def test_each_field_of_django_has_its_way_out(name: str) -> None:
    with pytest.raises(ConfigurationError, match=rf"^dynamo_single\.models has no {name}\. Instead: \w+"):
        getattr(models, name)


@pytest.mark.parametrize("name", sorted(set(djangos.__all__) - set(models.__all__) - set(table.NAMES)))
def test_each_other_name_of_django_is_said_to_be_djangos(name: str) -> None:
    with pytest.raises(ConfigurationError, match=f"from django.db.models import {name}"):
        getattr(models, name)


@pytest.mark.parametrize("name", sorted(table.NAMES))
def test_a_way_out_names_attributes_that_there_are(name: str) -> None:
    named = re.findall(r"\b\w+Attribute\b|\bIndexKey\b|\bChildren\b", table.NAMES[name])

    assert [each for each in named if not hasattr(models, each)] == []


def test_an_import_of_a_field_keeps_the_way_out() -> None:
    with pytest.raises(ConfigurationError, match="UnicodeAttribute"):
        from dynamo_single.models import CharField  # type: ignore[attr-defined]  # noqa: F401 - on purpose


def test_a_name_of_nobody_is_an_ordinary_attribute_error() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'Nonsense'"):
        models.Nonsense  # type: ignore[attr-defined]  # noqa: B018 - on purpose


@pytest.mark.parametrize("option", sorted(table.OPTIONS))
def test_each_option_of_sql_is_refused(option: str) -> None:
    with pytest.raises(ConfigurationError, match=rf"^UnicodeAttribute does not take {option}: "):
        models.UnicodeAttribute(**{option: None})


@pytest.mark.parametrize("attribute", ATTRIBUTES, ids=lambda attribute: attribute.__name__)
def test_each_attribute_refuses_the_options_of_sql(attribute: Any) -> None:
    with pytest.raises(ConfigurationError, match=rf"^{attribute.__name__} does not take db_index: "):
        attribute(db_index=True)


def test_on_delete_in_the_second_place_is_no_label() -> None:
    reference: Any = models.ReferenceAttribute("directory.Company", djangos.CASCADE)  # type: ignore[call-overload]  # on purpose
    assert (reference.field_options["verbose_name"], reference.field_options["on_delete"]) == (None, djangos.CASCADE)


def test_do_nothing_in_the_second_place_is_what_is_done() -> None:
    reference: Any = models.ReferenceAttribute("directory.Company", djangos.DO_NOTHING)  # type: ignore[call-overload]

    assert reference.field_options["verbose_name"] is None


@EARLIER
def test_the_arguments_of_save_are_taken_by_position_with_djangos_warning() -> None:
    with pytest.warns(DeprecationWarning, match=r"Passing positional arguments to save\(\) is deprecated"):
        assert save_options((False, True), DEFAULTS) == (False, True, None, None)


@EARLIER
@pytest.mark.filterwarnings("ignore:Passing positional")
@pytest.mark.parametrize(
    ("args", "by_name", "text"),
    [
        ((1, 2, 3, 4, 5), DEFAULTS, "takes from 1 to 5 positional arguments but 6 were given"),
        ((True,), (True, False, None, None), "multiple values for argument 'force_insert'"),
    ],
)
def test_too_many_arguments_of_save_are_refused_as_by_django(args: Any, by_name: Any, text: str) -> None:
    with pytest.raises(TypeError, match=text):
        save_options(args, by_name)


@pytest.mark.skipif(django.VERSION < (6,), reason="Django 5.2 takes them")
def test_positional_arguments_of_save_are_refused_since_django_6() -> None:
    with pytest.raises(TypeError, match="takes 1 positional argument but 3 were given"):
        save_options((False, False), DEFAULTS)
