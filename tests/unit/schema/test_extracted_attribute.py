"""Values extracted from documents: declarations and their errors."""

from __future__ import annotations

from typing import Any

import pytest
from django.db.models import Index, UniqueConstraint

from dynamo_single import models
from dynamo_single.exceptions import ConfigurationError, InvalidValue
from dynamo_single.orm.schema import registry
from dynamo_single.orm.schema.attributes.computed import steps_into, value_at
from tests.unit.declaring import declare, forgotten, messages


def thing(keys: dict[str, Any] | None = None, primary: str = "THING#{thing_id}", **attributes: Any) -> Any:
    """A model with a document."""
    given = {"thing_id": models.IdAttribute(), "data": models.MapAttribute(default=dict), **attributes}
    return declare("Thing", (primary, "#X"), keys, **given)


@pytest.mark.parametrize(
    ("names", "kind", "document", "found"),
    [
        (("a", "b"), "M", {"a": {"b": 1}}, 1),
        (("a", "b"), "M", {"a": None}, None),
        (("a", "b"), "M", {"a": "text"}, None),
        (("a", "1"), "M", {"a": ["x", "y"]}, "y"),
        (("a", "2"), "M", {"a": ["x", "y"]}, None),
        (("a", "1"), "M", {"a": {"1": "x"}}, None),
        (("2024",), "M", {"2024": "x"}, "x"),
        (("0", "a"), "L", [{"a": 1}], 1),
        (("a",), "M", None, None),
    ],
)
def test_a_place_is_found_as_updates_find_it(names: tuple[str, ...], kind: str, document: Any, found: Any) -> None:
    assert value_at(document, steps_into(kind, names)) == found


@pytest.mark.parametrize(
    ("attributes", "message"),
    [
        ({"copy": models.ExtractedAttribute("date__author")}, "'date' is not a document of the model. It has data."),
        (
            {"copy": models.ExtractedAttribute("name__first"), "name": models.UnicodeAttribute()},
            "'name' is not a document of the model",
        ),
        (
            {"copy": models.ExtractedAttribute("data")},
            "extracted from 'data', which names no place inside data",
        ),
        (
            {"copy": models.ExtractedAttribute("tags__first"), "tags": models.ListAttribute(default=list)},
            'which names no place inside tags: write "tags__0__lastname", for example.',
        ),
    ],
)
def test_what_is_extracted_lies_in_a_document(attributes: dict[str, Any], message: str) -> None:
    with forgotten():
        ((identifier, said),) = messages(thing(**attributes))
    assert identifier == "dynamo_single.E003"
    assert message in said


def test_it_is_no_part_of_a_primary_key() -> None:
    with forgotten():
        model = thing(primary="THING#{author}", author=models.ExtractedAttribute("data__author"))
        assert [said for _, said in messages(model) if "author follows data__author" in said]


@pytest.mark.parametrize(
    ("key", "message"),
    [
        ("{data}", 'use that: models.ExtractedAttribute("data__...").'),
        ("{data__author__lastname}", 'name that: lastname = models.ExtractedAttribute("data__author__lastname").'),
    ],
)
def test_a_key_that_leads_into_a_document_is_refused_with_the_way_out(key: str, message: str) -> None:
    with forgotten():
        ((identifier, said),) = messages(thing({"by_data": models.IndexKey("gs1", "THING", key)}))
    assert identifier == "dynamo_single.E003"
    assert said.endswith(message)


@pytest.mark.parametrize(
    "output",
    [
        models.MapAttribute(),
        models.JSONAttribute(),
        models.CanonicalAttribute(source="x"),
        models.ReferenceAttribute("catalog.Company", on_delete=models.DO_NOTHING),
        models.TimestampAttribute(auto_now=True),
        "text",
    ],
)
def test_it_is_stored_as_one_value(output: Any) -> None:
    with pytest.raises(ConfigurationError, match=r"pass output= an attribute of one"):
        models.ExtractedAttribute("data__x", output=output)


@pytest.mark.parametrize("path", [None, 5, ["data", "x"]])
def test_its_path_is_a_text(path: Any) -> None:
    with pytest.raises(ConfigurationError, match="the path must be a string that names a value in a document"):
        models.ExtractedAttribute(path)


def test_it_has_the_kind_the_lookups_and_the_choices_of_its_output() -> None:
    with forgotten():
        output = models.DecimalAttribute("cost", max_digits=5, decimal_places=2, choices=[(1, "One")])
        model = thing(price=models.ExtractedAttribute("data__price", output=output))
        field = model._meta.get_field("price")
        assert (field.verbose_name, field.max_digits, list(field.choices)) == ("cost", 5, [(1, "One")])
        assert (field.editable, field.null, field.serialize) == (False, True, False)
        assert registry.layout_of(model).attributes["price"].type == "N"
        assert output.field_options["editable"] is True


@pytest.mark.parametrize(("null", "required"), [(True, False), (False, True)])
def test_an_index_is_complete_where_the_value_is_required(*, null: bool, required: bool) -> None:
    with forgotten():
        model = thing(author=models.ExtractedAttribute("data__author", null=null))
        assert registry.layout_of(model).attributes["author"].required is required


def test_a_wrong_value_is_named_by_its_place_when_it_is_shown() -> None:
    with forgotten():
        obj = thing(author=models.ExtractedAttribute("data__author"))(data={"author": 5})
        with pytest.raises(InvalidValue, match=r"author must be a string .* It is extracted from data__author"):
            _ = obj.author


def test_an_index_of_djangos_on_a_place_is_refused_with_the_way_out() -> None:
    with forgotten(), pytest.raises(ConfigurationError, match="a value inside a document by an ExtractedAttribute"):
        thing(options={"indexes": [Index(fields=["data__author"], name="by_author")]})


def test_a_unique_rule_on_a_place_is_refused_with_the_way_out() -> None:
    constraint = UniqueConstraint(fields=["data__isbn"], name="isbn")
    with forgotten():
        found = messages(thing(options={"constraints": [constraint]}))
    assert any('models.ExtractedAttribute("data__isbn")' in said for _, said in found)
