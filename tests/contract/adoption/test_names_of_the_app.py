"""Attributes of another program that have the app's own names."""

from __future__ import annotations

import pytest

from dynamo_single import models
from dynamo_single.table import Table
from tests.contract.adoption.foreign import ALIAS, foreign_table, stored
from tests.unit.declaring import declare, forgotten


@pytest.mark.parametrize("name", ["pk", "sk", "id", "itemType", "expiresAt"])
def test_attribute_with_the_name_of_the_app_is_kept(engine: Table, name: str) -> None:
    """In a table without types, the key decides which model an item is, and a save keeps the attribute."""
    with foreign_table(PARTITION_KEY="PK", SORT_KEY="SK", TYPE_ATTRIBUTE=None, RAW_KEYS=True) as table, forgotten():
        attributes = {"thing": models.UnicodeAttribute(), "note": models.UnicodeAttribute(null=True)}
        model = declare("Thing", ("THING#{thing}", "A"), None, options={"table": ALIAS}, **attributes)
        table.put(stored(PK="THING#a", SK="A", thing="a", **{name: "theirs"}))
        (found,) = model.objects.allow_scan()
        found.note = "ours"
        found.save()
        assert model.objects.get(thing="a").note == "ours"
        assert table.items() == [stored(PK="THING#a", SK="A", thing="a", note="ours", **{name: "theirs"})]


def test_object_does_not_expire_by_an_attribute_of_others(engine: Table) -> None:
    """The table names its expiry ``ttl``, so a number in ``expiresAt`` is another program's."""
    names = {"PARTITION_KEY": "PK", "SORT_KEY": "SK", "TYPE_ATTRIBUTE": "_type", "TTL_ATTRIBUTE": "ttl"}
    with foreign_table(**names) as table, forgotten():
        attributes = {"thing": models.UnicodeAttribute(), "ends": models.TTLAttribute(null=True)}
        model = declare("Thing", ("THING#{thing}", "A"), None, options={"table": ALIAS}, **attributes)
        table.put(stored(PK="THING#a", SK="A", _type="Thing", thing="a", expiresAt=1))
        found = [model.objects.get(thing="a"), *model.objects.filter(thing="a")]
        assert [(each.thing, each.ends) for each in found] == [("a", None)] * 2
