"""Old and new code run together, and find each other's writes."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.db.models import Q

from dynamo_single import models
from dynamo_single.contrib.doctor import verify
from dynamo_single.exceptions import ConditionNotMet, FormNotApplied, KeyNotFilled, StaleObject
from dynamo_single.orm.rollout import knowledge
from dynamo_single.table import Table
from dynamo_single.testing import assert_requests
from tests.contract.item_migrations.test_migrate import BY_NAME, fill, item, shop
from tests.histories.app import Beginning, History, history

OTHERWISE = {"by_name": models.IndexKey("gs1", "SHOPS", "{name}#{shop_id}")}


@Beginning
def begin(app: History) -> None:
    """Two migrations, and three shops."""
    shop(app)
    app.make()
    app.migrate()
    shop(app, BY_NAME)
    app.make()
    app.migrate()
    app.finish()
    fill(shop(app, BY_NAME))


@pytest.fixture
def app(tmp_path: Path, table: Table) -> Iterator[History]:
    """Create the app with three shops listed by name, one of them in the trash."""
    with history(tmp_path) as found:
        begin(found)
        shop(found, BY_NAME)
        yield found


def listed(model: Any) -> list[str]:
    """The names of the shops by the key."""
    return [each.name for each in model.objects.order_by("name")]


@pytest.mark.parametrize("keys", [None, OTHERWISE], ids=["removed", "altered"])
@pytest.mark.parametrize("applied", [False, True], ids=["before migrate", "after migrate"])
def test_old_code_lists_what_new_code_writes(app: History, keys: Any, applied: bool) -> None:
    """A removed or changed key is written in its old form until no old code reads it."""
    old, new = shop(app, BY_NAME), shop(app, keys)
    app.make()
    if applied:
        app.migrate(until=0)
    new.objects.create(shop_id="d", name="D")
    new.objects.bulk_create([new(shop_id="e", name="E")])
    new.objects.filter(shop_id="a").update(name="F")
    saved = new.objects.get(shop_id="b")
    saved.name = "0"
    saved.save()
    assert listed(old) == ["0", "D", "E", "F"]
    new.objects.get(shop_id="d").delete()
    assert listed(old) == ["0", "E", "F"]
    assert [each.name for each in old.deleted_objects.all()] == ["C", "D"]


def test_a_key_that_is_altered_answers_new_code_when_it_is_finished(app: History) -> None:
    """New code writes the new form after old code has stopped, and its earlier items get it."""
    old, new = shop(app, BY_NAME), shop(app, OTHERWISE)
    app.make()
    app.migrate(until=1)
    new.objects.create(shop_id="d", name="D")
    with pytest.raises(KeyNotFilled):
        listed(new)
    app.finish()
    new.objects.create(shop_id="e", name="E")
    assert listed(new) == ["A", "B", "D", "E"]
    assert item("e")["gs1sk"] == "E#e"
    with pytest.raises(KeyNotFilled):
        listed(old)


def test_a_condition_that_changes_is_kept_for_old_code(app: History) -> None:
    """Old code finds by the former condition, also what new code writes; new code by its own once all are rewritten."""

    def made(condition: Q) -> Any:
        key = models.IndexKey("gs2", "CHEAP", "{shop_id}", condition=condition)
        return shop(app, {**BY_NAME, "cheap": key}, price=models.IntegerAttribute(default=0))

    made(Q(price__lt=5))
    app.make()
    app.migrate()
    app.finish()
    old, new = made(Q(price__lt=5)), made(Q(price__lt=9, price__gte=0))
    app.make()
    assert app.operations() == ["Alter key cheap of Shop on gs2"]
    app.migrate(until=0)
    new.objects.create(shop_id="d", name="D", price=7)
    new.objects.filter(shop_id="a").update(price=6)
    new.objects.create(shop_id="e", name="E", price=3)
    cheap = old.objects.using_index("cheap").filter(price__lt=5)
    wanted = new.objects.using_index("cheap").filter(price__lt=9, price__gte=0)
    assert [each.pk for each in cheap.all()] == ["b", "e"]
    with pytest.raises(KeyNotFilled):
        list(wanted.all())
    app.finish()
    assert [each.pk for each in wanted.all()] == ["a", "b", "d", "e"]
    with pytest.raises(KeyNotFilled):
        list(cheap.all())


def test_a_condition_on_what_is_renamed_holds_for_old_and_new_code(app: History) -> None:
    """This applies to every writer, and to every name under which the state is read."""

    def code(state: str) -> Any:
        keys = {**BY_NAME, "queue": models.IndexKey("gs2", "QUEUE", "{shop_id}", condition=Q(**{state: "open"}))}
        return shop(app, keys, **{state: models.UnicodeAttribute(default="open")})

    def waiting(model: Any, state: str) -> list[str]:
        return [each.pk for each in model.objects.using_index("queue").filter(**{state: "open"})]

    code("state")
    app.make()
    app.migrate()
    app.finish()
    code("status")
    app.make(answers=["y"])
    app.migrate(until=1, passed=True)
    old, new = code("state"), code("status")
    new.objects.filter(pk="a").update(status="done")
    old.objects.filter(pk="b").update(state="done")
    new.objects.filter(pk="b").update(status="open")
    new.objects.create(shop_id="d", name="D")
    old.objects.create(shop_id="e", name="E", state="done")
    assert waiting(old, "state") == waiting(new, "status") == ["b", "d"]
    app.finish()
    assert waiting(code("status"), "status") == ["b", "d"]
    assert list(verify()) == []


def test_new_code_writes_a_key_no_more_once_it_goes(app: History) -> None:
    """While items lose the key, no code writes it again."""
    new = shop(app)
    app.make()
    app.migrate(until=2)
    new.objects.create(shop_id="d", name="D")
    assert [name for name in "abcd" if "gs1pk" in item(name)] == ["a", "b", "c"]
    app.finish()
    new.objects.create(shop_id="e", name="E")
    assert [name for name in "abcde" if "gs1pk" in item(name)] == []


def test_a_key_whose_attribute_is_gone_is_an_error(app: History) -> None:
    """New code could not write it, and old code would miss the object in silence."""
    new = app.model(bases=(models.SoftDeleteModel,))
    with pytest.raises(FormNotApplied, match=r"'gs1 SHOP \{name:text\}'.*does not store 'name'"):
        new.objects.create(shop_id="d")


def test_what_is_as_the_model_says_costs_nothing(app: History) -> None:
    """The state is read only once."""
    new = shop(app, BY_NAME)
    knowledge.forget()
    with assert_requests(["GetItem", "PutItem", "PutItem"]):
        for name in "de":
            new.objects.create(shop_id=name, name=name)


def test_old_code_that_starts_again_writes_a_key_that_it_does_not_know(app: History) -> None:
    """A rolled-back deployment therefore does not omit objects from the new index."""
    old = shop(app)
    new = shop(app, BY_NAME)
    old.objects.create(shop_id="d", name="D")
    assert listed(new) == ["A", "B", "D"]


RENAMED = {"title": models.UnicodeAttribute(attr_name="title")}


@pytest.fixture
def renaming(app: History) -> tuple[Any, Any]:
    """Code of before and of now, while the name is becoming a title in the items."""
    old = shop(app, BY_NAME)
    keys = {"by_name": models.IndexKey("gs1", "SHOP", "{title}")}
    new = app.model(keys=keys, bases=(models.SoftDeleteModel,), **RENAMED)
    app.make(answers=["y"])
    app.migrate(until=1, passed=True)
    return old, new


def test_old_and_new_code_read_what_the_other_one_writes_of_a_renamed_attribute(renaming: tuple[Any, Any]) -> None:
    """Both read the old name, which new code writes along with its own."""
    old, new = renaming
    assert [each.title for each in new.objects.order_by("title")] == ["A", "B"]
    new.objects.create(shop_id="d", title="D")
    assert old.objects.get(shop_id="d").name == "D"
    old.objects.filter(shop_id="d").update(name="E")
    assert new.objects.get(shop_id="d").title == "E"
    changed = new.objects.get(shop_id="d")
    changed.title = "F"
    changed.save()
    assert (item("d")["name"], item("d")["title"]) == ("F", "F")
    assert listed(old) == ["A", "B", "F"]
    old.objects.filter(shop_id="d").update(name="G")
    assert [each.shop_id for each in new.objects.filter(title="G")] == ["d"]
    assert list(new.objects.filter(title="G").values_list("title", flat=True)) == ["G"]
    assert new.objects.only("title").get(shop_id="d").title == "G"
    assert [*verify()] == []


def test_a_condition_on_a_write_asks_for_the_name_that_counts(renaming: tuple[Any, Any]) -> None:
    """This includes an object that another process has sent."""
    old, new = renaming
    handed_over = pickle.dumps(new.objects.get(shop_id="a"))
    old.objects.filter(shop_id="a").update(name="Z")
    knowledge.forget()
    with pytest.raises(ConditionNotMet):
        pickle.loads(handed_over).save(condition=Q(title="A"))
    pickle.loads(handed_over).save(condition=Q(title="Z"))


def test_a_document_is_written_whole_while_it_is_being_renamed(app: History) -> None:
    """Both names then have the same value, whatever another process writes."""
    keys = {"keys": BY_NAME, "bases": (models.SoftDeleteModel,), "name": models.UnicodeAttribute()}
    app.model(**keys, notes=models.JSONAttribute(default=dict))
    app.make()
    app.migrate()
    app.finish()
    new = app.model(**keys, remarks=models.JSONAttribute(default=dict))
    app.make(answers=["y"])
    app.migrate(until=1)
    made = new.objects.create(shop_id="d", name="D", remarks={"a": 1})
    made.remarks["b"] = 2
    other = new.objects.get(shop_id="d")
    other.remarks["c"] = 3
    made.save()
    with pytest.raises(StaleObject):
        other.save()
    assert item("d")["notes"] == item("d")["remarks"] == '{"a": 1, "b": 2}'


def test_what_cannot_have_two_names_says_so(app: History) -> None:
    """A unique value would have two claims."""
    new = app.model(keys=None, bases=(models.SoftDeleteModel,), title=models.UnicodeAttribute(unique=True))
    app.make(answers=["y"])
    app.migrate(until=0)
    with pytest.raises(FormNotApplied, match=r"manage\.py migrate"):
        new.objects.create(shop_id="d", title="D")


@pytest.mark.parametrize(
    "otherwise",
    [{"primary": ("STORE#{shop_id}", "#METADATA")}, {"options": {"item_type": "Store"}}],
    ids=["key", "type"],
)
def test_objects_that_move_are_neither_read_nor_written_by_new_code(app: History, otherwise: Any) -> None:
    """Code without the key reports the move and its end."""
    new = app.model(keys=BY_NAME, bases=(models.SoftDeleteModel,), name=models.UnicodeAttribute(), **otherwise)
    app.make()
    app.migrate(until=0)
    said = r"manage\.py migrate"
    with pytest.raises(FormNotApplied, match=said):
        new.objects.create(shop_id="d", name="D")
    with pytest.raises(FormNotApplied, match=said):
        new.objects.get(shop_id="a")
    app.finish()
    assert new.objects.get(shop_id="a").name == "A"
