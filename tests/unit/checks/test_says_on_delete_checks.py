"""E035: a reference without an ``on_delete``, and the line that its hint gives."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.core.checks import CheckMessage

from dynamo_single import models
from dynamo_single.checks.models import check_model
from dynamo_single.orm.schema import references
from tests.unit.declaring import declare, forgotten


@pytest.fixture(autouse=True)
def _forgotten() -> Iterator[None]:
    with forgotten():
        yield


def pair(
    reference: Callable[[Any], Any],
    *,
    cascade: bool | None = None,
    children: bool = True,
    soft: bool = False,
    purge: bool = False,
) -> tuple[Any, Any]:
    """A shelf, and its book."""
    common: dict[str, Any] = {
        "bases": (models.SoftDeleteModel if soft else models.Model,),
        "options": {"purge_after": timedelta(days=1)} if purge else {},
    }
    shelf = declare(
        "Plank",
        ("SHELF#{shelf_id}", "#METADATA"),
        {"listed": models.IndexKey("gs1", "SHELF", "{shelf_id}")},
        shelf_id=models.IdAttribute(),
        **({"books": models.Children("Tome", cascade=cascade)} if children else {}),
        **common,
    )
    book = declare(
        "Tome",
        ("SHELF#{shelf_id}", "BOOK#{book_id}"),
        {"listed": models.IndexKey("gs1", "BOOK", "{book_id}#{shelf_id}")},
        book_id=models.IdAttribute(),
        shelf=reference(shelf),
        **common,
    )
    return shelf, book


def unsaid(target: Any) -> Any:
    return models.ReferenceAttribute(target, related_name="+", attr_name="shelfId")


def along(shelf: Any) -> list[str]:
    """Return the objects that a deletion of a shelf includes."""
    return [children.model.__name__ for children in references.cascading_children(shelf)]


def reported(*pair: Any) -> list[CheckMessage]:
    return [message for model in pair for message in check_model(model)]


CASES: dict[str, dict[str, Any]] = {
    "no children": {"children": False},
    "children": {},
    "children that go along": {"cascade": True},
    "children that stay": {"cascade": False},
    "a trash": {"soft": True},
    "a trash, and children that stay": {"soft": True, "cascade": False},
    "a trash that is purged": {"soft": True, "purge": True},
    "a trash that is purged, and children that go along": {"soft": True, "purge": True, "cascade": True},
}


@pytest.mark.parametrize("case", CASES)
def test_reference_without_on_delete_is_reported(case: str) -> None:
    (found,) = reported(*pair(unsaid, **CASES[case]))
    assert (found.id, found.msg) == ("dynamo_single.E035", "shelf has no on_delete.")


@pytest.mark.parametrize("case", CASES)
def test_hint_is_a_line_that_changes_no_deletion(case: str) -> None:
    """The line runs as written, and the hint also names a needed option of ``Children``."""
    with forgotten():
        before = pair(unsaid, **CASES[case])
        (found,) = reported(*before)
        expected = along(before[0])
    line = re.search(r"Write shelf = (models\.ReferenceAttribute\(.*?\))(?=[,: ])", str(found.hint))
    assert line
    said = CASES[case] | ({"cascade": True} if "cascade=True in Plank.books" in str(found.hint) else {})
    after = pair(lambda shelf: eval(line[1], {"models": models, "Plank": shelf}), **said)  # noqa: S307 - the hint's own
    assert (reported(*after), along(after[0])) == ([], expected)


def test_hint_keeps_the_options_of_the_reference() -> None:
    (found,) = reported(*pair(unsaid, soft=True))
    assert found.hint == (
        "Write shelf = models.ReferenceAttribute(Plank, related_name='+', attr_name='shelfId', "
        "on_delete=models.CASCADE): Plank.books deletes these objects with their parent."
    )


@pytest.mark.parametrize("soft", [False, True])
def test_do_nothing_is_a_statement(soft: bool) -> None:
    """Children then do not cascade with their parent, not even into the trash."""
    found = pair(lambda shelf: models.ReferenceAttribute(shelf, on_delete=models.DO_NOTHING), soft=soft)
    assert (reported(*found), along(found[0])) == ([], [])


def test_model_whose_reference_has_no_on_delete_can_be_imported() -> None:
    """An old migration may name such a model: only the checks report it."""
    shelf, _ = pair(unsaid, soft=True)
    assert along(shelf) == ["Tome"]
