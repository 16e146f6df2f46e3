"""Folded forms of strings, and declarations of a ``CanonicalAttribute``."""

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
from dynamo_single.orm.schema.attributes.computed import FOLDS, latin, letters
from dynamo_single.orm.schema.keys.codecs import canonical
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


@pytest.mark.parametrize(
    ("text", "folded"),
    [
        ("Sørensen", "sorensen"),
        ("SØRENSEN", "sorensen"),
        ("S\N{LATIN CAPITAL LETTER O WITH STROKE AND ACUTE}rensen", "sorensen"),
        ("So\N{COMBINING SHORT STROKE OVERLAY}rensen", "sorensen"),
        ("Łódź", "lodz"),
        ("łodz", "lodz"),
        ("Đặng", "dang"),
        ("Ærøskøbing", "aeroskobing"),
        ("Œuvre", "oeuvre"),
        ("Straße", "strasse"),
        ("GROẞ", "gross"),
        ("Þór Sigurðsson", "thorsigurdsson"),
        ("Ħamrun", "hamrun"),
        ("Diyarbak\N{LATIN SMALL LETTER DOTLESS I}r", "diyarbakir"),
        ("DİYARBAKIR", "diyarbakir"),
        ("Hawai\N{MODIFIER LETTER TURNED COMMA}i", "hawaii"),
        ("O\N{MODIFIER LETTER APOSTROPHE}Neill", "oneill"),
        ("Ŋaliwurru", "naliwurru"),
        ("ŀ ŉ ǆ ﬁ", "lndzfi"),
        ("Gómez-Juárez", "gomezjuarez"),
        ("Пётр", "петр"),
        ("हिन्दी", "हिन्दी"),
        ("がか", "がか"),
        ("Ελλάδα", "ελλαδα"),
        ("--- !", ""),
        ("", ""),
    ],
)
def test_latin(text: str, folded: str) -> None:
    """Letters with strokes, ligatures and letters of old scripts are simplified."""
    assert latin(text) == folded


def test_latin_names_are_written_in_ascii() -> None:
    """Every letter of the blocks that living languages of Europe use, and its capital."""
    blocks = [chr(code) for code in (*range(0xC0, 0x180), *range(0x1E00, 0x1EFA))]
    found = [each for each in blocks if unicodedata.category(each)[0] == "L"]
    assert [each for each in found if not latin(each).isascii() or not latin(each)] == ["\N{LATIN SMALL LETTER DELTA}"]


def test_every_character_is_folded_at_once() -> None:
    """Except for Chinese and Korean, a second fold or a change of case does not change the result."""
    for code in (*range(0x3100), *range(0xA490, 0xAC00), *range(0xF900, 0x12000), *range(0x1D000, 0x1F300)):
        once = latin(chr(code))
        assert latin(once) == once
        assert latin(chr(code).casefold()) == once
        assert latin(letters(chr(code))) == once


@given(st.text())
def test_a_folded_text_is_folded(text: str) -> None:
    """A second fold does not change it, and composition does not matter."""
    for fold in FOLDS.values():
        assert fold(fold(text)) == fold(text)
    for fold in (letters, latin):
        assert fold(unicodedata.normalize("NFD", text)) == fold(unicodedata.normalize("NFC", text))


@given(st.text())
def test_a_later_fold_takes_away_more(text: str) -> None:
    """Strings that are equal after an earlier fold are equal after a later one."""
    assert letters(canonical(text)) == letters(text)
    assert latin(letters(text)) == latin(text)


@given(st.text(alphabet="øØłŁđĐßþðæÆœħŋ OoLldDt\u0131\u02bc"), st.text(alphabet="øłab\u0131"))
def test_latin_finds_parts(text: str, part: str) -> None:
    """A part of a string is a part of its folded form."""
    assert latin(part) in latin(text + part)


@given(st.text())
def test_letters_are_all_that_is_left(text: str) -> None:
    """The result contains only letters, digits, underscores and marks of letters."""
    assert all(unicodedata.category(each)[0] in "LNM" or each == "_" for each in letters(text))


def copied(fold: str = "canonical", **options: Any) -> dict[str, Any]:
    """Return a string and its copy."""
    return {"name": models.UnicodeAttribute(), "copy": models.CanonicalAttribute(source="name", fold=fold, **options)}


@pytest.mark.parametrize(
    ("attributes", "keys", "message"),
    [
        ({"copy": models.CanonicalAttribute(source="nmae")}, {}, "copy is computed from 'nmae', which is not a string"),
        (
            {"copy": models.CanonicalAttribute(source="number"), "number": models.IntegerAttribute()},
            {},
            "copy is computed from 'number', which is not a string attribute of the model. Its "
            "string attributes are thing_id.",
        ),
        (
            {**copied(), "again": models.CanonicalAttribute(source="copy")},
            {},
            "again is computed from 'copy', which is not a string",
        ),
    ],
)
def test_a_source_is_a_text(attributes: dict[str, Any], keys: dict[str, Any], message: str) -> None:
    """A copy of any other attribute is an error of the system checks."""
    with forgotten():
        model = declare("Thing", ("THING#{thing_id}", "#X"), keys, thing_id=models.IdAttribute(), **attributes)
        ((identifier, said),) = messages(model)
    assert identifier == "dynamo_single.E003"
    assert message in said


def test_a_copy_is_no_part_of_a_primary_key() -> None:
    """It changes with its source, and a primary key never changes."""
    with forgotten():
        model = declare("Thing", ("THING#{copy}", "#X"), **copied())
        assert [said for _, said in messages(model) if "Write {name:canonical} in the primary key." in said]


@pytest.mark.parametrize(
    ("source", "copy", "required"),
    [({}, {}, True), ({"null": True}, {}, False), ({"blank": True}, {}, False), ({}, {"blank": True}, False)],
)
def test_a_copy_is_there_where_its_text_is(source: dict[str, Any], copy: dict[str, Any], *, required: bool) -> None:
    """An index on the copy is complete if the source is required, unless ``blank=True`` allows omissions."""
    with forgotten():
        attributes = copied(**copy) | {"name": models.UnicodeAttribute(**source)}
        model = declare("Thing", ("THING#{thing_id}", "#X"), thing_id=models.IdAttribute(), **attributes)
        assert registry.layout_of(model).attributes["copy"].required is required


def test_there_are_three_folds() -> None:
    """The error for another one names them."""
    with pytest.raises(ConfigurationError, match="fold='canonical' or 'letters' or 'latin', not 'ascii'"):
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
        (
            "iexact",
            "add name_folded = models.CanonicalAttribute(source='name'), which the lookup then compares, or put {name",
        ),
        ("icontains", "add name_folded = models.CanonicalAttribute(source='name'), which the lookup then compares."),
        ("istartswith", "add name_folded = models.CanonicalAttribute(source='name'), which the lookup then compares."),
        ("iendswith", "keep the folded string reversed"),
    ],
)
def test_without_a_copy_a_lookup_is_refused(lookup: str, message: str) -> None:
    """The error spells out the attribute to add."""
    with forgotten():
        model = declare("Thing", ("THING", "{thing_id}"), thing_id=models.IdAttribute(), name=models.UnicodeAttribute())
        with pytest.raises(NotSupported) as raised:
            model.objects.filter(**{f"name__{lookup}": "a"}).explain()
    assert message in str(raised.value)
