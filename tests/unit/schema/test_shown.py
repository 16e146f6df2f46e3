"""How messages show values: short, and without running any code of a project's models."""

from __future__ import annotations

from typing import Any

import pytest
from django.db.models import Case, Count, Exists, F, Q, Value, When

from dynamo_single.orm.schema.keys.values import named, shown
from project.directory.models import Company, Person


class Failing:
    """An object that cannot even be shown to developers."""

    def __repr__(self) -> str:
        raise ZeroDivisionError


def failing(self: Any) -> str:
    """Return a project's ``__str__`` that reads a missing attribute."""
    raise AttributeError("the project's own mistake")


@pytest.fixture(autouse=True)
def _no_strings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Company, "__str__", failing)


ACME = Company(company_id="c1", name="Acme")


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (ACME, "directory.Company with pk 'c1'"),
        ([ACME], "[directory.Company with pk 'c1']"),
        ((ACME,), "(directory.Company with pk 'c1',)"),
        ({"a": {"b": ACME}}, "{'a': {'b': directory.Company with pk 'c1'}}"),
        (Q(company=ACME) | ~Q(name="x"), "Q(company=... OR ~Q(name=...))"),
        (
            Count(Case(When(name="x", then=F("size") + 1))),
            "Count(Case(When(Q(name=...), F(size) + Value(...)), Value(...)))",
        ),
        (Exists(Company.objects.filter(name="x")), "Exists(Query(...))"),
        (Value(ACME), "Value(directory.Company with pk 'c1')"),
        (Company.objects.all(), "a QuerySet of directory.Company"),
        (Failing(), "<Failing that cannot be shown>"),
        (list(range(9)), "[0, 1, 2, 3, 4, … 9 in all]"),
        ("x" * 200, "'" + "x" * 99 + "..."),
        (10**5000, "<int that cannot be shown>"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_value_is_shown_without_running_a_models_code(value: Any, text: str) -> None:
    assert shown(value) == text


def test_a_list_that_contains_itself_is_shown_to_a_depth() -> None:
    circle: list[Any] = []
    circle.append(circle)

    assert shown(circle).startswith("[[[[")


def test_an_object_whose_key_has_no_value_yet_is_named_by_its_model() -> None:
    assert named(Person(company_id=5, person_id="p", name="x")) == "a directory.Person"


def test_an_object_whose_string_fails_still_has_a_repr() -> None:
    assert repr(ACME) == "<directory.Company with pk 'c1'>"
