"""Queries with wrong results in the past are now correct, or raise an error."""

from __future__ import annotations

import pickle
from typing import Any

import pytest
from django.core.exceptions import ValidationError
from django.db import models as django_models
from django.db.models import Count, Q, UniqueConstraint

from dynamo_single import models
from dynamo_single.exceptions import BulkError, InvalidValue, UnexpectedItem
from dynamo_single.table import Request, Table
from dynamo_single.testing import assert_requests
from tests.catalog.boards import Card
from tests.catalog.models import Order, Sample
from tests.other_names import typed
from tests.unit.declaring import declare, forgotten, messages

pytestmark = pytest.mark.usefixtures("table")


def orders() -> Any:
    """Three orders of two customers."""
    for customer, number in (("a", 1), ("a", 2), ("b", 1)):
        Order.objects.create(customer=customer, number=number)
    return Order.objects.filter(customer__in=["a", "b"])


@pytest.mark.parametrize(
    "ask",
    [
        lambda found: found.values("number"),
        lambda found: found.values_list("customer", "number"),
        lambda found: found.values_list("number", flat=True),
        lambda found: found.values_list("customer", "number", named=True),
        lambda found: found.allow_in_memory(10).values("customer").annotate(n=Count("pk")),
        lambda found: found.filter(number=1),
    ],
)
def test_a_pickled_query_gives_the_same_again(ask: Any) -> None:
    """Rows, their shape and permissions are part of the query, as Django documents for ``values()``."""
    asked = ask(orders())
    fresh = Order.objects.all()
    fresh.query = pickle.loads(pickle.dumps(asked.query))
    assert list(fresh) == list(asked)


@pytest.mark.parametrize("name", ["status__isnull", "placed_at__year__isnull", "pk__isnull", "customer__isnull"])
@pytest.mark.parametrize("value", [1, 0, "yes"])
def test_a_test_for_null_takes_a_truth_value(name: str, value: Any) -> None:
    """Other values raise a ``ValueError``, as in Django."""
    with pytest.raises(ValueError, match="True or False"):
        list(Order.objects.filter(customer="a", **{name: value}))


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("yes", "bool or tuple"),
        (1, "bool or tuple"),
        ((str,), "model subclass"),
        ((Order,), "must be a base of Sample"),
    ],
)
def test_what_forces_an_insert_is_a_truth_value_or_bases(given: Any, said: str) -> None:
    """The error is raised before any request, as in Django."""
    with assert_requests([]), pytest.raises(TypeError, match=said):
        Sample().save(force_insert=given)


def test_bases_force_an_insert() -> None:
    """The model itself among them."""
    Sample(sample_id="s").save(force_insert=(Sample,))
    assert Sample.objects.filter(pk="s").exists()


def test_a_proxy_writes_objects_of_its_base() -> None:
    """They are the same items."""
    with forgotten():
        proxy = type(models.Model)(
            "SampleProxy",
            (Sample,),
            {"__module__": __name__, "Meta": type("Meta", (), {"proxy": True, "app_label": "catalog"})},
        )
        (made,) = proxy.objects.bulk_create([Sample(sample_id="s", text="a")])
        made.text = "b"
        assert proxy.objects.bulk_update([made], ["text"]) == 1
        assert proxy.objects.get(pk="s").text == "b"


def test_a_manager_of_djangos_own_is_found_by_the_checks() -> None:
    """Its querysets would query an SQL database."""
    with forgotten():
        shelf = declare(
            "Shelf", ("SHELF2#{shelf_id}", "#M"), shelf_id=models.UnicodeAttribute(), things=django_models.Manager()
        )
        assert [id for id, _ in messages(shelf)] == ["dynamo_single.E018"]
    assert messages(Card) == []


def test_a_conditional_constraint_is_reported_where_django_reports_it() -> None:
    """Its message belongs to the whole object rather than to one field."""
    with forgotten():
        seat = declare(
            "Stool",
            ("STOOL#{stool_id}", "#M"),
            options={"constraints": [UniqueConstraint(fields=["mark"], condition=Q(open=True), name="one_open")]},
            stool_id=models.UnicodeAttribute(),
            mark=models.UnicodeAttribute(),
            open=models.BooleanAttribute(default=True),
        )
        seat.objects.create(stool_id="1", mark="m")
        with pytest.raises(ValidationError) as raised:
            seat(stool_id="2", mark="m").validate_constraints()
    assert raised.value.message_dict == {"__all__": ["Constraint “one_open” is violated."]}


@pytest.mark.parametrize("pk", ["a~~01", "a~~+1", "a~~1.0", "a~~ 1", "a~~1_0"])
def test_a_pk_has_one_spelling(pk: str) -> None:
    """Another spelling does not find any object, like any other string that is not a ``pk``."""
    orders()
    assert not Order.objects.filter(pk=pk).exists()
    assert Order.objects.get(pk="a~~1").number == 1
    with pytest.raises(InvalidValue, match="is not"):
        Order(pk=pk)


@pytest.mark.parametrize("found", [Order.objects.filter(customer="a"), Order.objects.filter(customer="a", number=3)])
@typed
def test_a_foreign_item_is_not_counted(table: Table, found: Any) -> None:
    """A list of the objects and a count raise an error."""
    orders()
    table.send(
        Request(
            "PutItem", {"Item": {"pk": {"S": "CUSTOMER#a"}, "sk": {"S": "ORDER#p5003"}, "itemType": {"S": "Alien"}}}
        )
    )
    with pytest.raises(UnexpectedItem):
        list(found.all())
    with pytest.raises(UnexpectedItem):
        found.count()


@typed
def test_a_foreign_item_behind_a_filter_is_not_counted(table: Table) -> None:
    """Only matches are counted, so the item may or may not match."""
    orders()
    item = {"pk": {"S": "CUSTOMER#a"}, "sk": {"S": "ORDER#p5003"}, "itemType": {"S": "Alien"}, "status": {"S": "open"}}
    table.send(Request("PutItem", {"Item": item}))
    assert Order.objects.filter(customer="a", status="open").count() == 2


LONG = "x" * 1010


def test_a_child_that_could_not_be_deleted_softly_is_not_created() -> None:
    """Its key in the trash would be too long: an error before any request names the part."""
    with forgotten():
        leaf = declare(
            "Leaf",
            ("TREE#{tree}", "{leaf}"),
            {"listed": models.IndexKey("gs1", "LEAVES#{tree}", "{leaf}")},
            bases=(models.SoftDeleteModel,),
            tree=models.UnicodeAttribute(),
            leaf=models.UnicodeAttribute(),
        )
        with assert_requests([]), pytest.raises(InvalidValue, match=r"to the trash.*Make tree, leaf shorter"):
            leaf.objects.create(tree="t", leaf=LONG)
        with assert_requests([]), pytest.raises(InvalidValue, match="to the trash"):
            leaf.objects.bulk_create([leaf(tree="t", leaf=LONG)])
        with assert_requests(["BatchExecuteStatement"]), pytest.raises(BulkError, match="to the trash"):
            leaf.objects.bulk_create([leaf(tree="t", leaf=each) for each in ("a", LONG, "b")])
        assert leaf.objects.filter(tree="t").count() == 2
        made = leaf.objects.create(tree="t", leaf=LONG[:990])
        with pytest.raises(InvalidValue, match="to the trash"):
            made.move(leaf=LONG)
        made.delete()
        made.restore()
