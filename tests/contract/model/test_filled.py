"""The table's state of its items' schema: an incomplete key does not support queries."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from django.db.models import F, Q
from msgspec.structs import replace

from dynamo_single import counters
from dynamo_single.evolution.forms import form_of
from dynamo_single.evolution.snapshots import Snapshot
from dynamo_single.exceptions import FormNotApplied, KeyNotFilled, NoAccessPattern, UnexpectedItem
from dynamo_single.orm.requests.compiler import item_key
from dynamo_single.orm.rollout import knowledge, state_item, states
from dynamo_single.orm.schema import registry
from dynamo_single.orm.schema.fingerprints import key_fingerprints
from dynamo_single.table import Request, Table
from dynamo_single.table.flow import run
from dynamo_single.testing import assert_requests
from tests.catalog.clubs import Club
from tests.catalog.models import Sample
from tests.catalog.servers import GameMember, GamePlayer
from tests.catalog.studios import Artist, Exhibit, Frame, Gallery, Loan, Painting, Tour

#: Migrations make the tests' models depend on the state.
MIGRATED = {"catalog": "tests.backend_project.shop.migrations"}
LAYOUT = registry.layout_of(Club)
FORM = form_of(Snapshot.of(Club), LAYOUT.label)

Say = Callable[..., None]


@pytest.fixture
def say(table: Table, settings: Any) -> Iterator[Say]:
    """Set the state of clubs to the model's, except for some changes."""
    settings.MIGRATION_MODULES = MIGRATED
    knowledge.forget()

    def change(item_type: str = LAYOUT.item_type, **changes: Any) -> None:
        knowledge.change(table, lambda state: state.with_form(item_type, replace(FORM, **changes)))

    yield change
    knowledge.forget()


def test_what_is_filled_costs_one_request_a_process(say: Say) -> None:
    """Later queries and writes do not read the state."""
    say()
    with assert_requests(["GetItem", "Query", "Query", "TransactWriteItems", "GetItem"]):
        for _ in range(2):
            assert list(Club.objects.all()) == []
        Club.objects.create(club_id="c", name="Acme")
        Club.objects.get(pk="c")


def test_a_table_that_says_nothing_is_asked_once(say: Say) -> None:
    """A project that has not started to migrate continues as before."""
    with assert_requests(["GetItem", "Query", "Query"]):
        for _ in range(2):
            assert list(Club.objects.all()) == []


def test_the_first_migration_is_noticed_by_a_process_that_was_there_before(
    say: Say, table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Models that counted as complete without a state are checked again."""
    monkeypatch.setattr(table, "replaced", 0)
    assert list(Club.objects.all()) == []
    with _elsewhere():
        say(keys={})
    with pytest.raises(KeyNotFilled):
        list(Club.objects.all())


def test_that_no_migration_was_applied_is_a_warning(
    say: Say, table: Table, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The process logs one warning per app, from a state that it reads anyway, until the state exists."""
    monkeypatch.setattr(table, "replaced", 0)
    asked = ["UpdateItem", "GetItem", "UpdateItem"]  # it registers, and reports its revision
    with assert_requests([*asked, "Query", "Query", "TransactWriteItems"]):
        assert list(Club.objects.all()) == list(Club.objects.all()) == []
        Club.objects.create(club_id="c", name="Acme")
    (said,) = [each for each in caplog.records if "'catalog'" in each.getMessage()]
    assert said.levelname == "WARNING"
    assert said.getMessage() == (
        f"The app 'catalog' has migrations, but the table '{table.name}' has no record of catalog.Club: the migration "
        "that adds it was not applied there. Items that do not match the model are not detected, and a renamed "
        "attribute reads as None. Run manage.py migrate, with --fake-initial if the items already exist."
    )
    caplog.clear()
    say()
    Club.objects.get(pk="c")
    assert not caplog.records


def test_of_an_app_without_migrations_there_is_no_warning(
    table: Table, settings: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A test table has no applied migrations either, and does not log a warning."""
    with _elsewhere():
        assert list(Club.objects.all()) == []
    monkeypatch.setattr(table, "replaced", 0)
    settings.MIGRATION_MODULES = {"catalog": None}
    with _elsewhere():
        assert list(Club.objects.all()) == []
    assert not caplog.records


def test_an_app_without_migrations_is_not_asked_about(say: Say, settings: Any) -> None:
    """No request is sent."""
    say(primary="table: OTHER / {x}")
    settings.MIGRATION_MODULES = {"catalog": None}
    with assert_requests(["Query"]):
        assert list(Club.objects.all()) == []


def test_a_table_that_is_trusted_is_not_asked(say: Say, settings: Any, table: Table) -> None:
    """``MIGRATIONS = "trust"`` leaves the check to the operator. The process only registers its presence."""
    say(keys={})
    described = table.settings
    url = f"{described.endpoint_url}/{described.table_name}?region={described.region}&migrations=trust"
    settings.DYNAMO_SINGLE = {**settings.DYNAMO_SINGLE, "default": url.replace("http://", "dynamodb://")}
    with assert_requests(["UpdateItem", "Query"]):
        assert list(Club.objects.all()) == []


@pytest.mark.parametrize("keys", [{}, dict.fromkeys(FORM.keys, "written")], ids=["absent", "written"])
def test_a_key_that_is_not_filled_answers_no_query(say: Say, keys: dict[str, Any]) -> None:
    """The query raises an error instead of omitting objects."""
    say(keys=keys)
    with pytest.raises(KeyNotFilled, match=r"by_name \(gs1\) .* could omit objects.*manage.py migrate"):
        list(Club.objects.all())


def test_another_key_answers_in_the_place_of_one_that_is_not_filled(say: Say) -> None:
    """The complete primary key still finds an object, and an unsupported query stays NoAccessPattern."""
    say(keys={})
    club = Club.objects.create(club_id="c", name="Acme")
    assert Club.objects.get(pk="c") == Club.objects.get(club_id="c", name="Acme") == club
    with pytest.raises(NoAccessPattern):
        list(Club.objects.order_by("created_at"))


def test_the_trash_is_refused_while_its_key_is_not_filled(say: Say) -> None:
    """The trash has a separate key."""
    live = key_fingerprints(LAYOUT)["by_name"]
    say(keys={live: "public"})
    assert list(Club.objects.all()) == []
    with pytest.raises(KeyNotFilled, match="trash"):
        list(Club.deleted_objects.all())


@pytest.mark.parametrize(
    "query",
    [
        Q(name__startswith="A"),
        Q(name="Acme"),
        Q(name="Acme") | Q(pk="c"),
        ~Q(name="Acme"),
        ~(Q(name="Acme") & Q(pk="c")),
        Q(name=F("club_id")),
    ],
)
def test_an_attribute_that_some_items_lack_is_no_condition(say: Say, query: Q) -> None:
    """The object shows its default, but DynamoDB would compare the stored value."""
    say(unfilled=("name",))
    with pytest.raises(KeyNotFilled, match="needs name"):
        list(Club.objects.filter(query))
    assert list(Club.objects.all()) == []


def test_an_order_by_an_attribute_that_some_items_lack_is_refused(say: Say) -> None:
    """They would come at the wrong place, or not at all."""
    say(unfilled=("name",))
    with pytest.raises(KeyNotFilled, match="needs name"):
        list(Club.objects.order_by("name"))


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"primary": "primary CLUB#{uuid}"}, r"have the key .primary CLUB#\{uuid\}"),
        ({"attributes": {"title": "S text"}}, "stores created_at as 'createdAt', which its items do not have"),
        (
            {"attributes": {**FORM.attributes, "name": "name Number"}},
            "name as .name .*., and its items have .name Number",
        ),
        ({"item_type": "Association"}, "have the itemType 'Association' instead of 'Club'"),
    ],
    ids=["primary key", "attribute", "type", "item type"],
)
@pytest.mark.parametrize(
    "ask",
    [
        lambda: list(Club.objects.all()),
        lambda: Club.objects.get(pk="c"),
        lambda: Club.objects.in_bulk(["c"]),
        lambda: Club.objects.create(club_id="c", name="Acme"),
        lambda: Club.objects.filter(pk="c").update(name="Acme"),
        lambda: Club.objects.bulk_create([Club(club_id="c", name="Acme")]),
    ],
    ids=["list", "get", "in_bulk", "create", "update", "bulk_create"],
)
def test_items_of_another_form_are_neither_read_nor_written(
    say: Say, table: Table, changes: dict[str, Any], said: str, ask: Callable[[], object]
) -> None:
    """Code that is older or newer than the table's items stops at its first request."""
    say(**changes)
    with pytest.raises(FormNotApplied, match=f"{said}.*manage.py migrate"):
        ask()
    assert len(table.send(Request("Scan"))["Items"]) == 1


def test_an_object_is_not_read_again_in_another_form(say: Say) -> None:
    """An object that was read before the change raises the error too."""
    club = Club.objects.create(club_id="c", name="Acme")
    say(attributes={"title": "S text"})
    with pytest.raises(FormNotApplied):
        club.refresh_from_db()


def test_nothing_is_added_to_a_number_in_another_form(say: Say, table: Table) -> None:
    """``counters.add()`` writes past the ways of an object."""
    say("Sample", label="catalog.sample")
    with pytest.raises(FormNotApplied):
        counters.add(Sample(sample_id="s", integer=1), "integer")
    assert len(table.send(Request("Scan"))["Items"]) == 1


def test_a_rule_that_is_not_filled_finds_no_object_by_its_claim(say: Say) -> None:
    """The claim might be missing: the listing key finds the object, or the error names the open change."""
    say(rules=dict.fromkeys(FORM.rules, "written"))
    with pytest.raises(KeyNotFilled, match="the claims on name, which may be incomplete"):
        Club.objects.consistent().get(name="Acme")
    with assert_requests(["Query"]), pytest.raises(Club.DoesNotExist):
        Club.objects.get(name="Acme")


def test_what_was_open_is_asked_again_after_a_while(say: Say) -> None:
    """A process detects the end of a migration without a restart."""
    say(keys={}, rules=dict.fromkeys(FORM.rules, "written"))
    with pytest.raises(KeyNotFilled):
        list(Club.objects.all())
    with pytest.raises(KeyNotFilled):
        Club.objects.consistent().get(name="Acme")
    with _elsewhere():
        say()
    assert list(Club.objects.all()) == []
    assert not Club.objects.consistent().filter(name="Acme").exists()


@contextmanager
def _elsewhere() -> Iterator[None]:
    """Hide changes in the block from this process, as if another process made them."""
    held = dict(knowledge._tables)
    yield
    knowledge._tables.update(held)


def test_two_that_change_the_state_at_once_lose_nothing(say: Say, table: Table) -> None:
    """The second change reads the first one's result."""
    say()

    def slow(state: states.TableState) -> states.TableState:
        if not state.owner:
            knowledge.change(table, lambda found: replace(found, owner="first"))
        return replace(state, forms={**state.forms, "Other": FORM})

    knowledge.change(table, slow)
    found = run(knowledge.state_of(table))
    assert (found.owner, sorted(found.forms), found.revision) == ("first", ["Club", "Other"], 3)


def test_a_state_of_a_later_release_is_not_read_as_another(say: Say, table: Table) -> None:
    """Unknown parts are not guessed."""
    say()
    table.send(
        Request(
            "UpdateItem",
            {
                "Key": item_key(states.STATE_KEY),
                "UpdateExpression": "SET #f = :f",
                "ExpressionAttributeNames": {"#f": "schema"},
                "ExpressionAttributeValues": {":f": {"S": '{"Club": {"layers": []}}'}},
            },
        )
    )
    knowledge.forget()
    with pytest.raises(UnexpectedItem, match="later release of dynamo_single wrote the item"):
        Club.objects.get(pk="c")


def test_a_state_is_read_as_it_was_written() -> None:
    """Open changes and phases included."""
    opened = states.OpenChange("rename", "shop.0003_title", {"old": "name", "new": "title"})
    state = states.TableState(4, "shop", {"Club": replace(FORM, unfilled=("name",), opened=(opened,))})
    assert state_item.read_state(state_item.state_item(state)) == state


@pytest.mark.parametrize(
    ("referring", "target"),
    [
        (Frame, Artist),
        (Painting, Artist),
        (Exhibit, Gallery),
        (Loan, Gallery),
        (Tour, Gallery),
        (GameMember, GamePlayer),
    ],
)
def test_nothing_is_deleted_while_the_key_that_finds_who_refers_is_not_filled(
    say: Say, table: Table, referring: Any, target: Any
) -> None:
    """Otherwise, protecting objects would be missed, and cascading ones would remain."""
    (name,) = registry.layout_of(target).identity
    obj = target.objects.create(**{name: "1"}, **({"username": "John"} if target is GamePlayer else {}))
    layout = registry.layout_of(referring)
    form = form_of(Snapshot.of(referring), layout.label)
    knowledge.change(table, lambda state: state.with_form(layout.item_type, replace(form, keys={})))
    # References are set only at the permanent deletion.
    for delete in (obj.hard_delete, *(() if referring is Tour else (obj.delete,))):
        with pytest.raises(KeyNotFilled):
            delete()
    assert target.objects.filter(pk="1").exists()
