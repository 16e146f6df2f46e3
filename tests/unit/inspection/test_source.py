"""The proposal is valid Python whatever the names and values of a table are."""

from __future__ import annotations

import ast
import keyword

import pytest
from django.core.management.commands.inspectdb import Command as InspectDB
from hypothesis import given, settings
from hypothesis import strategies as st

from dynamo_single import models
from dynamo_single.contrib.inspection import names, source
from tests.deep import examples
from tests.unit.inspection.tables import item, sample, written

NAMES = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=20)
HOSTILE = [
    'x"); import os; os.system("id") #',
    "x')\n__import__('os').system('id')\n#",
    "a\nclass Evil: pass",
    "\\",
    '"""',
    "'''",
    "{name}",
    "{{",
    "\u202egnp.exe",
    "\u2028__import__('os')",
    "\x00",
    "None",
    "class",
    "models",
    "pk",
    "save",
    "objects",
    "__class__",
    "_",
    "é",
    "ﬁ",
    "\u017f",
    "日本語",
    "🙂",
    "2fa",
    "a__b",
    "a" * 5000,
]


def nodes(text: str) -> set[str]:
    """Return the kinds of statements in a source, and the names that it calls."""
    tree = ast.parse(text)
    calls = {ast.unparse(each.func) for each in ast.walk(tree) if isinstance(each, ast.Call)}
    return {type(each).__name__ for each in ast.walk(tree) if isinstance(each, ast.stmt)} | calls


@pytest.mark.parametrize("name", HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_name_stays_a_literal(name: str) -> None:
    """The source has the statements and calls that it has for a harmless name."""

    def of(used: str) -> set[str]:
        found = [item(**{"PK": f"USER#{n}", "SK": f"{used}#{n}", used: f"{n}{used}", "other": used}) for n in range(4)]
        return nodes(
            written(
                sample(
                    (
                        "PK",
                        "SK",
                    ),
                    found,
                    [(used[:200], (used[:200],))],
                    ttl=used,
                ),
                used,
            )
        )

    assert of(name) <= of("harmless") | {"models.IndexKey", "models.IntegerAttribute"}


@given(st.lists(NAMES, min_size=1, max_size=6, unique=True))
@settings(max_examples=examples(20, 3000), deadline=None)
def test_python_names_are_valid_for_django(stored: list[str]) -> None:
    """Each name is a unique identifier that Django accepts for a field."""
    found: list[str] = []
    for each in stored:
        found.append(names.python_name(each, found))
    assert len({*found}) == len(stored)
    for name in found:
        assert name.isidentifier() and not keyword.iskeyword(name)
        assert "__" not in name and not name.startswith("_") and not name.endswith("_")
        assert name not in dir(models.Model)


@given(NAMES)
@settings(max_examples=examples(20, 3000), deadline=None)
def test_literals_are_read_back(text: str) -> None:
    """A literal is one line and means the same text."""
    written = names.literal(text)
    assert ast.literal_eval(written) == text
    assert written.splitlines() == [written] and written.isprintable()


@given(NAMES)
@settings(max_examples=examples(20, 1000), deadline=None)
def test_comments_are_comments(text: str) -> None:
    """No text ends the comment that contains it."""
    assert all(line.startswith("# ") and line.splitlines() == [line] for line in source.comment(text))


@pytest.mark.parametrize("name", ["order", "orderId", "order_id", "class", "2fa", "a b", "a__b"])
def test_names_follow_inspectdb(name: str) -> None:
    """Simple names become inspectdb's names, except that words are separated."""
    expected, _, _ = InspectDB().normalize_col_name(name, [], False)
    assert names.python_name(name).replace("_", "") == expected.replace("_", "")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("people", "Person"),
        ("order-lines", "OrderLine"),
        ("Threads", "Thread"),
        ("companies", "Company"),
        ("addresses", "Address"),
        ("status", "Status"),
        ("news", "News"),
        ("boxes", "Box"),
        ("databases", "Database"),
        ("prod_users", "ProdUser"),
        ("movie", "Movie"),
        ("2024", "Item2024"),
        ("...", "Item"),
        ("none", "NoneItem"),
        ("series", "Series"),
        ("CACHES", "Cache"),
    ],
)
def test_model_names_are_singular(text: str, expected: str) -> None:
    """A table of orders contains the model Order."""
    assert names.model_name(text) == expected


def test_thousands_of_attribute_names_are_bounded() -> None:
    """The rarest names are counted instead of declared."""
    found = [item(id=f"{n}", always=1, **{f"name{n}_{m}": 1 for m in range(1000)}) for n in range(10)]
    text = written(sample(("id",), found))
    assert text.count(" = models.IntegerAttribute(") < 110
    assert "9902 rarer attributes are not declared: the app keeps their values unchanged." in text
    assert "always = models.IntegerAttribute()" in text
