"""``stored_as`` on a real engine: another program's items are read, found, changed in place, and kept."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pynamodb.attributes as pynamodb
import pytest
from django.core import serializers
from django.db.models import F, Q
from django.forms import modelform_factory

from dynamo_single import models
from dynamo_single.exceptions import NotSupported, StaleObject, UnreadableItem
from dynamo_single.table import Request, Table
from dynamo_single.testing import assert_requests
from tests.contract.tables import assert_consistent
from tests.unit.declaring import declare, forgotten

NOON = datetime(2024, 5, 1, 12, tzinfo=UTC)
SECOND = timedelta(seconds=1)
#: An item as another program wrote it: other precisions, other order of JSON keys, an attribute of its own.
FOREIGN = {
    "pk": {"S": "POST#1"},
    "sk": {"S": "#METADATA"},
    "itemType": {"S": "Post"},
    "post_id": {"S": "1"},
    "at": {"N": "1714564800.25"},
    "iso": {"S": "2024-05-01T14:00:00+02:00"},
    "seen": {"S": "2024-05-01T12:00:00.123456+0000"},
    "short": {"S": "2024-05-01T12:00:00Z"},
    "done": {"N": "1"},
    "body": {"S": '{"b": 1, "a": [1.50]}'},
    "blob": {"B": b"YWJj"},
    "rev": {"N": "3"},
    "theirs": {"S": "kept"},
}


@pytest.fixture
def post() -> Iterator[Any]:
    """A model of each form, with keys that contain them."""
    with forgotten():
        yield declare(
            "Post",
            ("POST#{post_id}", "#METADATA"),
            {
                "by_seen": models.IndexKey("gs1", "POST", "{seen}#{post_id}"),
                "by_short": models.IndexKey("gs2", "POST#{done}", "{short}#{post_id}"),
            },
            post_id=models.UnicodeAttribute(),
            at=models.TimestampAttribute(stored_as="seconds", null=True),
            iso=models.TimestampAttribute(stored_as="iso", null=True),
            seen=models.TimestampAttribute(stored_as="pynamodb", null=True),
            short=models.TimestampAttribute(stored_as="%Y-%m-%dT%H:%M:%SZ", null=True),
            done=models.BooleanAttribute(stored_as="number", default=False),
            body=models.JSONAttribute(stored_as="text", null=True),
            blob=models.BinaryAttribute(stored_as="base64", null=True),
            title=models.UnicodeAttribute(null=True),
            number=models.IntegerAttribute(null=True),
            expires_at=models.TTLAttribute(),
            rev=models.VersionAttribute(attr_name="rev"),
        )


def raw(table: Table, number: str = "1") -> dict[str, Any]:
    """Return the stored item."""
    key = {"pk": {"S": f"POST#{number}"}, "sk": {"S": "#METADATA"}}
    found: dict[str, Any] = table.send(Request("GetItem", {"Key": key, "ConsistentRead": True}))["Item"]
    return found


@pytest.fixture
def foreign(table: Table, post: Any) -> Any:
    """An object of the other program's item."""
    table.send(Request("PutItem", {"Item": FOREIGN}))
    return post.objects.get(pk="1")


READ = {
    "at": NOON + timedelta(milliseconds=250),
    "iso": NOON,
    "seen": NOON + timedelta(microseconds=123456),
    "short": NOON,
    "done": True,
    "blob": b"abc",
    "rev": 3,
}


def test_all_ways_to_read_give_the_values(foreign: Any, post: Any) -> None:
    scanned = post.objects.allow_scan()
    assert {name: getattr(foreign, name) for name in READ} == READ
    assert {name: getattr(scanned.get(), name) for name in READ} == READ
    assert scanned.values(*READ).get() == READ
    assert {name: getattr(next(iter(post.scan())), name) for name in READ} == READ


def test_a_save_without_a_change_sends_nothing(foreign: Any) -> None:
    with assert_requests(0):
        foreign.save()


def test_a_save_leaves_other_values_as_stored(table: Table, foreign: Any) -> None:
    foreign.title = "new"
    foreign.save()
    after = raw(table)
    kept = {name: value for name, value in FOREIGN.items() if name != "rev"}
    assert {name: after[name] for name in kept} == kept
    assert (after["rev"], after["title"]) == ({"N": "4"}, {"S": "new"})


def test_each_form_is_written(table: Table, post: Any) -> None:
    moment = NOON + timedelta(microseconds=123456)
    post.objects.create(
        post_id="1", at=moment, iso=moment, seen=moment, short=moment, done=True, body={"a": 1}, blob=b"abc",
        expires_at=moment,
    )  # fmt: skip
    found = raw(table)
    assert {
        name: found[name] for name in ("at", "iso", "seen", "short", "done", "body", "blob", "rev", "expiresAt")
    } == {
        "at": {"N": "1714564800"},
        "iso": {"S": "2024-05-01T12:00:00.123Z"},
        "seen": {"S": "2024-05-01T12:00:00.123456+0000"},
        "short": {"S": "2024-05-01T12:00:00Z"},
        "done": {"N": "1"},
        "body": {"S": '{"a": 1}'},
        "blob": {"B": b"YWJj"},
        "rev": {"N": "1"},
        "expiresAt": {"N": "1714564800"},
    }
    assert (found["gs1sk"], found["gs2sk"]) == (
        {"S": "2024-05-01T12:00:00.123456+0000#1"},
        {"S": "2024-05-01T12:00:00Z#1"},
    )


def write_bulk(post: Any, given: list[dict[str, Any]]) -> None:
    post.objects.bulk_create([post(**each) for each in given])


def write_each(post: Any, given: list[dict[str, Any]]) -> None:
    for each in given:
        post.objects.create(**each)


def write_fixture(post: Any, given: list[dict[str, Any]]) -> None:
    text = serializers.serialize("json", [post(**each) for each in given])
    for each in serializers.deserialize("json", text):
        each.save()


def write_updates(post: Any, given: list[dict[str, Any]]) -> None:
    for each in given:
        post.objects.create(post_id=each["post_id"])
        post.objects.filter(pk=each["post_id"]).update(**{name: each[name] for name in each if name != "post_id"})


@pytest.mark.usefixtures("table")
@pytest.mark.parametrize("write", [write_bulk, write_each, write_fixture, write_updates])
def test_moments_are_found_in_order_however_written(post: Any, write: Any) -> None:
    names = ("at", "iso", "seen", "short")
    moments = [NOON + SECOND * number for number in range(4)]
    given = [{"post_id": str(i), **dict.fromkeys(names, moment)} for i, moment in enumerate(moments)]
    write(post, [{**each, "done": int(each["post_id"]) % 2 == 0} for each in given])
    scanned = post.objects.allow_scan().allow_in_memory()
    for name in names:
        found = {
            lookup: [each.pk for each in scanned.filter(**{f"{name}__{lookup}": value}).order_by(name)]
            for lookup, value in {
                "exact": moments[1],
                "gt": moments[1],
                "lte": moments[1],
                "range": (moments[1], moments[2]),
                "in": [moments[0], moments[3]],
                "year": 2024,
                "date": NOON.date(),
            }.items()
        }
        assert found == {
            "exact": ["1"], "gt": ["2", "3"], "lte": ["0", "1"], "range": ["1", "2"], "in": ["0", "3"],
            "year": ["0", "1", "2", "3"], "date": ["0", "1", "2", "3"],
        }, name  # fmt: skip
    assert [each.pk for each in scanned.filter(done=True).order_by("seen")] == ["0", "2"]


@pytest.mark.usefixtures("table")
def test_a_key_answers_ranges_of_texts(post: Any) -> None:
    for number in range(4):
        post.objects.create(post_id=str(number), seen=NOON + timedelta(microseconds=number))
    with assert_requests(["Query"]):
        after = [each.pk for each in post.objects.filter(seen__gt=NOON + timedelta(microseconds=1)).order_by("seen")]
    with assert_requests(["Query"]):
        one = [each.pk for each in post.objects.filter(seen=NOON + timedelta(microseconds=2))]
    assert (after, one) == (["2", "3"], ["2"])


@pytest.mark.usefixtures("table")
def test_conditions_compare_in_the_form(post: Any) -> None:
    made = post.objects.create(post_id="1", iso=NOON, done=True)
    made.title = "a"
    made.save(condition=Q(iso__lt=NOON + SECOND, done=True))
    assert post.objects.filter(pk="1", iso=NOON, done=True).update(title="b") == 1
    assert post.objects.filter(pk="1", done=False).update(title="c") == 0
    done: Any = True
    found = [each.pk for each in post.query("POST#1", None, (post.iso == NOON) & (post.done == done))]
    assert found == ["1"]


def test_pynamodbs_writers_write_the_form(table: Table) -> None:
    with forgotten():
        plain = declare(
            "Plain",
            ("POST#{post_id}", "#METADATA"),
            post_id=models.UnicodeAttribute(),
            iso=models.TimestampAttribute(stored_as="iso"),
            done=models.BooleanAttribute(stored_as="number"),
        )
        with plain.batch_write() as batch:
            batch.save(plain(post_id="2", iso=NOON, done=True))
    assert (raw(table, "2")["iso"], raw(table, "2")["done"]) == ({"S": "2024-05-01T12:00:00.000Z"}, {"N": "1"})


@pytest.mark.usefixtures("table")
def test_seconds_are_added_to_numbers(post: Any) -> None:
    post.objects.create(post_id="1", at=NOON, iso=NOON)
    post.objects.filter(pk="1").update(at=F("at") + timedelta(minutes=1))
    assert post.objects.get(pk="1").at == NOON + timedelta(minutes=1)


@pytest.mark.usefixtures("table")
@pytest.mark.parametrize(
    ("act", "said"),
    [
        (lambda post: post.objects.filter(pk="1").update(iso=F("iso") + SECOND), "has a string"),
        (lambda post: post.objects.filter(pk="1").update(iso=F("at")), "Cannot set"),
        (lambda post: post.objects.filter(pk="1").update(at=F("expires_at")), "Cannot set"),
        (lambda post: post.objects.filter(pk="1").update(number=F("done")), "Cannot set"),
        (lambda post: post.objects.filter(pk="1").update(number=F("done") + 1), "Cannot compute"),
        (lambda post: list(post.objects.filter(pk="1", iso__gt=F("seen"))), "stored types differ"),
        (lambda post: list(post.objects.filter(pk="1", at=F("iso"))), "stored types differ"),
        (lambda post: list(post.objects.filter(pk="1", number=F("done"))), "stored types differ"),
        (lambda post: list(post.objects.allow_scan().filter(blob__gt=b"a")), "does not sort"),
        (lambda post: list(post.objects.allow_scan().filter(blob__startswith=b"a")), "does not sort"),
        (lambda post: list(post.objects.allow_scan().filter(body__gt="a")), "JSON string"),
    ],
)
def test_what_is_stored_otherwise_is_refused(post: Any, act: Any, said: str) -> None:
    with assert_requests(0), pytest.raises(NotSupported, match=said):
        act(post)


@pytest.mark.usefixtures("table")
def test_equal_forms_are_compared(post: Any) -> None:
    post.objects.create(post_id="1", at=NOON, expires_at=datetime(2100, 1, 1, tzinfo=UTC))
    assert [each.pk for each in post.objects.filter(pk="1", at__lt=F("expires_at"))] == ["1"]


def test_an_unreadable_text_names_its_attribute(table: Table, post: Any) -> None:
    table.send(Request("PutItem", {"Item": {**FOREIGN, "iso": {"S": "yesterday"}}}))
    with pytest.raises(UnreadableItem, match="iso"):
        list(post.objects.allow_scan())


@pytest.mark.usefixtures("table")
def test_a_form_field_takes_what_was_typed(post: Any) -> None:
    form_class = modelform_factory(post, fields=["iso", "seen", "done", "body"])
    form = form_class({"iso": "2024-05-01 12:00:00", "seen": "2024-05-01 12:00:00", "done": "on", "body": '{"a": 1}'})
    form.instance.post_id = "1"
    assert form.is_valid(), form.errors
    form.save()
    found = post.objects.get(pk="1")
    assert (found.iso, found.seen, found.done, found.body) == (NOON, NOON, True, {"a": 1})


class TheirPost(pynamodb.MapAttribute):
    """The values as PynamoDB's attributes store them."""

    seen = pynamodb.UTCDateTimeAttribute()
    body = pynamodb.JSONAttribute()
    expires_at = pynamodb.TTLAttribute()
    rev = pynamodb.VersionAttribute()


def test_pynamodb_reads_what_is_written(table: Table, post: Any) -> None:
    values = {
        "seen": NOON + timedelta(microseconds=5),
        "body": {"b": [1, "x"]},
        "expires_at": datetime(2100, 1, 1, tzinfo=UTC),
    }
    post.objects.create(post_id="1", **values)
    found = raw(table)
    attributes = TheirPost.get_attributes()
    stored = {"expires_at": "expiresAt"}
    read = {name: each.deserialize(found[stored.get(name, name)][each.attr_type]) for name, each in attributes.items()}
    assert read == {**values, "rev": 1}


@pytest.mark.parametrize("form", ["seconds", "iso", "pynamodb"])
def test_the_trash_marks_in_the_form(table: Table, form: str) -> None:
    with forgotten():
        folder: Any = declare(
            "Folder",
            ("POST#{post_id}", "#METADATA"),
            {"all": models.IndexKey("gs1", "POST", "{post_id}")},
            bases=(models.SoftDeleteModel,),
            post_id=models.UnicodeAttribute(),
            deleted_at=models.TimestampAttribute(stored_as=form, null=True, editable=False, attr_name="deletedAt"),
        )
        for number in "12":
            folder.objects.create(post_id=number)
        folder.objects.get(pk="1").delete()
        kind = "N" if form == "seconds" else "S"
        assert raw(table)["deletedAt"].keys() == {kind}
        assert [each.pk for each in folder.objects.all()] == ["2"]
        assert [each.pk for each in folder.deleted_objects.all()] == ["1"]
        assert_consistent()
        folder.deleted_objects.all().restore()
        assert [each.pk for each in folder.objects.all()] == ["1", "2"]
        assert_consistent()


# The version of another name: PynamoDB's condition and ours are the same.


def their_save(table: Table, *, version: int) -> None:
    """Send the request of PynamoDB's ``save()``: the whole item, if its version is unchanged."""
    item = {**raw(table), "title": {"S": "theirs"}, "rev": {"N": str(version + 1)}}
    condition = {
        "ConditionExpression": "#v = :v",
        "ExpressionAttributeNames": {"#v": "rev"},
        "ExpressionAttributeValues": {":v": {"N": str(version)}},
    }
    table.send(Request("PutItem", {"Item": item, **condition}))


@pytest.mark.parametrize("act", ["save", "delete", "update_fields"])
def test_a_version_of_another_name_is_held(table: Table, foreign: Any, act: str) -> None:
    their_save(table, version=3)
    foreign.title = "ours"
    with pytest.raises(StaleObject):
        foreign.delete() if act == "delete" else foreign.save(
            update_fields=["title"] if act == "update_fields" else None
        )
    assert raw(table)["title"] == {"S": "theirs"}


def test_an_update_counts_the_version(table: Table, foreign: Any, post: Any) -> None:
    post.objects.filter(pk="1").update(title="a")
    post.objects.filter(Q(pk="1") & Q(title="a")).update(title="b")
    assert raw(table)["rev"] == {"N": "5"}
    assert "version" not in raw(table)
