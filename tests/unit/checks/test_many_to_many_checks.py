"""E031: what the edges of a many-to-many relation lack."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from dynamo_single import models
from dynamo_single.checks.models import check_model
from dynamo_single.exceptions import ConfigurationError
from dynamo_single.orm.schema import registry
from tests.unit.declaring import declare, forgotten, messages


@pytest.fixture(autouse=True)
def _declared() -> Iterator[None]:
    with forgotten():
        yield


PRIMARY = ("HOUSE#{house_id}", "CAT#{cat_id}")
BY_CAT = {"by_cat": models.IndexKey("gs1", "HOUSES#{cat_id}", "{house_id}")}


def house(
    primary: tuple[str, str] = PRIMARY,
    keys: dict[str, Any] | None = None,
    bases: tuple[type, ...] = (models.Model,),
    **attributes: Any,
) -> Any:
    """Houses with cats, by declared edges."""
    cat = declare("Cat", ("CAT#{cat_id}", "#METADATA"), cat_id=models.IdAttribute())
    made = declare(
        "House",
        ("HOUSE#{house_id}", "#METADATA"),
        house_id=models.IdAttribute(),
        cats=models.ManyToMany(cat, through="catalog.Stay"),
    )
    declare(
        "Stay",
        primary,
        BY_CAT if keys is None else keys,
        bases=bases,
        house=models.ReferenceAttribute(made, on_delete=models.DO_NOTHING),
        cat=models.ReferenceAttribute(cat, on_delete=models.DO_NOTHING),
        **attributes,
    )
    return made


def test_a_checked_relation_needs_checked_references() -> None:
    """The message names both sides, each with the line to write."""
    cat = declare("Cat", ("CAT#{cat_id}", "#METADATA"), cat_id=models.IdAttribute())
    made = declare(
        "House",
        ("HOUSE#{house_id}", "#METADATA"),
        house_id=models.IdAttribute(),
        cats=models.ManyToMany(cat, through="catalog.Stay", checked=True),
    )
    declare(
        "Stay",
        PRIMARY,
        BY_CAT,
        house=models.ReferenceAttribute(made, on_delete=models.CASCADE, checked=True),
        cat=models.ReferenceAttribute(cat, on_delete=models.CASCADE),
    )
    ((identifier, text),) = messages(made)
    assert (identifier, text[:49]) == ("dynamo_single.E031", "cats: it is checked, and catalog.Stay.cat is not:")
    (problem,) = check_model(made)
    assert "cat = models.ReferenceAttribute(..., on_delete=models.CASCADE, checked=True)" in (problem.hint or "")


def test_edges_with_keys_for_both_sides_are_fine() -> None:
    made = house()
    assert messages(made) == []
    assert made.check() == []


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"keys": {}}, "cats: no key of catalog.Stay lists the edges of one cat_id."),
        (
            {"primary": ("STAY#{stay_id}", "#METADATA"), "stay_id": models.IdAttribute(), "keys": BY_CAT},
            "cats: the primary key of catalog.Stay does not consist of exactly its two references, so it does not "
            "identify an edge.",
        ),
        (
            {"bases": (models.SoftDeleteModel,)},
            "cats: catalog.Stay has a trash, which would keep each removed edge.",
        ),
    ],
)
def test_what_edges_lack_is_found(options: dict[str, Any], text: str) -> None:
    assert messages(house(**options))[0] == ("dynamo_single.E031", text)


def test_edges_that_are_made_need_nothing() -> None:
    cat = declare("Cat", ("CAT#{cat_id}", "#METADATA"), cat_id=models.IdAttribute())
    made = declare(
        "House",
        ("HOUSE#{house_id}", "#METADATA"),
        house_id=models.IdAttribute(),
        cats=models.ManyToMany(cat, index="gs2"),
    )
    assert messages(made) == messages(made.cats.through) == []
    assert [key.index for key in registry.layout_of(made.cats.through).indexes] == ["gs2"]


def test_the_other_side_may_be_declared_later() -> None:
    made = declare(
        "House", ("HOUSE#{house_id}", "#METADATA"), house_id=models.IdAttribute(), cats=models.ManyToMany("catalog.Cat")
    )
    assert isinstance(made.cats.rel.through, str)
    declare("Cat", ("CAT#{cat_id}", "#METADATA"), cat_id=models.IdAttribute())
    assert registry.layout_of(made.cats.through).identity == ("house_id", "cat_id")


def test_edges_in_both_directions_are_not_made() -> None:
    with pytest.raises(ConfigurationError, match="symmetrical=True would require two edges for each pair"):
        models.ManyToMany("self", symmetrical=True)
