"""Parts of a parent's identity in a child's key: the possible parts and their form."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynamo_single import models
from dynamo_single.exceptions import ConfigurationError
from dynamo_single.orm.items.encode import computed_key
from dynamo_single.orm.schema import registry
from tests.catalog.places import Place
from tests.catalog.tenants import Estate, Lot, LotRemark
from tests.unit.declaring import declare, forgotten, messages

texts = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=6)


@given(texts, st.integers(-99, 10**6), st.integers(-99, 99), texts)
def test_a_child_and_a_grandchild_lie_in_the_roots_partition(tenant: str, code: int, number: int, name: str) -> None:
    """The parts are extracted from any pk unchanged."""
    estate = Estate(tenant=tenant, code=code)
    lot = Lot(estate_id=estate.pk, number=number)
    remark = LotRemark(about_id=lot.pk, remark_id=name)
    partition, sort = computed_key(Lot, lot.__dict__)
    assert partition == computed_key(Estate, estate.__dict__)[0]
    below, beyond = computed_key(LotRemark, remark.__dict__)
    assert below == partition
    assert beyond.startswith(f"{sort}#REMARK#")


def test_a_reference_stays_one_value_of_the_identity() -> None:
    """The child's pk contains the stored reference."""
    assert registry.layout_of(LotRemark).identity == ("about_id", "remark_id")
    lot = Lot(estate_id=Estate(tenant="a", code=1).pk, number=2)
    assert lot.pk == "a~7E~7E1~~2"
    assert LotRemark(about_id=lot.pk, remark_id="x").pk == "a~7E7E~7E7E1~7E~7E2~~x"


@pytest.mark.parametrize(
    ("partition", "reason"),
    [
        ("X#{estate.name}", "{estate.name} leads to 'name', but an item contains only the pk of the "
                            "object that it refers to. "
         "The pk of catalog.Estate is made of tenant, code."),
        ("X#{estate.tenant.more}", "{estate.tenant.more} leads to 'more'"),
        ("X#{owner.name}", "{owner.name} is no part of another object's pk: catalog.Shed has no reference 'owner'. It "
         "has estate"),
        ("X#{estate.code:canonical}", "The format 'canonical' does not fit a number attribute"),
    ],
)  # fmt: skip
def test_a_path_that_leads_nowhere_is_reported_by_the_checks(partition: str, reason: str) -> None:
    """E003 lists the valid names."""
    with forgotten():
        attributes: dict[str, Any] = {
            "shed_id": models.IdAttribute(),
            "estate": models.ReferenceAttribute(Estate, on_delete=models.DO_NOTHING),
        }
        shed = declare("Shed", (partition, "{shed_id}"), **attributes)
        (text,) = [text for id_, text in messages(shed) if id_ == "dynamo_single.E003"]
    assert reason in text


def test_one_value_twice_is_refused() -> None:
    """The same applies to an attribute."""
    with pytest.raises(ConfigurationError, match=r"\{estate.tenant\} appears twice"):
        models.Key("A#{estate.tenant}#{estate.tenant}", "#")


def test_the_one_value_of_a_parents_pk_is_the_reference_itself() -> None:
    """``{home.place_id}`` is written and sorted like ``{home_id}``."""
    with forgotten():
        attributes: dict[str, Any] = {
            "home": models.ReferenceAttribute(Place, on_delete=models.DO_NOTHING),
            "nest_id": models.IdAttribute(),
        }
        nest = declare("Nest", ("PLACE#{home.place_id}", "NEST#{nest_id}"), **attributes)
        assert registry.layout_of(nest).primary.partition.parts[0].ordered
        assert computed_key(nest, {"home_id": "p1", "nest_id": "n"}) == ("PLACE#p1", "NEST#n")


def test_a_path_into_a_document_is_refused_at_once() -> None:
    """The error is the same as before paths through references existed."""
    with (
        forgotten(),
        pytest.raises(
            ConfigurationError, match=r"\{data.price\} leads .*: price = models.ExtractedAttribute\(.data__price.\)"
        ),
    ):
        declare(
            "Crate", ("CRATE#{crate_id}", "{data.price}"), crate_id=models.IdAttribute(), data=models.MapAttribute()
        )
