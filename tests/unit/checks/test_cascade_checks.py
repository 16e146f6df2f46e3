"""Start-up checks of children that cannot cascade, and of ``Meta.purge_after``."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest

from dynamo_single import models
from dynamo_single.exceptions import ConfigurationError
from tests.unit.declaring import declare, forgotten, messages

SOFT = (models.SoftDeleteModel,)


@pytest.fixture(autouse=True)
def _forgotten() -> Iterator[None]:
    with forgotten():
        yield


def family(
    *,
    cascade: bool | None = None,
    parent: tuple[type, ...] = SOFT,
    child: tuple[type, ...] = SOFT,
    keys: dict[str, Any] | None = None,
    primary: tuple[str, str] = ("CHILD#{child_id}", "#METADATA"),
    parent_options: dict[str, Any] | None = None,
    child_options: dict[str, Any] | None = None,
    **attributes: Any,
) -> Any:
    """A parent with one kind of children."""
    made = declare(
        "Mother",
        ("MOTHER#{mother_id}", "#METADATA"),
        {"listed": models.IndexKey("gs1", "MOTHER", "{mother_id}")},
        bases=parent,
        options=parent_options,
        mother_id=models.IdAttribute(),
        children=models.Children("Daughter", cascade=cascade),
    )
    declare(
        "Daughter",
        primary,
        keys,
        bases=child,
        options=child_options,
        child_id=models.IdAttribute(),
        mother=models.ReferenceAttribute(made, on_delete=models.DO_NOTHING),
        **attributes,
    )
    return made


BY_MOTHER = {"by_mother": models.IndexKey("gs1", "DAUGHTERS#{mother_id}", "{child_id}")}
ELSEWHERE = {"by_room": models.IndexKey("gs1", "ROOM#{room}", "{child_id}")}


@pytest.mark.parametrize(
    "options",
    [
        {"keys": BY_MOTHER},
        {"primary": ("MOTHER#{mother_id}", "CHILD#{child_id}")},
        {"keys": ELSEWHERE, "room": models.IntegerAttribute(), "cascade": False},
        {"child": (models.Model,), "keys": BY_MOTHER, "cascade": True},
        {"child": (models.Model,), "cascade": False},
        {"child": (models.Model,)},
        {"parent": (models.Model,)},
        {"parent": (models.Model,), "child": (models.Model,)},
    ],
)
def test_children_that_can_go_along_or_need_not_are_fine(options: dict[str, Any]) -> None:
    """A key that lists one parent's children is enough, and without a cascade no key is needed."""
    assert messages(family(**options)) == []


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (
            {"keys": ELSEWHERE, "room": models.IntegerAttribute(), "cascade": True},
            "children: no key of catalog.Daughter lists the children of one Mother, to which deletions should",
        ),
        (
            {
                "keys": {"by": models.IndexKey("gs1", "D#{mother_id}", "{rank}")},
                "rank": models.IntegerAttribute(null=True),
                "cascade": True,
            },
            "children: no key of catalog.Daughter lists the children of one Mother, to which deletions should",
        ),
        (
            {"parent": (models.Model,), "child": (models.Model,), "cascade": True},
            "children: no key of catalog.Daughter lists the children of one Mother, to which deletions should",
        ),
        (
            {"keys": BY_MOTHER, "parent_options": {"purge_after": timedelta(days=1)}, "cascade": True},
            "children: Mother is purged by Meta.purge_after, and catalog.Daughter would stay in the trash.",
        ),
        (
            {
                "keys": BY_MOTHER,
                "deleted_at": models.TimestampAttribute(stored_as="iso", null=True, attr_name="deletedAt"),
                "cascade": True,
            },
            "children: Mother and catalog.Daughter store deleted_at in different forms, but share its value in the "
            "trash.",
        ),
        (
            {"keys": BY_MOTHER, "child_options": {"table": "kinds"}, "cascade": True},
            "children: catalog.Daughter is in another table, and cannot be deleted in one transaction with its parent.",
        ),
    ],
)
def test_children_that_cannot_go_along_are_found(options: dict[str, Any], text: str) -> None:
    """E014 names the children and the reason."""
    found = messages(family(**options))
    assert [id for id, _ in found] == ["dynamo_single.E014"]
    assert found[0][1].startswith(text)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"bases": (models.Model,)}, r"D.Meta.purge_after has no effect: the model has no soft delete"),
        ({"after": 30}, r"D.Meta.purge_after = 30 is no time: give timedelta\(days=30\)"),
        ({"after": timedelta()}, r"D.Meta.purge_after = datetime.timedelta\(0\) is no time"),
        ({"expires_at": models.TTLAttribute()}, r"D has a TTLAttribute and Meta.purge_after"),
        ({"purge_at": models.TimestampAttribute()}, r"D.purge_at is the attribute of Meta.purge_after"),
    ],
)
def test_purging_that_cannot_be_is_refused(options: dict[str, Any], text: str) -> None:
    """The declaration raises an error."""
    after = options.pop("after", timedelta(days=1))
    with pytest.raises(ConfigurationError, match=text):
        declare(
            "D", ("D#{d}", "#X"), options={"purge_after": after}, d=models.IdAttribute(), **{"bases": SOFT, **options}
        )
