"""Cursors as strings: valid ones are read unchanged, and any other string raises an error with the reason."""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable
from typing import Any

import pytest
from django.core import signing
from django.core.exceptions import SuspiciousOperation
from django.test import override_settings
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from dynamo_single.contrib.table_admin.table_reads import Place
from dynamo_single.exceptions import InvalidCursor
from dynamo_single.orm.plan.plan import KeyCondition, Plan
from dynamo_single.orm.plan.planner import plan
from dynamo_single.orm.reading.cursors import SALT, Cursor, decode, encode
from dynamo_single.orm.reading.positions import Position, narrow
from tests.unit.factories import ACCOUNT, COMPANY, EVENT, PERSON, SESSION, Space, ask, moment

TEXTS = st.text(st.characters(codec="utf-8"), max_size=20)
PEOPLE = plan(ask(PERSON, {"company_id": "1", "name": "Anna"}))
CURSOR = Cursor(Position(0, "PEOPLE#7", ("COMPANY#1", "PEOPLE#7")))

#: A position and a cursor as an earlier release wrote them, with this key.
FORMER_KEY = "only-for-this-test"
FORMER_PLACE = (
    "9nSnDXsiKVLTDBUbEFbBneUEdsRh0i9_H4HKefaEzOvVdQiG_VtjKe8KzdR6osedwRCgHZhgNZEwmWs9XAN652dg.IbdI-h0DrjJ"
    "OwYTexOTnU3Vt94p21hCyuTvseF55MTE"
)
FORMER_CURSOR = (
    "MrcwuUGb4oAbtFyktb-wLdMSpf9oGHIdQVfOlF4o2itPoegchv1IheRI4nFO7IpJQwlDQ82XO5PZpBhotjMBU-ytZmGvgpUcnfqL"
    "Y66Wl3Y03UdCQb4JihGOldgRflUvYkOgsNeO6ncLvNAf9TsnKg.y-HBCuIig3r9BYn6213FJ3bQo9YInZQpU8uy6tqTwLo"
)


def reason(text: Any, of: Plan = PEOPLE) -> str:
    """Return the reason for an invalid cursor."""
    with pytest.raises(InvalidCursor) as refused:
        decode(text, of)
    return str(refused.value)


@given(
    stream=st.integers(0, 10_000),
    sort=TEXTS,
    key=st.none() | st.tuples(TEXTS, TEXTS),
    values=st.lists(st.sampled_from([{"N": "1"}, {"S": "é#"}])),
    backward=st.booleans(),
)
def test_a_cursor_comes_back_as_it_was(stream: int, sort: str, key: Any, values: Any, backward: bool) -> None:
    """This includes any position and both directions; the same cursor is always the same string."""
    cursor = Cursor(Position(stream, sort, key, tuple(values)), backward)
    text = encode(cursor, PEOPLE)
    assert decode(text, PEOPLE) == cursor
    assert encode(cursor, PEOPLE) == text


@override_settings(SECRET_KEY=FORMER_KEY)
def test_a_cursor_of_an_earlier_release_is_read() -> None:
    """Salts and fingerprints do not depend on names of modules: an open page continues after a deployment."""
    assert decode(FORMER_CURSOR, PEOPLE) == CURSOR


@override_settings(SECRET_KEY=FORMER_KEY)
def test_a_place_of_an_earlier_release_is_read() -> None:
    """The pages about the table do this too."""
    asked = ("health", "default")
    assert Place.of(FORMER_PLACE, asked) == Place(asked, {"PK": "USER#1", "SK": "USER"})


def test_a_cursor_needs_no_escaping_and_tells_nothing() -> None:
    """It contains only characters that are safe in URLs, and reveals no key."""
    text = encode(CURSOR, PEOPLE)
    assert text.replace("-", "").replace("_", "").replace(".", "").isalnum()
    body = signing.b64_decode(text.partition(".")[0].encode())
    assert b"PEOPLE" not in body
    for start in range(len(body)):
        with pytest.raises(zlib.error):
            zlib.decompress(body[start:])


def test_similar_cursors_do_not_look_alike() -> None:
    """Each is encrypted with a separate stream: two never show their difference."""
    first, second = (
        signing.b64_decode(encode(Cursor(Position(0, sort, ("COMPANY#1", sort))), PEOPLE).partition(".")[0].encode())
        for sort in ("PEOPLE#7", "PEOPLE#8")
    )
    same = sum(one == other for one, other in zip(first, second, strict=False))
    assert same < len(first) / 4


FORGED: list[tuple[str, Callable[[str], Any]]] = [
    ("one character changed", lambda text: text[:-1] + ("A" if text[-1] != "A" else "B")),
    ("the body changed", lambda text: ("A" if text[0] != "A" else "B") + text[1:]),
    ("cut off", lambda text: text[:-10]),
    ("no signature", lambda text: text.partition(".")[0]),
    ("another signature", lambda text: text.partition(".")[0] + "." + "A" * 43),
    ("nothing that was ever one", lambda text: "2"),
    ("a number", lambda text: 2),
    ("foreign characters", lambda text: "é\udc80" + text),
    ("signed for another purpose", lambda text: signing.Signer(sep=".", salt="other").sign(text.partition(".")[0])),
    ("made with another secret", lambda text: made_with("another", CURSOR)),
]


def made_with(secret: str, cursor: Cursor, **more: Any) -> str:
    """A cursor of a site with another ``SECRET_KEY``."""
    with override_settings(SECRET_KEY=secret, **more):
        return encode(cursor, PEOPLE)


@pytest.mark.parametrize(("name", "forge"), FORGED, ids=[name for name, _ in FORGED])
def test_a_forged_cursor_is_refused(name: str, forge: Callable[[str], Any]) -> None:
    """A string from elsewhere raises an error that names the fix."""
    text = encode(CURSOR, PEOPLE)
    assert decode(text, PEOPLE) == CURSOR
    said = reason(forge(text))
    assert "is not a cursor of this site" in said
    assert said.endswith("Start again without a cursor.")
    assert len(said) < 200


def test_a_refused_cursor_is_a_bad_request() -> None:
    """Django returns status 400 unless a view catches the error."""
    assert issubclass(InvalidCursor, SuspiciousOperation)


def test_a_former_secret_still_opens_cursors() -> None:
    """While a former ``SECRET_KEY`` is a fallback, its cursors are valid; new ones use the new key."""
    old = made_with("old", CURSOR)
    with override_settings(SECRET_KEY="new", SECRET_KEY_FALLBACKS=["older", "old"]):
        assert decode(old, PEOPLE) == CURSOR
        assert encode(CURSOR, PEOPLE) == made_with("new", CURSOR) != old
    with override_settings(SECRET_KEY="new", SECRET_KEY_FALLBACKS=["older"]):
        assert "not a cursor of this site" in reason(old)


OTHERS: list[tuple[str, Plan]] = [
    ("another value", plan(ask(PERSON, {"company_id": "1", "name": "Ben"}))),
    ("another partition", plan(ask(PERSON, {"company_id": "2", "name": "Anna"}))),
    ("another lookup", plan(ask(PERSON, {"company_id": "1", "name__startswith": "Anna"}))),
    ("one condition less", plan(ask(PERSON, {"company_id": "1"}))),
    ("one condition more", plan(ask(PERSON, {"company_id": "1", "name": "Anna", "age__gt": 3}))),
    ("an order", plan(ask(PERSON, {"company_id": "1", "name": "Anna"}, ["person_id"]))),
    ("the opposite order", plan(ask(PERSON, {"company_id": "1", "name": "Anna"}, ["-person_id"]))),
    ("reversed", PEOPLE.backwards()),
    ("other objects", plan(ask(PERSON, {"company_id": "1", "name": "Anna"}, visibility="all"))),
    ("a named index", plan(ask(PERSON, {"company_id": "1", "name": "Anna"}, using_index="primary"))),
    ("an index left out", plan(ask(PERSON, {"company_id": "1", "name": "Anna"}, without=("by_id",)))),
]


@pytest.mark.parametrize(("name", "other"), OTHERS, ids=[name for name, _ in OTHERS])
def test_a_cursor_of_another_query_is_refused(name: str, other: Plan) -> None:
    """For any difference, the message names the query."""
    said = reason(encode(CURSOR, other))
    assert said.startswith("This cursor of directory.Person belongs to a different query.")
    assert said.endswith("Start again without a cursor.")
    assert decode(encode(CURSOR, other), other) == CURSOR


def test_a_cursor_of_another_model_is_refused() -> None:
    """The message names both models."""
    text = encode(CURSOR, plan(ask(COMPANY, {"name": "Anna"})))
    assert reason(text).startswith("This cursor is for objects of directory.Company, not of directory.Person.")


def events(primary: tuple[str, str] = ("EVENT#{stream}", "{number}"), number: str = "number", **index: Any) -> Plan:
    """Return the plan of one query with other keys."""
    model = Space().model("directory.Event", {"stream": "text", "number": number, "kind": "text"}, primary, index)
    return plan(ask(model, {"stream": "s"}))


CHANGED_KEYS = [
    ("another partition key", events(("STREAM#{stream}", "{number}"))),
    ("another sort key", events(("EVENT#{stream}", "AT#{number}"))),
    ("another format", events(("EVENT#{stream}", "{number:08d}"))),
    ("another type", events(number="text")),
    ("another index", events(("EVENT#{stream}#{number}", "#METADATA"), by_stream=("gs1", "S#{stream}", "{number}"))),
]


@pytest.mark.parametrize(("name", "changed"), CHANGED_KEYS, ids=[name for name, _ in CHANGED_KEYS])
def test_a_cursor_from_before_a_change_of_keys_is_refused(name: str, changed: Plan) -> None:
    """A place in an order that is there no more is no place."""
    text = encode(CURSOR, events())
    assert decode(text, events()) == CURSOR
    assert reason(text, changed) == (
        "The keys of directory.Event for this query have changed since the cursor was created. "
        "Start again without a cursor."
    )


def test_what_does_not_change_the_order_keeps_cursors_good() -> None:
    """An unused new index, another attribute, and consistent reads do not invalidate a cursor."""
    text = encode(CURSOR, events())
    assert decode(text, events(by_kind=("gs1", "KIND#{kind}", "{number}"))) == CURSOR
    consistent = plan(ask(PERSON, {"company_id": "1", "name": "Anna"}, consistent=True))
    assert decode(encode(CURSOR, PEOPLE), consistent) == CURSOR


def test_the_present_is_no_part_of_a_query() -> None:
    """A cursor of expiring items stays valid."""
    query = ask(SESSION, {"session_key__in": ["a", "b"]})
    text = encode(CURSOR, plan(query, now=1))
    assert decode(text, plan(query, now=2)) == CURSOR


@pytest.mark.parametrize(
    "query",
    [
        ask(COMPANY, {"company_id__in": ["1", "2"]}),
        ask(EVENT, {"at__gt": moment("2024-01-01"), "kind": "k"}),
        ask(ACCOUNT, {"email__canonical": "A@x"}),
        ask(COMPANY, {"stock": "A"}, allow_scan=True),
    ],
)
def test_every_kind_of_plan_has_cursors(query: Any) -> None:
    """Cursors of keys, ranges, canonical keys and scans are valid only for their own query."""
    text = encode(CURSOR, plan(query))
    assert decode(text, plan(query)) == CURSOR
    assert "objects of" in reason(text)


def test_the_salt_is_our_own() -> None:
    """Django's signatures for other purposes are invalid."""
    data = json.dumps(["directory.Person"])
    assert "not a cursor of this site" in reason(signing.dumps(data, salt=SALT))


# the parts of a range from a position on

KEYS = st.sampled_from(["a", "a#", "a#1", "a#1$", "a#2", "a%", "b", "b~"])
CONDITIONS = st.one_of(
    st.builds(lambda: KeyCondition("p")),
    st.builds(
        lambda operator, operand: KeyCondition("p", operator, (operand,)),
        st.sampled_from(["=", "<", "<=", ">", ">=", "begins_with"]),
        KEYS,
    ),
    st.builds(lambda low, high: KeyCondition("p", "between", (min(low, high), max(low, high))), KEYS, KEYS),
)


def reads(condition: KeyCondition, sort: str) -> bool:
    """Return the items that DynamoDB reads, as a reference."""
    operator, operands = condition.operator, condition.operands
    if operator == "begins_with":
        return sort.startswith(operands[0])
    if operator == "between":
        return operands[0] <= sort <= operands[1]
    comparisons: dict[str, Callable[[], bool]] = {
        "": lambda: True,
        "=": lambda: sort == operands[0],
        "<": lambda: sort < operands[0],
        "<=": lambda: sort <= operands[0],
        ">": lambda: sort > operands[0],
        ">=": lambda: sort >= operands[0],
    }
    return comparisons[operator]()


@given(condition=CONDITIONS, sort=KEYS)
def test_what_a_condition_covers(condition: KeyCondition, sort: str) -> None:
    """Exactly the sort keys that DynamoDB reads by it."""
    assert condition.includes(sort) is reads(condition, sort)


@given(condition=CONDITIONS, bound=KEYS, ascending=st.booleans(), sort=KEYS)
def test_a_condition_is_narrowed(condition: KeyCondition, bound: str, ascending: bool, sort: str) -> None:
    """Every key after the limit stays; before it, only keys that the condition excludes go."""
    narrowed = narrow(condition, bound, ascending=ascending)
    behind = sort >= bound if ascending else sort <= bound
    given_by_both = narrowed is not None and reads(narrowed, sort) and condition.includes(sort)
    assert given_by_both is (condition.includes(sort) and behind)
    assert narrowed is None or narrowed.partition == condition.partition
    assert narrowed is None or narrow(replace(narrowed), bound, ascending=ascending) == narrowed
