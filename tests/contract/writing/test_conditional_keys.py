"""``IndexKey(condition=...)``: an item is in the index exactly while it meets the condition, whatever writes it."""

from __future__ import annotations

import re
from contextlib import suppress
from typing import Any

import pytest
from django.db.models import F, Q
from hypothesis import given, settings
from hypothesis import strategies as st

from dynamo_single import counters, models, transactions
from dynamo_single.contrib.doctor import repair, verify
from dynamo_single.exceptions import NoAccessPattern, NotSupported, StaleObject
from dynamo_single.table import Request, Table
from dynamo_single.testing import assert_requests, capture_requests
from tests.catalog.queues import Alarm, Dispatch, Foreman, Patrol
from tests.contract.racing import before_write
from tests.contract.tables import assert_consistent, everything
from tests.deep import examples
from tests.other_names import own_names
from tests.ready import table_ready
from tests.unit.declaring import declare, forgotten, messages

pytestmark = pytest.mark.usefixtures("table")


def places(table: Table, pk: str = "a") -> dict[str, str]:
    """In which indexes the item of an dispatch is, and its sort key there."""
    item = everything(table)[f"DISPATCH#{pk}", "#METADATA"]
    return {name[:3]: item[name]["S"] for name in sorted(item) if name.endswith("sk") and name != "sk"}


def waiting() -> list[str]:
    """The dispatches that are open, by rank."""
    return [each.pk for each in Dispatch.objects.filter(status="open").order_by("rank")]


def test_only_what_meets_the_condition_is_in_the_index(table: Table) -> None:
    Dispatch.objects.create(dispatch_id="a")
    Dispatch.objects.create(dispatch_id="b", status="done")
    Dispatch.objects.create(dispatch_id="c", status="late", rank=9, owner="Ann")
    assert [places(table, each) for each in "abc"] == [{"gs1": "o#a"}, {}, {}]


@own_names
def test_a_query_that_asks_for_the_condition_is_one_query_without_a_filter(table: Table) -> None:
    """Every item of the index meets the condition, so the query does not need a filter."""
    for pk, rank in (("a", 2), ("b", 1), ("c", 3)):
        Dispatch.objects.create(dispatch_id=pk, rank=rank)
    Dispatch.objects.create(dispatch_id="d", status="done")
    with capture_requests() as sent:
        assert waiting() == ["b", "a", "c"]
    assert [request.operation for request in sent] == ["Query"]
    assert "FilterExpression" not in sent[0].params
    assert Dispatch.objects.filter(status="open", rank__gt=1).count() == 2


@pytest.mark.parametrize("into", [True, False], ids=["comes in", "goes out"])
@pytest.mark.parametrize("how", ["save", "update", "F", "bulk_update", "block", "update_or_create", "F of an object"])
def test_an_item_comes_and_goes_with_the_condition(table: Table, how: str, into: bool) -> None:
    before, after = ({"status": "done", "rank": 4}, {"status": "open", "rank": 5})[:: 1 if into else -1]
    dispatch = Dispatch.objects.create(dispatch_id="a", owner="Ann", **before)
    step = after["rank"] - before["rank"]
    if how == "update":
        Dispatch.objects.filter(pk="a").update(**after)
    elif how == "F":
        Dispatch.objects.filter(pk="a").update(rank=F("rank") + step, status=after["status"])
    elif how == "update_or_create":
        Dispatch.objects.update_or_create(dispatch_id="a", defaults=after)
    elif how == "F of an object":
        dispatch.status, dispatch.rank = after["status"], F("rank") + step
        dispatch.save()
    else:
        dispatch.status, dispatch.rank = after["status"], after["rank"]
        if how == "save":
            dispatch.save()
        elif how == "bulk_update":
            Dispatch.objects.bulk_update([dispatch], ["status", "rank"])
        else:
            with transactions.atomic():
                dispatch.save()
    assert places(table) == ({"gs1": "p5005#a", "gs2": "p5005"} if into else {})
    assert_consistent()


def test_bulk_create_writes_it(table: Table) -> None:
    Dispatch.objects.bulk_create([Dispatch(dispatch_id="a"), Dispatch(dispatch_id="b", status="done")])
    assert (places(table, "a"), places(table, "b")) == ({"gs1": "o#a"}, {})


def test_the_trash_takes_it_out_and_restoring_puts_it_back_if_it_is_met(table: Table) -> None:
    one, other = Dispatch.objects.create(dispatch_id="a"), Dispatch.objects.create(dispatch_id="b", status="done")
    one.delete()
    other.delete()
    assert waiting() == []
    Dispatch.all_objects.filter(pk="b").update(status="open")
    Dispatch.all_objects.filter(pk="a").update(status="done")
    Dispatch.deleted_objects.get(pk="a").restore()
    Dispatch.deleted_objects.get(pk="b").restore()
    assert waiting() == ["b"]
    assert_consistent()


def test_a_moved_object_has_what_its_values_give(table: Table) -> None:
    dispatch = Dispatch.objects.create(dispatch_id="a", status="done")
    dispatch.status = "open"
    dispatch.move(dispatch_id="z")
    assert places(table, "z") == {"gs1": "o#z"}


def test_a_place_in_a_document_can_decide(table: Table) -> None:
    alarm = Alarm.objects.create(alarm_id="a", data={"hot": False, "x": 1})
    hot = Alarm.objects.filter(data__hot=True)
    assert not hot.exists()
    alarm.data["hot"] = True
    alarm.save()
    assert [each.pk for each in hot.all()] == ["a"]
    Alarm.objects.filter(pk="a").update(data__hot=False)
    assert not hot.all().exists()
    assert_consistent()


def test_a_copy_of_another_object_can_decide(table: Table) -> None:
    foreman = Foreman.objects.create(foreman_id="f")
    Patrol.objects.create(patrol_id="a", foreman=foreman)
    foreman.shift = "night"
    foreman.save()
    with assert_requests(["Query"]):
        assert [each.pk for each in Patrol.objects.filter(shift="night")] == ["a"]
    foreman.shift = "day"
    foreman.save()
    assert not Patrol.objects.filter(shift="night").exists()
    assert_consistent()


def test_an_object_that_was_read_in_part_follows_too(table: Table) -> None:
    Dispatch.objects.create(dispatch_id="a", rank=7, owner="Ann", status="done")
    dispatch = Dispatch.objects.only("note").get(pk="a")
    dispatch.status = "open"
    dispatch.save()
    assert places(table) == {"gs1": "p5007#a", "gs2": "p5007"}


def test_a_change_that_decides_nothing_is_one_update(table: Table) -> None:
    dispatch = Dispatch.objects.create(dispatch_id="a")
    dispatch.note = "x"
    with assert_requests(["UpdateItem"]):
        dispatch.save()
    with assert_requests(["UpdateItem"]):
        Dispatch.objects.filter(pk="a").update(note="y")


@pytest.mark.parametrize(
    ("obj", "one", "other"),
    [
        (Dispatch(dispatch_id="a", owner="Ann", status="done"), {"status": "open"}, {"rank": 5}),
        (Alarm(alarm_id="a", status="late", data={"hot": True}), {"status": "new"}, {"data": {"hot": False}}),
    ],
    ids=["both are needed", "either would do"],
)
def test_two_who_each_change_one_of_two_do_not_leave_the_index_wrong(
    table: Table, obj: Any, one: dict[str, Any], other: dict[str, Any]
) -> None:
    """Neither process sees the result alone: the second write fails, and ``update()`` reads again."""
    before = {name: getattr(obj, name) for name in (*one, *other)}
    found = type(obj).objects.filter(pk="a")
    obj.save()
    first, second = found.get(), found.get()
    for each, values in ((first, one), (second, other)):
        for name, value in values.items():
            setattr(each, name, value)
    first.save()
    with pytest.raises(StaleObject):
        second.save()
    found.update(**before)
    with before_write(1, lambda: found.update(**one)):
        found.update(**other)
    assert_consistent()


def test_two_who_each_give_one_of_two_missing_parts_do_not_leave_an_item_out(table: Table) -> None:
    """Each process sees the other part of an unconditional key as missing."""
    with forgotten():
        attributes = {name: models.UnicodeAttribute(null=True) for name in ("street", "town")}
        keys = {"by_town": models.IndexKey("gs1", "TOWN#{town}", "{street}")}
        model = declare("Address", ("ADDRESS#{a_id}", "#"), keys, a_id=models.UnicodeAttribute(), **attributes)
        model.objects.create(a_id="x")
        one, other = model.objects.get(pk="x"), model.objects.get(pk="x")
        one.town, other.street = "Ulm", "Weg"
        one.save()
        with pytest.raises(StaleObject):
            other.save()
        model.objects.filter(pk="x").update(street="Weg")
        assert model.objects.filter(town="Ulm", street__gt="").count() == 1


def test_a_query_that_does_not_ask_for_it_is_answered_by_another_key_or_refused(table: Table) -> None:
    Patrol.objects.create(patrol_id="a", foreman=Foreman.objects.create(foreman_id="f"))
    assert [each.pk for each in Patrol.objects.filter(foreman="f")] == ["a"]
    with pytest.raises(NoAccessPattern) as refused:
        list(Dispatch.objects.filter(rank__gt=1))
    lines = str(refused.value).splitlines()
    why = "it may omit matching items; filter by status='open' too."
    assert f"  waiting (gs1) 'WAITING' / '{{rank}}#{{dispatch_id}}' if status='open': {why}" in lines
    with pytest.raises(NoAccessPattern, match=r"filter by \(data__hot=True \| status='late'\) too"):
        list(Alarm.objects.using_index("hot"))


WRITES = st.tuples(
    st.sampled_from(["save", "stale", "update", "add", "bulk", "trash", "restore", "block"]),
    st.sampled_from(["a", "b"]),
    st.fixed_dictionaries(
        {},
        optional={
            "status": st.sampled_from(["open", "done", "late"]),
            "rank": st.integers(3, 6),
            "owner": st.sampled_from([None, "Ann", "Bob"]),
        },
    ),
)


def write(how: str, pk: str, values: dict[str, Any], stale: dict[str, Any]) -> None:
    """Send one write in a random way; a write with an outdated object may fail."""
    live = Dispatch.objects.filter(pk=pk)
    obj = stale[pk] if how == "stale" else live.first()
    if how == "update":
        live.update(**values, note="x")
    elif how == "add":
        live.filter(rank__lt=6).update(**{**values, "rank": F("rank") + 1})
    elif how == "restore":
        Dispatch.deleted_objects.filter(pk=pk).restore()
    elif obj is not None and how == "trash":
        obj.delete()
    elif obj is not None:
        for name, value in values.items():
            setattr(obj, name, value)
        if how == "bulk":
            Dispatch.objects.bulk_update([obj], ["status", "rank", "owner"])
        elif how == "block":
            with transactions.atomic():
                obj.save()
        else:
            with suppress(StaleObject):
                obj.save()


@settings(max_examples=examples(8, 200))
@given(st.lists(WRITES, min_size=1, max_size=8))
def test_the_index_holds_what_meets_the_condition_after_any_writes(table: Table, writes: list[Any]) -> None:
    """The index is right after any writes, including those with outdated objects."""
    table_ready()
    stale = {pk: Dispatch.objects.create(dispatch_id=pk, rank=4) for pk in ("a", "b")}
    for how, pk, values in writes:
        write(how, pk, values, stale)
        listed = {each.pk: each.rank for each in Dispatch.objects.filter(status="open")}
        stored = [item for item in everything(table).values() if "deletedAt" not in item]
        wanted = [item for item in stored if item["status"]["S"] == "open"]
        assert listed == {item["dispatch_id"]["S"]: int(item["rank"]["N"]) for item in wanted}
    assert_consistent()


def test_explain_shows_the_condition(table: Table) -> None:
    text = str(Dispatch.objects.filter(status="open").explain())
    assert "waiting (gs1) 'WAITING' / '{rank}#{dispatch_id}' if status='open'" in text


def test_a_wrong_place_is_found_and_repaired(table: Table) -> None:
    """The check finds and repairs an item that should have left the index, and one that should be in it."""
    Dispatch.objects.create(dispatch_id="a")
    Dispatch.objects.create(dispatch_id="b", status="done")
    for pk, status in (("a", "done"), ("b", "open")):
        table.send(
            Request(
                "UpdateItem",
                {
                    "Key": {"pk": {"S": f"DISPATCH#{pk}"}, "sk": {"S": "#METADATA"}},
                    "UpdateExpression": "SET #s = :s",
                    "ExpressionAttributeNames": {"#s": "status"},
                    "ExpressionAttributeValues": {":s": {"S": status}},
                },
            )
        )
    assert [finding.kind for finding in verify()] == ["index key", "index key"]
    for finding in verify():
        repair(finding)
    assert waiting() == ["b"]
    assert_consistent()


def test_add_refuses_what_decides(table: Table) -> None:
    with forgotten():
        number = models.IntegerAttribute(default=0)
        keys = {"many": models.IndexKey("gs1", "MANY", "{tally_id}", condition=Q(number__gt=9))}
        model = declare("Tally", ("TALLY#{tally_id}", "#"), keys, tally_id=models.UnicodeAttribute(), number=number)
        with pytest.raises(NotSupported, match=r"number is part of a key"):
            counters.add(model(tally_id="x", number=1), "number")


@pytest.mark.parametrize(
    ("condition", "why"),
    [
        (Q(colour="red"), "Cannot resolve keyword 'colour'"),
        (Q(version__gt=1), "compares 'version', which changes without a read"),
        (Q(deleted_at__isnull=True), "own attributes; objects in the trash have a separate key"),
        (Q(status__in=[]), "no object can meet it"),
        (Q(name__icontains="x"), "not supported|cannot"),
        (Q(status__gt=None), "Cannot use None as a query value"),
        (Q(3), "of the key some: 3 is not a condition on catalog.Odd"),
    ],
    ids=["unknown", "version", "trash", "nobody", "in Python", "none", "no lookup"],
)
def test_a_condition_that_cannot_work_is_an_error_of_the_checks(condition: Q, why: str) -> None:
    with forgotten():
        model = declare(
            "Odd",
            ("ODD#{odd_id}", "#"),
            {"some": models.IndexKey("gs1", "SOME", "{odd_id}", condition=condition)},
            bases=(models.SoftDeleteModel,),
            odd_id=models.UnicodeAttribute(),
            name=models.UnicodeAttribute(),
            status=models.UnicodeAttribute(),
            version=models.VersionAttribute(),
        )
        found = [text for identifier, text in messages(model) if identifier == "dynamo_single.E003"]
        assert len(found) == 1
        assert re.search(why, found[0]), found


def test_children_cannot_be_listed_by_it(table: Table) -> None:
    """The index would omit some children."""
    with forgotten():
        keys = {"by": models.IndexKey("gs1", "OF#{owner_id}", "{part_id}", condition=Q(part_id__gt="a"))}
        owner = declare(
            "Owner",
            ("OWNER#{owner_id}", "#"),
            owner_id=models.UnicodeAttribute(),
            parts=models.Children("Part", cascade=True),
        )
        declare(
            "Part",
            ("PART#{part_id}", "#"),
            keys,
            part_id=models.UnicodeAttribute(),
            owner=models.ReferenceAttribute(owner, on_delete=models.DO_NOTHING),
        )
        assert [identifier for identifier, _ in messages(owner)] == ["dynamo_single.E014"]
