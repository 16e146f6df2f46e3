"""Random tables built from random templates: the proposed templates recognize every item."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from dynamo_single.contrib.inspection.words import is_structural
from tests.deep import examples
from tests.unit.inspection.tables import item, models_of, primary_keys, sample, written

LABELS = st.sampled_from(["USER", "Order", "item", "ORG_UNIT", "ZQX", "blorb", "METADATA", "v0", "people"])
SEPARATORS = st.sampled_from(["#", "|", "::", "_", "/"])
#: Values with the characters that keys have in practice, also separators, words and numbers.
VALUES = st.one_of(
    st.text("abcAB12_-.@ é#", min_size=1, max_size=8),
    st.integers(0, 10**12).map(str),
    st.uuids().map(str),
    st.sampled_from(["jane", "JANE", "PROFILE", "2024-01-01", "USER", "{x}", "a#b", "\n"]),
)
#: Parts of a key: a label, an attribute by its number, or a value that only the key contains.
PARTS = st.lists(st.one_of(LABELS, st.integers(0, 2), st.none()), min_size=1, max_size=4)


@st.composite
def tables(draw: st.DrawFn) -> list[dict[str, object]]:
    """Draw the items of up to four kinds, each with templates and attributes of its own."""
    separator, found = draw(SEPARATORS), list[dict[str, object]]()
    for number in range(draw(st.integers(1, 4))):
        templates = [draw(PARTS), draw(PARTS)]
        for _ in range(draw(st.integers(1, 6))):
            attributes = {f"attribute{number}{name}": draw(VALUES) for name in range(3)}
            keys = [
                separator.join(
                    part
                    if isinstance(part, str)
                    else draw(VALUES)
                    if part is None
                    else attributes[f"attribute{number}{part}"]
                    for part in template
                )
                for template in templates
            ]
            found.append({"PK": keys[0], "SK": keys[1], **attributes})
    return found


@given(tables())
@settings(max_examples=examples(40, 1000), deadline=None)
def test_every_item_is_recognized(table: list[dict[str, object]]) -> None:
    """The models' templates match the primary key of each item."""
    text = written(sample(("PK", "SK"), [item(**each) for each in table]))
    assert [each for each in table if not models_of(text, (str(each["PK"]), str(each["SK"])))] == []


@given(st.lists(st.tuples(LABELS, st.lists(VALUES, min_size=1, max_size=6, unique=True)), min_size=1, max_size=5))
@settings(max_examples=examples(40, 1000), deadline=None)
def test_no_drawn_value_becomes_a_literal(kinds: list[tuple[str, list[str]]]) -> None:
    """The literals of the templates are labels or words of the app, and never values."""
    table = [item(PK=f"{label}#{value}", SK=f"NOTE#{value}") for label, values in kinds for value in values]
    literals = [
        part
        for templates in primary_keys(written(sample(("PK", "SK"), table))).values()
        for template in templates
        for part in template.replace("#", " ").split()
        if not part.startswith("{") and not is_structural(part)
    ]
    assert {*literals} <= {"NOTE", *(label for label, _ in kinds)}
