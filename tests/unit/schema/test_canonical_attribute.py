"""Folded forms of texts, and what a ``CanonicalAttribute`` may be declared with."""

from __future__ import annotations

import unicodedata
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynamo_single import models
from dynamo_single.exceptions import ConfigurationError, NotSupported
from dynamo_single.orm.query.state import state_of
from dynamo_single.orm.schema import registry
from dynamo_single.orm.schema.attributes.canonical import letters
from dynamo_single.orm.schema.encoding.codecs import canonical
from tests.unit.declaring import declare, forgotten, messages


@pytest.mark.parametrize(
    ("text", "folded"),
    [
        ("Gómez-Juárez-Álvarez", "gomezjuarezalvarez"),
        ("  O'Neill, Ann  ", "oneillann"),
        ("Straße", "strasse"),
        ("İstanbul", "istanbul"),
        ("ﬁne ²", "fine2"),
        ("snake_case", "snake_case"),
        ("Ærøskøbing", "ærøskøbing"),
        ("\N{GREEK CAPITAL LETTER ALPHA WITH TONOS}", "\N{GREEK SMALL LETTER ALPHA}"),
        ("Пётр", "петр"),
        ("がか", "がか"),
        ("हिन्दी", "हिन्दी"),
        ("--- !", ""),
        ("", ""),
    ],
)
def test_letters(text: str, folded: str) -> None:
    """Case, accents and everything between the letters disappear; letters of any script stay what they are."""
    assert letters(text) == folded


@given(st.text())
def test_a_folded_text_is_folded(text: str) -> None:
    """Folding once more changes nothing, and composition never matters."""
    for fold in (letters, canonical):
        assert fold(fold(text)) == fold(text)
    assert letters(unicodedata.normalize("NFD", text)) == letters(unicodedata.normalize("NFC", text))


@given(st.text())
def test_letters_are_all_that_is_left(text: str) -> None:
    """What is left is letters, digits, underscores and marks that belong to letters."""
    assert all(unicodedata.category(each)[0] in "LNM" or each == "_" for each in letters(text))


def copied(fold: str = "canonical", **options: Any) -> dict[str, Any]:
    """A text and its copy."""
    return {"name": models.UnicodeAttribute(), "copy": models.CanonicalAttribute(source="name", fold=fold, **options)}


@pytest.mark.parametrize(
    ("attributes", "keys", "message"),
    [
        ({"copy": models.CanonicalAttribute(source="nmae")}, {}, "copy is made of 'nmae', which is not a text"),
        (
            {"copy": models.CanonicalAttribute(source="number"), "number": models.IntegerAttribute()},
            {},
            "copy is made of 'number', which is not a text attribute of the model. Its texts are thing_id.",
        ),
        (
            {**copied(), "again": models.CanonicalAttribute(source="copy")},
            {},
            "again is made of 'copy', which is not a text",
        ),
    ],
)
def test_a_source_is_a_text(attributes: dict[str, Any], keys: dict[str, Any], message: str) -> None:
    """A copy of anything else is an error of the system checks."""
    with forgotten():
        model = declare("Thing", ("THING#{thing_id}", "#X"), keys, thing_id=models.IdAttribute(), **attributes)
        ((identifier, said),) = messages(model)
    assert identifier == "dynamo_single.E003"
    assert message in said


def test_a_copy_is_no_part_of_a_primary_key() -> None:
    """It changes with its text, and a primary key never changes."""
    with forgotten():
        model = declare("Thing", ("THING#{copy}", "#X"), **copied())
        assert [said for _, said in messages(model) if "Write {name:canonical} in the primary key." in said]


@pytest.mark.parametrize(
    ("source", "copy", "required"),
    [({}, {}, True), ({"null": True}, {}, False), ({"blank": True}, {}, False), ({}, {"blank": True}, False)],
)
def test_a_copy_is_there_where_its_text_is(source: dict[str, Any], copy: dict[str, Any], *, required: bool) -> None:
    """An index on the copy is complete just where the text is required, unless ``blank=True`` says otherwise."""
    with forgotten():
        attributes = copied(**copy) | {"name": models.UnicodeAttribute(**source)}
        model = declare("Thing", ("THING#{thing_id}", "#X"), thing_id=models.IdAttribute(), **attributes)
        assert registry.layout_of(model).attributes["copy"].required is required


def test_there_are_two_folds() -> None:
    """Another one is refused with their names."""
    with pytest.raises(ConfigurationError, match="fold='canonical' or 'letters', not 'ascii'"):
        models.CanonicalAttribute(source="name", fold="ascii")


def test_the_copy_that_says_most_is_compared() -> None:
    """With copies of both kinds a lookup takes the canonical one."""
    with forgotten():
        attributes = {**copied("letters"), "exact": models.CanonicalAttribute(source="name")}
        model = declare("Thing", ("THING", "{thing_id}"), thing_id=models.IdAttribute(), **attributes)
        where = state_of(model.objects.filter(name__iexact="A-É")).where
    assert "attribute='exact'" in repr(where) and "'a-é'" in repr(where)


@pytest.mark.parametrize(
    ("lookup", "message"),
    [
        ("iexact", "add name_folded = models.CanonicalAttribute(source='name'), which it compares then, or put {name"),
        ("icontains", "add name_folded = models.CanonicalAttribute(source='name'), which it compares then."),
        ("istartswith", "add name_folded = models.CanonicalAttribute(source='name'), which it compares then."),
        ("iendswith", "keep the folded text reversed"),
    ],
)
def test_without_a_copy_a_lookup_is_refused(lookup: str, message: str) -> None:
    """The error spells out the attribute to add."""
    with forgotten():
        model = declare("Thing", ("THING", "{thing_id}"), thing_id=models.IdAttribute(), name=models.UnicodeAttribute())
        with pytest.raises(NotSupported) as raised:
            model.objects.filter(**{f"name__{lookup}": "a"}).explain()
    assert message in str(raised.value)
