"""Random tables built from random templates: the proposed templates recognize every item."""

from __future__ import annotations

from hypothesis import example, given, settings
from hypothesis import strategies as st

from dynamo_single.contrib.inspection.keys import text_of
from dynamo_single.contrib.inspection.words import is_structural
from tests.deep import examples
from tests.unit.inspection.tables import describe, item, models_of, primary_keys, sample, written

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
@settings(max_examples=examples(15, 1000), deadline=None)
def test_every_item_is_recognized(table: list[dict[str, object]]) -> None:
    """The models' templates match each item's primary key, and a comment counts the other items."""
    text = written(sample(("PK", "SK"), [item(**each) for each in table]))
    missing = sum(not models_of(text, (str(each["PK"]), str(each["SK"]))) for each in table)
    assert missing <= len(table) * 0.05
    assert (
        f"{missing} item{' has' if missing == 1 else 's have'} no model." in text
        if missing
        else "no model." not in text
    )


@given(tables(), PARTS, SEPARATORS)
@settings(max_examples=examples(15, 1000), deadline=None)
def test_index_keys_are_rebuilt(table: list[dict[str, object]], template: list[str | int | None], by: str) -> None:
    """The templates of an index, with the values of an item, are the item's keys in the index."""
    for number, each in enumerate(table):
        values = [value for name, value in each.items() if name not in ("PK", "SK")]
        parts = [part if isinstance(part, str) else str(values[part or 0]) for part in template]
        each |= {"GSI1PK": by.join(parts), "GSI1SK": f"{number}"} if number % 3 else {}
    keys = ("GSI1PK", "GSI1SK")
    for _, kind, found in describe(sample(("PK", "SK"), [item(**each) for each in table], [("GSI1", keys)])).models:
        index = found.index(found.reader.layout.indexes[0])
        for number, each in enumerate(kind.items if index else ()):
            of_item = {name: text_of(value) for name, value in each.items()}
            of_key = of_item | found.only(number)
            assert index is not None
            rebuilt = [
                "".join(part if isinstance(part, str) else str(of_key.get(part.name)) for part in made)
                if all(isinstance(part, str) or part.name in of_key for part in made)
                else None
                for made in index.templates
            ]
            assert (rebuilt if None not in rebuilt else [None, None]) == [of_item.get(name) for name in keys]


@given(st.lists(st.tuples(LABELS, st.lists(VALUES, min_size=1, max_size=6, unique=True)), min_size=1, max_size=5))
@example([("USER", ["#aA"])])
@settings(max_examples=examples(15, 1000), deadline=None)
def test_no_drawn_value_becomes_a_literal(kinds: list[tuple[str, list[str]]]) -> None:
    """The literals of the templates are labels or words of the app."""
    table = [item(PK=f"{label}#{value}", SK=f"NOTE#{value}") for label, values in kinds for value in values]
    literals = [
        part
        for templates in primary_keys(written(sample(("PK", "SK"), table))).values()
        for template in templates
        for part in template.replace("#", " ").split()
        if not part.startswith("{") and not is_structural(part)
    ]
    assert {*literals} <= {"NOTE", *(label for label, _ in kinds)}
