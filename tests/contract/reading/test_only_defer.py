"""Partially loaded objects: their attributes, the later read, and related objects."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import pytest
from django import forms
from django.core import serializers
from django.core.exceptions import FieldDoesNotExist
from django.db.models import Prefetch, Q
from hypothesis import given
from hypothesis import strategies as st

from dynamo_single.exceptions import NotSupported, UnknownField
from dynamo_single.orm.schema import registry
from dynamo_single.table import SentRequest, Table
from dynamo_single.testing import assert_requests
from project.directory.models import Company, Person
from tests.catalog.boards import Board, Note
from tests.catalog.models import Entry, Order, Sample
from tests.other_names import typed

pytestmark = pytest.mark.usefixtures("people")


@pytest.fixture
def people(table: Table) -> None:
    """Two companies, one of them with two people."""
    Company.objects.create(company_id="c1", name="Acme", stock="ACM")
    Company.objects.create(company_id="c2", name="Beta", stock="BET")
    for name in ("Anna", "Mike"):
        Person.objects.create(company_id="c1", person_id=name.lower(), name=name, email=f"{name}@x.org")


def projection(request: SentRequest) -> set[str]:
    """The physical names that a request reads."""
    params = request.params
    if request.operation == "BatchGetItem":
        (params,) = params["RequestItems"].values()
    names = params["ExpressionAttributeNames"]
    return {names[placeholder] for placeholder in params["ProjectionExpression"].split(", ")}


KEYS = {"pk", "sk", "itemType"}
INDEX = {"gs1pk", "gs1sk"}
COMPANY = {*KEYS, "company_id", "deletedAt"}
PERSON = {*COMPANY, "person_id"}
READS: list[tuple[str, Callable[[], Any], list[str], set[str]]] = [
    ("one item", lambda: Company.objects.only("name").get(pk="c1"), ["GetItem"], {*COMPANY, "name"}),
    (
        "a condition that is checked after reading",
        lambda: Company.objects.only("name").get(~Q(stock="X"), pk="c1", public=False),
        ["GetItem"],
        {*COMPANY, "name", "stock", "public"},
    ),
    (
        "several items",
        lambda: Company.objects.only("name").get(pk__in=["c1", "c9"]),
        ["BatchGetItem"],
        {*COMPANY, "name"},
    ),
    (
        "an index, and a filter that DynamoDB applies",
        lambda: Company.objects.only("stock").get(name="Acme", public=False),
        ["Query"],
        {*COMPANY, *INDEX, "stock"},
    ),
    (
        "all but some",
        lambda: Person.objects.defer("email", "role", "created_at", "updated_at").get(person_id="mike"),
        ["Query"],
        {*PERSON, *INDEX, "name", "deletedWith"},
    ),
    (
        "an order",
        lambda: Company.objects.order_by("name").only("stock").first(),
        ["Query"],
        {*COMPANY, *INDEX, "name", "stock"},
    ),
    (
        "a scan",
        lambda: next(iter(Person.objects.using_index("primary").allow_scan().only("name"))),
        ["Scan"],
        {*PERSON, "name"},
    ),
    ("the identity alone", lambda: Person.objects.only("pk").get(pk="c1~~mike"), ["GetItem"], PERSON),
    (
        "an identity is never deferred",
        lambda: Person.objects.only("name").defer("company", "person_id").filter(company="c1").last(),
        ["Query"],
        {*PERSON, "name"},
    ),
]


@pytest.mark.parametrize(("read", "operations", "names"), [row[1:] for row in READS], ids=[row[0] for row in READS])
def test_what_is_read(read: Any, operations: list[str], names: set[str]) -> None:
    """The named attributes and the attributes that the read needs are loaded; others are deferred."""
    with assert_requests(operations) as sent:
        found = read()
    assert projection(sent[0]) == names
    attributes = registry.attributes_of(type(found))
    assert found.get_deferred_fields() == {name for name, each in attributes.items() if each.attr_name not in names}


def test_expiry_and_the_partitions_of_a_merge_are_read_too(table: Table) -> None:
    """Expired items are excluded and two partitions are merged, as without only()."""
    for shelf, slot in (("a", 2), ("b", 1), ("a", 3)):
        Entry.objects.create(shelf=shelf, slot=slot, title="x")
    with assert_requests(["Query", "Query"]) as sent:
        found = list(Entry.objects.filter(shelf__in=["a", "b"]).order_by("slot").only("seen_at"))
    assert [(entry.shelf, entry.slot) for entry in found] == [("b", 1), ("a", 2), ("a", 3)]
    assert projection(sent[0]) == {*KEYS, "shelf", "slot", "seen_at", "deletedAt", "expiresAt"}


def test_the_parts_of_a_union_are_read_by_projections_of_their_own() -> None:
    """Each part has its index key, and the attributes that distinguish its items from other parts."""
    asked = Person.objects.filter(Q(person_id="anna") | Q(company="c1", role="member")).only("updated_at")
    with assert_requests(["Query", "Query"]) as sent:
        found = list(asked)
    assert [person.person_id for person in found] == ["anna", "mike"]
    left = {"name", "email", "role", "created_at", "deleted_with"}
    assert all(person.get_deferred_fields() == left for person in found)
    assert {*INDEX} <= projection(sent[0])
    assert not {*INDEX} & projection(sent[1])


def test_all_attributes_are_read_as_whole_items() -> None:
    """A projection that leaves nothing out is none."""
    everything = [field.name for field in Company._meta.concrete_fields]
    with assert_requests(["GetItem", "GetItem", "GetItem"]) as sent:
        found = Company.objects.only(*everything).get(pk="c1")
        Company.objects.only().get(pk="c1")
        Company.objects.only("name").defer(None).get(pk="c1")
    assert found.get_deferred_fields() == set()
    assert not any("ProjectionExpression" in request.params for request in sent)


def test_count_reads_no_attributes() -> None:
    """DynamoDB does not accept a projection if no items are returned."""
    with assert_requests(["Query"]) as sent:
        assert Company.objects.only("name").count() == 2
    assert "ProjectionExpression" not in sent[0].params


NAMES = st.lists(st.sampled_from(["name", "stock", "founded", "public", "created_at", "company_id", "pk"]), max_size=4)
STEPS = st.lists(st.tuples(st.sampled_from(["only", "defer"]), NAMES | st.just([None])), max_size=5)


@given(steps=STEPS)
def test_only_and_defer_are_chained_as_in_django(steps: list[tuple[str, list[Any]]]) -> None:
    """Any chain of the two reads the attributes that Django would select."""
    queryset: Any = Company.all_objects.filter(pk="c1")
    for method, names in steps:
        if method == "defer" or names != [None]:
            queryset = getattr(queryset, method)(*names)
    mask = queryset.query.get_select_mask()
    selected = {field.attname for field in Company._meta.concrete_fields if field in mask or not mask}
    projected = queryset._plan().projection
    attributes = registry.attributes_of(Company)
    read = {name for name, each in attributes.items() if each.attr_name in projected or not projected}
    assert read == selected | {"deleted_at"}


def test_names_are_those_of_fields_and_attributes() -> None:
    """A reference has its own name and its stored attribute's name, and one can undo the other."""
    note = Note.objects.create(note_id="n", text="x")
    for name in ("board", "board_id"):
        assert Note.objects.only(name).get(pk=note.pk).get_deferred_fields() == {"text"}
    assert Note.objects.only("board", "text").defer("board_id").get(pk=note.pk).get_deferred_fields() == {"board_id"}


@pytest.mark.parametrize(
    ("query", "error", "message"),
    [
        (lambda: Company.objects.only("nme"), UnknownField, "has no attribute 'nme' for only(). It has "),
        (lambda: Company.objects.defer("people"), UnknownField, "has no attribute 'people' for defer()"),
        (lambda: Company.objects.only("person"), UnknownField, "has no attribute 'person' for only()"),
        (lambda: Person.objects.only("company__nme"), UnknownField, "directory.Company has no attribute 'nme'"),
        (lambda: Sample.objects.defer("data__big"), NotSupported, "each of them whole. Name 'data'."),
        (lambda: Company.objects.only(None), TypeError, "Cannot pass None as an argument to only()."),
        (lambda: Company.objects.values("name").only("name"), TypeError, "Cannot call only() after .values()"),
        (lambda: Company.objects.values_list("name").defer("name"), TypeError, "Cannot call defer() after .values()"),
        (
            lambda: list(Note.objects.filter(pk="n").only("text").select_related("board")),
            UnknownField,
            "catalog.Note.board cannot be both deferred and followed by select_related()",
        ),
    ],
)
def test_wrong_names_are_refused(query: Any, error: type[Exception], message: str) -> None:
    """The error names attributes that cannot be read separately, before any request is sent."""
    with assert_requests(0), pytest.raises(error) as raised:
        query()
    assert message in str(raised.value)


def test_what_is_missing_is_read_when_it_is_asked_for() -> None:
    """The first deferred attribute sends one consistent GetItem, and the others none."""
    company = Company.objects.only("name").get(pk="c1")
    with assert_requests(0):
        assert (company.name, company.pk, str(company)) == ("Acme", "c1", "Acme")
        assert company == Company(company_id="c1")
        assert hash(company) == hash(Company(company_id="c1"))
        assert company.is_deleted is False
    with assert_requests(["GetItem"]) as sent:
        assert (company.stock, company.public, company.founded) == ("ACM", False, None)
    assert sent[0].params["ConsistentRead"] is True
    assert company.get_deferred_fields() == set()


def test_an_attribute_that_an_item_lacks_is_loaded_all_the_same() -> None:
    """A missing attribute has its default, and is not read again."""
    company = Company.objects.only("founded").get(pk="c1")
    with assert_requests(0):
        assert company.founded is None


def test_reading_the_rest_keeps_what_was_set() -> None:
    """Assigned and loaded attributes are kept; only missing ones get the item's values."""
    company = Company.objects.only("name", "public").get(pk="c1")
    company.name = "Mine"
    company.founded = None
    Company.objects.filter(pk="c1").update(public=True, founded="1999-01-01")
    with assert_requests(["GetItem"]):
        assert company.stock == "ACM"
    assert (company.name, company.public, company.founded) == ("Mine", False, None)


def test_reading_the_rest_keeps_related_objects() -> None:
    """A prefetched reference is kept if the item still has it."""
    person = Person.objects.only("company").select_related("company").get(person_id="mike")
    with assert_requests(["GetItem"]):
        assert person.role == "member"
    with assert_requests(0):
        assert person.company.name == "Acme"


def test_the_rest_of_an_object_that_is_gone_does_not_exist() -> None:
    """The access raises the model's DoesNotExist, as in Django."""
    company = Company.objects.only("name").get(pk="c1")
    Company.objects.get(pk="c1").hard_delete()
    with pytest.raises(Company.DoesNotExist):
        _ = company.stock


def test_a_refresh_reads_everything() -> None:
    """``refresh_from_db()`` is one GetItem, which holds the deferred attributes too."""
    company = Company.objects.only("name").get(pk="c1")
    company.name = "Mine"
    with assert_requests(["GetItem"]):
        company.refresh_from_db()
        assert (company.name, company.stock) == ("Acme", "ACM")


def test_a_refresh_of_named_attributes_keeps_the_others() -> None:
    """``refresh_from_db(fields=...)`` keeps other assigned attributes."""
    company = Company.objects.only("name", "stock").get(pk="c1")
    company.name, company.stock = "Mine", "MIN"
    with assert_requests(["GetItem"]):
        company.refresh_from_db(fields=["stock", "public"])
        assert (company.name, company.stock, company.public) == ("Mine", "ACM", False)


def test_a_refresh_from_a_queryset_takes_what_that_reads() -> None:
    """Attributes outside ``only()`` are kept, as in Django, and a save still compares the whole item."""
    company = Company.objects.get(pk="c1")
    Company.objects.filter(pk="c1").update(name="New", stock="NEW")
    with assert_requests(["GetItem"]):
        company.refresh_from_db(from_queryset=Company.objects.only("name"))
    assert (company.name, company.stock) == ("New", "ACM")
    with assert_requests(0):
        company.save()


def test_a_refresh_of_named_attributes_from_a_queryset_reads_them_though_it_leaves_them_out() -> None:
    """``fields`` replaces ``only()``, and other attributes are kept, as in Django."""
    company = Company.objects.get(pk="c1")
    Company.objects.filter(pk="c1").update(name="New", stock="NEW")
    with assert_requests(["GetItem"]):
        company.refresh_from_db(fields=["stock"], from_queryset=Company.objects.only("name"))
    assert (company.name, company.stock) == ("Acme", "NEW")


def test_a_refresh_from_a_queryset_takes_its_related_objects() -> None:
    """The object gets the related objects of ``select_related()``."""
    person = Person.objects.get(person_id="mike")
    person.refresh_from_db(from_queryset=Person.objects.select_related("company"))
    with assert_requests(0):
        assert person.company.name == "Acme"


def test_a_refresh_of_named_attributes_touches_nothing_else() -> None:
    """Another process's change of a different attribute is not loaded."""
    company = Company.objects.get(pk="c1")
    Company.objects.filter(pk="c1").update(name="New", stock="NEW")
    with assert_requests(["GetItem"]):
        company.refresh_from_db(fields=["stock"])
    assert (company.name, company.stock) == ("Acme", "NEW")


def test_a_save_after_a_refresh_in_part_writes_no_old_value_back() -> None:
    """Attributes that were neither named nor assigned keep another process's values."""
    company = Company.objects.get(pk="c1")
    Company.objects.filter(pk="c1").update(public=True, stock="NEW")
    company.refresh_from_db(fields=["stock"])
    company.stock = "SET"
    company.save()
    found = Company.objects.get(pk="c1")
    assert (found.public, found.stock) == (True, "SET")


def test_a_save_after_a_refresh_in_part_keeps_the_keys_right() -> None:
    """The name is a part of an index key, which follows it."""
    company = Company.objects.get(pk="c1")
    Company.objects.filter(pk="c1").update(name="New")
    company.refresh_from_db(fields=["name"])
    company.name = "Newer"
    company.save()
    assert [each.pk for each in Company.objects.filter(name="Newer")] == ["c1"]


def test_a_refresh_of_no_attribute_sends_nothing() -> None:
    """``fields=[]`` is nothing to do, as in Django."""
    with assert_requests(0):
        Company(company_id="c1").refresh_from_db(fields=[])


def test_a_refresh_of_an_unknown_attribute_is_refused() -> None:
    """The error is raised before any request is sent, as in Django."""
    company = Company.objects.get(pk="c1")
    with assert_requests(0), pytest.raises(FieldDoesNotExist):
        company.refresh_from_db(fields=["nonsense"])
    with assert_requests(0), pytest.raises(ValueError, match="Relations and transforms are not allowed"):
        company.refresh_from_db(fields=["people__name"])


def test_a_refresh_of_a_relation_forgets_what_was_prefetched() -> None:
    """The name of a reverse relation does not send a request; its objects are read again on access."""
    company = Company.objects.prefetch_related("people").get(pk="c1")
    with assert_requests(0):
        company.refresh_from_db(fields=["people"])
    with assert_requests(["Query"]):
        assert [person.pk for person in company.people.all()] == ["c1~~anna", "c1~~mike"]


def test_a_refresh_of_a_reference_forgets_its_object() -> None:
    """The reference is read again, and its object on access."""
    person = Person.objects.select_related("company").get(person_id="mike")
    with assert_requests(["GetItem"]):
        person.refresh_from_db(fields=["company"])
    with assert_requests(["GetItem"]):
        assert person.company.name == "Acme"


def test_a_refresh_of_a_new_object_takes_what_is_named() -> None:
    """A new object with a stored object's key keeps its assigned values, as in Django."""
    company = Company(company_id="c1", name="Mine")
    company.refresh_from_db(fields=["stock"])
    assert (company.name, company.stock) == ("Mine", "ACM")
    company.save(update_fields=["name"])
    assert Company.objects.get(pk="c1").name == "Mine"


def test_a_deleted_attribute_is_read_again() -> None:
    """After ``del obj.field``, the next access loads the attribute again, as in Django."""
    company = Company.objects.get(pk="c1")
    Company.objects.filter(pk="c1").update(stock="NEW", public=True)
    del company.stock
    assert "stock" not in vars(company)
    with assert_requests(["GetItem"]):
        assert (company.stock, company.public) == ("NEW", False)


def test_a_deleted_attribute_is_saved_as_it_is_stored() -> None:
    """A save does not write attributes that the object lacks."""
    company = Company.objects.get(pk="c1")
    Company.objects.filter(pk="c1").update(stock="NEW")
    del company.stock
    company.name = "Mine"
    company.save()
    found = Company.objects.get(pk="c1")
    assert (found.name, found.stock) == ("Mine", "NEW")


def test_an_attribute_that_is_not_there_cannot_be_deleted() -> None:
    """Other objects behave the same way."""
    company = Company.objects.only("name").get(pk="c1")
    with pytest.raises(AttributeError):
        del company.stock


def test_vars_shows_what_was_read() -> None:
    """Omitted attributes appear after their first access, as in Django."""
    company = Company.objects.only("name").get(pk="c1")
    assert {"company_id", "name"} == vars(company).keys() - {"_state", "_stored", "deleted_at"}
    _ = company.stock
    assert vars(company)["stock"] == "ACM"


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy, lambda obj: pickle.loads(pickle.dumps(obj))])
def test_copies_are_read_in_part_too(duplicate: Any) -> None:
    """Copies and pickles keep deferred attributes, and load them separately."""
    company = Company.objects.only("name").get(pk="c1")
    other = duplicate(company)
    with assert_requests(["GetItem"]):
        assert other.stock == "ACM"
    assert company.get_deferred_fields() == {"stock", "founded", "public", "created_at", "updated_at", "deleted_with"}


class CompanyForm(forms.ModelForm):  # type: ignore[type-arg]  # not generic at run time
    """Two attributes of a company."""

    class Meta:
        model = Company
        fields = ("name", "stock")


WHOLE: list[tuple[str, Callable[[Any], Any]]] = [
    ("full_clean", lambda obj: obj.full_clean()),
    ("a form", lambda obj: CompanyForm(instance=obj).initial["stock"]),
    ("a serializer", lambda obj: serializers.serialize("json", [obj])),
]


@pytest.mark.parametrize("use", [row[1] for row in WHOLE], ids=[row[0] for row in WHOLE])
def test_what_needs_all_of_an_object_reads_it_once(use: Any) -> None:
    """Validation, forms and serializers send one GetItem, however many attributes they look at."""
    company = Company.objects.only("name").get(pk="c1")
    with assert_requests(["GetItem"]):
        use(company)


def test_references_that_are_followed_are_read_along() -> None:
    """``prefetch_related`` and ``select_related`` load the reference, without another read of the object."""
    Board.objects.create(board_id="b", name="B")
    for number in range(3):
        Note.objects.create(note_id=f"n{number}", board_id="b")
    notes = Note.objects.filter(pk__in=["n0", "n1", "n2"]).only("note_id")
    with assert_requests(["BatchGetItem", "GetItem"]):
        assert [note.board.name for note in notes.prefetch_related("board")] == ["B", "B", "B"]
    with assert_requests(["BatchGetItem", "GetItem"]):
        assert [note.board.name for note in notes.only("board").select_related("board")] == ["B", "B", "B"]


@pytest.mark.filterwarnings("ignore:Calling select_related")  # without names: deprecated since Django 6.1
def test_references_that_were_deferred_are_not_followed_unasked() -> None:
    """``select_related()`` without names follows loaded references; a deferred one is read on access."""
    Board.objects.create(board_id="b", name="B")
    Note.objects.create(note_id="n", board_id="b")
    with assert_requests(["Query", "GetItem"]):
        people = list(Person.objects.filter(company="c1").only("name").select_related())
        assert {person.company.name for person in people} == {"Acme"}
    note = Note.objects.only("text").get(pk="n")
    with assert_requests(["GetItem", "GetItem"]):
        assert note.board is not None
        assert note.board.name == "B"


def test_objects_read_in_part_are_found_in_every_way() -> None:
    """Batches by pk, iteration, slices and ``contains()`` return the same objects."""
    asked = Company.objects.only("name")
    company = asked.get(pk="c1")
    with assert_requests(["BatchGetItem", "Query", "GetItem"]):
        assert asked.in_bulk(["c1", "c2"]) == {"c1": company, "c2": Company(company_id="c2")}
        assert [each.name for each in asked.order_by("name")[1:2].iterator()] == ["Beta"]
        assert asked.contains(company)


def test_pages_are_read_in_part_too() -> None:
    """The projection of a page contains the attributes of its cursors."""
    with assert_requests(["Query", "Query", "Query"]) as sent:
        first = Company.objects.only("stock").page(1)
        second = Company.objects.only("stock").page(1, cursor=first.next_cursor)
        rows = Company.objects.values_list("stock", flat=True).page(1, cursor=second.previous_cursor)
        assert [each.stock for each in (*first, *second)] == ["ACM", "BET"]
        assert list(rows) == ["ACM"]
    assert projection(sent[0]) == {*COMPANY, *INDEX, "stock"}


def test_what_is_sorted_in_memory_is_read_along() -> None:
    """The attributes of the order are read with the named ones, so no object is read twice."""
    asked = Company.objects.allow_in_memory().order_by("-stock")
    with assert_requests(["Query", "Query"]) as sent:
        assert [company.name for company in asked.only("name")] == ["Beta", "Acme"]
        assert list(asked.values_list("name", flat=True)) == ["Beta", "Acme"]
    assert projection(sent[0]) == projection(sent[1]) == {*COMPANY, *INDEX, "name", "stock"}


def test_children_that_are_read_in_part_know_their_parent() -> None:
    """Managers of the other side and prefetches do not read the parent again."""
    Board.objects.create(board_id="b", name="B")
    for number in range(3):
        Note.objects.create(note_id=f"n{number}", board_id="b", text="x")
    with assert_requests(["GetItem", "Query"]):
        board = Board.objects.get(pk="b")
        assert [note.board for note in board.notes.only("text")] == [board] * 3
    with assert_requests(["GetItem", "Query"]):
        board = Board.objects.prefetch_related(Prefetch("notes", Note.objects.only("text"))).get(pk="b")
        assert [(note.board, note.text) for note in board.notes.all()] == [(board, "x")] * 3


def test_an_object_with_its_children_is_read_whole() -> None:
    """The Query for a collection has no projection, because the children belong to other models."""
    with assert_requests(["Query"]) as sent:
        company = Company.objects.only("name").prefetch_related("people").get(pk="c1")
        assert (company.stock, [person.role for person in company.people.all()]) == ("ACM", ["member", "member"])
    assert "ProjectionExpression" not in sent[0].params


def test_children_by_a_manager_that_reads_in_part_are_read_by_it() -> None:
    """The collection is read completely, so children with a deferring default manager take a separate read."""
    asked = Order.objects.only("status")
    assert asked._is_plain() is False
    assert asked.defer(None)._is_plain() is True


@typed
def test_explain_tells_the_projection() -> None:
    """The plan names the read attributes, and explains that whole items are charged."""
    told = Company.objects.only("name").filter(pk="c1").explain()
    assert "only      pk, sk, itemType, deletedAt, company_id, name (the whole item is paid for all the same)" in told
    assert "ProjectionExpression: #a0, #a1, #a2, #a3, #a4, #a5" in told
    assert "  only  " not in Company.objects.filter(pk="c1").explain()


def test_an_order_is_read_of_its_own_attributes() -> None:
    """Objects of a model without soft delete need their keys and the identity alone."""
    Order.objects.create(customer="x", number=1)
    with assert_requests(["GetItem"]) as sent:
        order = Order.objects.only("status").get(customer="x", number=1)
    assert projection(sent[0]) == {*KEYS, "customer", "number", "status"}
    assert order.pk == "x~~1"


@pytest.mark.parametrize("order", ["only first", "select_related first"])
def test_a_part_of_an_object_that_is_read_along_reads_that_object_whole(order: str) -> None:
    """``only("company__name")`` names the reference; the object that it leads to comes whole."""
    company = Company.objects.create(company_id="along", name="Acme", stock="ACM")
    Person.objects.create(company=company, person_id="p", name="Ann", role="manager")
    found = Person.objects.filter(company="along")
    found = (
        found.only("name", "company__name").select_related("company")
        if order == "only first"
        else found.select_related("company").only("name", "company__name")
    )
    with assert_requests(["Query", "GetItem"]):
        (person,) = found
        assert (person.name, person.company.name, person.company.stock) == ("Ann", "Acme", "ACM")
    assert "role" in person.get_deferred_fields()


def test_deferring_a_part_of_another_object_defers_nothing_of_this_one() -> None:
    """A referenced object is always read completely."""
    Person.objects.create(company_id="along", person_id="p", name="Ann")
    (person,) = Person.objects.filter(company="along").defer("company__stock")
    assert person.get_deferred_fields() == set()
