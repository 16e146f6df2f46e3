"""Models read, list, write and query other programs' tables; the stored items are compared."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from django.db.models import F

from dynamo_single import models
from dynamo_single.exceptions import InvalidValue, UnexpectedItem, UniqueViolation
from dynamo_single.table import Table
from dynamo_single.testing import assert_requests
from tests.contract.adoption.foreign import ALIAS, Foreign, foreign_table, stored
from tests.unit.declaring import declare, forgotten

TEXT, NUMBER = models.UnicodeAttribute, models.IntegerAttribute
RAW = {"TYPE_ATTRIBUTE": None, "RAW_KEYS": True}


def model(label: str, key: tuple[str, ...], keys: dict[str, Any] | None = None, **attributes: Any) -> Any:
    """A model of the table."""
    bases = attributes.pop("bases", (models.Model,))
    return declare(label, (*key, "")[:2], keys, options={"table": ALIAS}, bases=bases, **attributes)  # type: ignore[arg-type]


class TestComposedKeysWithoutType:
    """``PK``, ``SK`` and ``GSI1``, as books describe it."""

    ITEMS = (
        stored(PK="CUSTOMER#jane doe", SK="PROFILE", username="jane doe", email="j@x.org"),
        *(
            stored(PK="CUSTOMER#jane doe", SK=f"ORDER#{n}", username="jane doe", order_id=str(n), total=n)
            | stored(status="open" if n % 2 else "paid", placed=f"2024-0{n}", GSI1PK=f"ORDER#{n}", GSI1SK=f"2024-0{n}")
            for n in range(1, 5)
        ),
        stored(PK="SETTINGS", SK="x", foreign="left alone"),
    )

    @pytest.fixture
    def shop(self, engine: Table) -> Iterator[tuple[Any, Any, Foreign]]:
        """Customers, orders, and their table."""
        index = {"name": "GSI1", "partition": "GSI1PK", "sort": "GSI1SK"}
        shape = {"PARTITION_KEY": "PK", "SORT_KEY": "SK", "TTL_ATTRIBUTE": "ttl", "INDEXES": {"gs1": index}}
        with foreign_table(**RAW, **shape) as table, forgotten():
            customer = model("Customer", ("CUSTOMER#{username}", "PROFILE"), username=TEXT(), email=TEXT())
            order = model(
                "Order",
                ("CUSTOMER#{username}", "ORDER#{order_id}"),
                {"by_order": models.IndexKey("gs1", "ORDER#{order_id}", "{placed}")},
                username=TEXT(),
                order_id=TEXT(),
                status=TEXT(),
                total=NUMBER(),
                placed=TEXT(),
            )
            table.put(*self.ITEMS)
            yield customer, order, table

    def test_objects_are_read_in_every_way(self, shop: tuple[Any, Any, Foreign]) -> None:
        customer, order, table = shop
        before = table.items()
        orders = order.objects.filter(username="jane doe")
        assert customer.objects.get(username="jane doe").email == "j@x.org"
        assert [(each.order_id, each.total) for each in orders] == [("1", 1), ("2", 2), ("3", 3), ("4", 4)]
        assert [*orders.values_list("order_id", flat=True)] == ["1", "2", "3", "4"]
        assert [each.order_id for each in orders.filter(status="open")] == ["1", "3"]
        assert [each.total for each in order.objects.filter(order_id="3")] == [3]
        assert [each.order_id for each in orders.filter(order_id__gt="2")] == ["3", "4"]
        assert [each.order_id for each in orders.filter(order_id__range=("2", "3"))] == ["2", "3"]
        assert orders.count() == 4
        assert len(order.objects.in_bulk([each.pk for each in orders])) == 4
        assert [each.username for each in customer.objects.allow_scan()] == ["jane doe"]
        assert order.objects.allow_scan().count() == 4
        assert [each.order_id for each in orders.order_by("-order_id")[1:3]] == ["3", "2"]
        assert table.items() == before

    def test_writes_keep_the_form_of_items(self, shop: tuple[Any, Any, Foreign]) -> None:
        _, order, table = shop
        found = order.objects.get(username="jane doe", order_id="2")
        with assert_requests(0):
            found.save()
        found.status = "sent"
        found.save()
        assert table.get(PK="CUSTOMER#jane doe", SK="ORDER#2") == {**self.ITEMS[2], "status": {"S": "sent"}}
        order.objects.create(username="jane doe", order_id="9", status="new", total=9, placed="2024-09")
        assert table.get(PK="CUSTOMER#jane doe", SK="ORDER#9") == stored(
            PK="CUSTOMER#jane doe",
            SK="ORDER#9",
            username="jane doe",
            order_id="9",
            status="new",
            total=9,
            GSI1PK="ORDER#9",
            GSI1SK="2024-09",
            placed="2024-09",
        )
        assert order.objects.filter(username="jane doe", order_id="9").update(total=F("total") + 1) == 1
        assert order.objects.get(username="jane doe", order_id="9").delete()[0] == 1
        assert [item for item in table.items() if "foreign" in item] == [self.ITEMS[-1]]

    def test_value_with_the_separator_is_refused(self, shop: tuple[Any, Any, Foreign]) -> None:
        _, order, _ = shop
        with assert_requests(0), pytest.raises(InvalidValue, match="contains '#'"):
            order.objects.create(username="a#b", order_id="1", status="", total=1, placed="2024")

    def test_claims_and_trash_in_a_table_without_types(self, shop: tuple[Any, Any, Foreign]) -> None:
        _, _, table = shop
        account = model(
            "Account",
            ("ACCOUNT#{name}", "#A"),
            {"by_mail": models.IndexKey("gs1", "ACCOUNTS", "{email}")},
            bases=(models.SoftDeleteModel,),
            name=TEXT(),
            email=TEXT(unique=True),
        )
        account.objects.create(name="a", email="a@x.org")
        with pytest.raises(UniqueViolation):
            account.objects.create(name="b", email="a@x.org")
        assert account.objects.get(email="a@x.org").name == "a"
        account.objects.get(name="a").delete()
        assert account.objects.count() == 0
        item = table.get(PK="ACCOUNT#a", SK="#A")
        assert item is not None
        assert item["GSI1PK"] == {"S": "TRASH#Account"}
        assert [each.name for each in account.deleted_objects.all()] == ["a"]


class TestSharedIndexAttributes:
    """``id`` and ``field``, with an index on the attributes ``type`` and ``data`` of all models."""

    @pytest.fixture
    def firms(self, engine: Table) -> Iterator[tuple[Any, Any, Foreign]]:
        """Firms, workers, and their table."""
        index = {"name": "by-type", "partition": "type", "sort": "data"}
        shape = {"PARTITION_KEY": "id", "SORT_KEY": "field", "INDEXES": {"by_type": index}}
        with foreign_table(**RAW, **shape) as table, forgotten():
            key = models.IndexKey
            firm = model(
                "Firm", ("{id}", "root_{id}"), {"all": key("by_type", "company", "{name}")}, id=TEXT(), name=TEXT()
            )
            worker = model(
                "Worker",
                ("{firm}", "people_{person}"),
                {"all": key("by_type", "person", "{name}")},
                firm=TEXT(attr_name="id"),
                person=TEXT(),
                name=TEXT(),
            )
            table.put(stored(id="id1", field="root_id1", name="Acme", type="company", data="Acme"))
            for n in range(3):
                table.put(
                    stored(id="id1", field=f"people_p{n}", name=f"n{n}", person=f"p{n}", type="person", data=f"n{n}")
                )
            yield firm, worker, table

    def test_models_share_the_keys_of_an_index(self, firms: tuple[Any, Any, Foreign]) -> None:
        firm, worker, table = firms
        before = table.items()
        assert firm.objects.get(id="id1").name == "Acme"
        assert [each.person for each in worker.objects.filter(firm="id1")] == ["p0", "p1", "p2"]
        names = worker.objects.filter(name__startswith="n").order_by("name")
        assert [each.person for each in names] == ["p0", "p1", "p2"]
        assert [each.id for each in firm.objects.all()] == ["id1"]
        worker.objects.get(firm="id1", person="p1").save()
        assert table.items() == before

    def test_change_moves_the_item_in_the_index(self, firms: tuple[Any, Any, Foreign]) -> None:
        _, worker, table = firms
        made = worker.objects.create(firm="id1", person="p7", name="n7")
        key = {"id": "id1", "field": "people_p7"}
        assert table.get(**key) == stored(**key, name="n7", person="p7", type="person", data="n7")
        made.name = "z"
        made.save()
        assert table.get(**key) == stored(**key, name="z", person="p7", type="person", data="z")


class TestAttributesAsKeys:
    """A thread as in PynamoDB's examples: attributes are keys themselves, one of them a number."""

    @pytest.fixture
    def threads(self, engine: Table) -> Iterator[tuple[Any, Foreign]]:
        """Threads, and their table."""
        indexes = {"views": {"name": "views-index", "partition": "views:N"}}
        names = {"PARTITION_KEY": "forum_name", "SORT_KEY": "subject"}
        with foreign_table(**RAW, **names, INDEXES=indexes) as table, forgotten():
            keys = {"by_views": models.IndexKey("views", "{views}")}
            attributes = {
                "forum_name": TEXT(),
                "subject": TEXT(),
                "views": NUMBER(default=0),
                "replies": NUMBER(default=0),
            }
            thread = model(
                "Thread", ("{forum_name}", "{subject}"), keys, **attributes, tags=models.UnicodeSetAttribute(null=True)
            )
            for n in range(4):
                table.put(stored(forum_name="Amazon DynamoDB", subject=f"How to #{n}?", views=n, replies=0))
            yield thread, table

    def test_objects_are_read_in_every_way(self, threads: tuple[Any, Foreign]) -> None:
        thread, table = threads
        before = table.items()
        of_forum = thread.objects.filter(forum_name="Amazon DynamoDB")
        assert thread.objects.get(forum_name="Amazon DynamoDB", subject="How to #2?").views == 2
        assert [each.subject for each in of_forum] == [f"How to #{n}?" for n in range(4)]
        assert of_forum.filter(subject__startswith="How to #3").count() == 1
        assert [each.subject for each in thread.objects.filter(views=3)] == ["How to #3?"]
        assert [*thread.objects.filter(views=1).values("subject", "views")] == [{"subject": "How to #1?", "views": 1}]
        assert [each.views for each in of_forum.only("views")] == [0, 1, 2, 3]
        assert [each.subject for each in of_forum.order_by("-subject")[:2]] == ["How to #3?", "How to #2?"]
        for each in of_forum:
            each.save()
        assert table.items() == before

    def test_change_of_an_attribute_that_is_a_key(self, threads: tuple[Any, Foreign]) -> None:
        thread, table = threads
        found = thread.objects.get(forum_name="Amazon DynamoDB", subject="How to #1?")
        found.views = 70
        found.save()
        assert [each.subject for each in thread.objects.filter(views=70)] == ["How to #1?"]
        one = thread.objects.filter(forum_name="Amazon DynamoDB", subject="How to #1?")
        assert one.update(views=F("views") + 1) == 1
        assert table.get(forum_name="Amazon DynamoDB", subject="How to #1?") == stored(
            forum_name="Amazon DynamoDB", subject="How to #1?", views=71, replies=0
        )

    def test_new_item_has_each_attribute_once(self, threads: tuple[Any, Foreign]) -> None:
        thread, table = threads
        thread.objects.create(forum_name="F", subject="s", tags={"x"})
        found = table.get(forum_name="F", subject="s")
        assert found == {**stored(forum_name="F", subject="s", views=0, replies=0), "tags": {"SS": ["x"]}}
        thread.objects.bulk_create(thread(forum_name="F", subject=str(n), views=n) for n in range(5))
        assert thread.objects.filter(forum_name="F").count() == 6
        assert thread.objects.get(forum_name="F", subject="s").delete()[0] == 1

    def test_values_with_low_characters_are_in_order(self, threads: tuple[Any, Foreign]) -> None:
        """A value comes before its continuation with a space or "!"."""
        thread, table = threads
        table.put(*(stored(forum_name="G", subject=each, views=1, replies=0) for each in ("a", "a b", "a!", "b")))
        of_forum = thread.objects.filter(forum_name="G")
        assert [each.subject for each in of_forum.filter(subject__gt="a")] == ["a b", "a!", "b"]
        assert [each.subject for each in of_forum.filter(subject__lt="a!")] == ["a", "a b"]
        assert [each.subject for each in of_forum.filter(subject__range=("a", "a!"))] == ["a", "a b", "a!"]
        assert [each.subject for each in thread.objects.filter(views=1, forum_name="G", subject="b")] == ["b"]


class TestNumbersAndBinaryAsKeys:
    """Sort keys that are numbers or binary keep their order."""

    @pytest.fixture
    def posts(self, engine: Table) -> Iterator[tuple[Any, Foreign]]:
        """Posts with a number as sort key."""
        with foreign_table(**RAW, PARTITION_KEY="user_id", SORT_KEY="number:N") as table, forgotten():
            post = model("Post", ("{user_id}", "{number}"), user_id=TEXT(), number=NUMBER(), text=TEXT())
            table.put(*(stored(user_id="u1", number=n, text=f"t{n}") for n in (-5, 0, 3, 10, 200)))
            yield post, table

    def test_numbers_are_in_order(self, posts: tuple[Any, Foreign]) -> None:
        post, _ = posts
        of_user = post.objects.filter(user_id="u1")

        def numbers(queryset: Any) -> list[int]:
            return [each.number for each in queryset]

        assert numbers(of_user) == [-5, 0, 3, 10, 200]
        assert numbers(of_user.filter(number__gt=3)) == [10, 200]
        assert numbers(of_user.filter(number__gte=3)) == [3, 10, 200]
        assert numbers(of_user.filter(number__lt=3)) == [-5, 0]
        assert numbers(of_user.filter(number__range=(-5, 3))) == [-5, 0, 3]
        assert numbers(of_user.filter(number__gt=0, number__lte=10)) == [3, 10]
        assert numbers(of_user.order_by("-number")[1:4]) == [10, 3, 0]
        assert numbers(post.objects.filter(user_id__in=["u1", "u0"], number__lt=3)) == [-5, 0]
        page = of_user.page(size=2)
        assert numbers(of_user.page(size=2, cursor=page.next_cursor).items) == [3, 10]

    def test_number_is_written_as_a_number(self, posts: tuple[Any, Foreign]) -> None:
        post, table = posts
        post.objects.create(user_id="u1", number=11, text="x")
        assert table.get(user_id="u1", number=11) == stored(user_id="u1", number=11, text="x")
        assert post.objects.get(user_id="u1", number=10).text == "t10"
        assert post.objects.in_bulk([post.objects.get(user_id="u1", number=3).pk])

    def test_binary_values_are_in_order(self, engine: Table) -> None:
        with foreign_table(**RAW, PARTITION_KEY="owner", SORT_KEY="digest:B") as table, forgotten():
            blob = model("Blob", ("{owner}", "{digest}"), owner=TEXT(), digest=models.BinaryAttribute(), n=NUMBER())
            values = (b"\x00", b"\x00\x01", b"a", b"\xff\xfe")
            table.put(*(stored(owner="o", digest=each, n=n) for n, each in enumerate(values)))
            assert [each.digest for each in blob.objects.filter(owner="o")] == [*values]
            blob.objects.create(owner="o", digest=b"b", n=9)
            assert table.get(owner="o", digest=b"b") == stored(owner="o", digest=b"b", n=9)


class TestPartitionKeyAlone:
    """A table whose only key is an attribute."""

    def test_objects_are_read_and_written(self, engine: Table) -> None:
        with foreign_table(**RAW, PARTITION_KEY="user_id", SORT_KEY=None) as table, forgotten():
            member = model("Member", ("{user_id}",), user_id=TEXT(), name=TEXT())
            table.put(stored(user_id="u1", name="one"))
            assert member.objects.get(pk="u1").name == "one"
            assert sorted(member.objects.in_bulk(["u1", "u2"])) == ["u1"]
            made = member.objects.create(user_id="u2", name="two")
            made.name = "2"
            made.save()
            assert [table.get(user_id=each) for each in ("u1", "u2")] == [
                stored(user_id="u1", name="one"),
                stored(user_id="u2", name="2"),
            ]
            assert sorted(each.pk for each in member.objects.allow_scan()) == ["u1", "u2"]
            assert member.objects.get(pk="u2").delete()[0] == 1


class TestLocalIndex:
    """A local index with a number as sort key."""

    def test_objects_are_read_in_its_order(self, engine: Table) -> None:
        index = {"name": "by-size", "partition": "owner", "sort": "size:N", "local": True}
        shape = {"PARTITION_KEY": "owner", "SORT_KEY": "name", "INDEXES": {"sizes": index}}
        with foreign_table(**RAW, **shape) as table, forgotten():
            keys = {"by_size": models.IndexKey("sizes", "{owner}", "{size}")}
            file = model("File", ("{owner}", "{name}"), keys, owner=TEXT(), name=TEXT(), size=NUMBER())
            table.put(*(stored(owner="o", name=f"f{n}", size=100 - n) for n in range(5)))
            of_owner = file.objects.filter(owner="o").order_by("size")
            assert [each.size for each in of_owner] == [96, 97, 98, 99, 100]
            assert [each.name for each in of_owner.filter(size__gte=98)] == ["f2", "f1", "f0"]
            found = file.objects.get(owner="o", name="f0")
            found.size = 1
            found.save()
            assert of_owner.all()[0].name == "f0"
            file.objects.create(owner="o", name="new", size=7)
            assert table.get(owner="o", name="new") == stored(owner="o", name="new", size=7)


def test_foreign_item_in_a_range_is_refused(engine: Table) -> None:
    with foreign_table(**RAW, PARTITION_KEY="PK", SORT_KEY="SK") as table, forgotten():
        seat = model("Seat", ("ORG#{org}", "USER#{user}"), org=TEXT(), user=TEXT())
        table.put(stored(PK="ORG#o", SK="USER#u", org="o", user="u"), stored(PK="ORG#o", SK="USER#u#x", deeper="x"))
        with pytest.raises(UnexpectedItem):
            [*seat.objects.filter(org="o")]


class TestPartsInTheKeyAlone:
    """Attributes that only keys contain."""

    @pytest.fixture
    def seats(self, engine: Table) -> Iterator[tuple[Any, Foreign]]:
        """Seats, and their table."""
        with foreign_table(**RAW, PARTITION_KEY="PK", SORT_KEY="SK") as table, forgotten():
            org, user = TEXT(in_key_only=True), TEXT(in_key_only=True)
            seat = model("Seat", ("ORG#{org}", "USER#{user}"), org=org, user=user, name=TEXT())
            table.put(*(stored(PK="ORG#o1", SK=f"USER#u{n}", name=f"n{n}") for n in range(3)))
            yield seat, table

    def test_objects_are_read_with_the_parts_of_the_key(self, seats: tuple[Any, Foreign]) -> None:
        seat, table = seats
        before, of_org = table.items(), seat.objects.filter(org="o1")
        expected = [("o1", f"u{n}", f"n{n}") for n in range(3)]
        assert [(each.org, each.user, each.name) for each in of_org] == expected
        assert [*of_org.values_list("user", flat=True)] == ["u0", "u1", "u2"]
        assert [each.name for each in of_org.filter(user__gt="u0")] == ["n1", "n2"]
        found = seat.objects.get(org="o1", user="u1")
        found.save()
        assert (found.org, table.items() == before) == ("o1", True)

    def test_filter_by_a_part_of_the_key_is_evaluated_after_reading(self, seats: tuple[Any, Foreign]) -> None:
        seat, _ = seats
        assert [each.user for each in seat.objects.filter(org="o1", user__contains="2")] == ["u2"]
        assert seat.objects.filter(org="o1", user__contains="2").count() == 1
        assert [each.user for each in seat.objects.allow_scan().filter(user="u1")] == ["u1"]

    def test_writes_leave_the_parts_out(self, seats: tuple[Any, Foreign]) -> None:
        seat, table = seats
        made = seat.objects.create(org="o1", user="u9", name="n9")
        assert table.get(PK="ORG#o1", SK="USER#u9") == stored(PK="ORG#o1", SK="USER#u9", name="n9")
        made.name = "z"
        made.save()
        seat.objects.bulk_create([seat(org="o2", user="u1", name="x")])
        assert table.get(PK="ORG#o1", SK="USER#u9") == stored(PK="ORG#o1", SK="USER#u9", name="z")
        assert table.get(PK="ORG#o2", SK="USER#u1") == stored(PK="ORG#o2", SK="USER#u1", name="x")


class TestPartialIndexes:
    """Indexes with the projection KEYS_ONLY or INCLUDE."""

    @pytest.fixture(params=["KEYS_ONLY", ["kind"]])
    def jobs(self, engine: Table, request: Any) -> Iterator[tuple[Any, Foreign]]:
        """Jobs, and their table."""
        index = {"name": "by-status", "partition": "status", "sort": "PK", "projection": request.param}
        shape = {"PARTITION_KEY": "PK", "SORT_KEY": "SK", "INDEXES": {"by_status": index}}
        with foreign_table(**RAW, **shape) as table, forgotten():
            keys = {"by_status": models.IndexKey("by_status", "{status}", "JOB#{job}")}
            job = model("Job", ("JOB#{job}", "J"), keys, job=TEXT(), status=TEXT(), text=TEXT(), kind=TEXT())
            for n in range(5):
                status, kind = "open" if n % 2 else "done", "a" if n < 3 else "b"
                table.put(stored(PK=f"JOB#{n}", SK="J", job=str(n), status=status, text=f"t{n}", kind=kind))
            yield job, table

    def test_whole_objects_are_read_by_a_second_request(self, jobs: tuple[Any, Foreign]) -> None:
        job, _ = jobs
        with assert_requests(["Query", "BatchGetItem"]):
            found = [(each.job, each.text) for each in job.objects.filter(status="done")]
        assert found == [("0", "t0"), ("2", "t2"), ("4", "t4")]
        assert [each.job for each in job.objects.filter(status="done").order_by("-job")[:2]] == ["4", "2"]
        assert [*job.objects.filter(status="open").values_list("text", flat=True)] == ["t1", "t3"]

    def test_count_needs_no_second_read(self, jobs: tuple[Any, Foreign]) -> None:
        job, _ = jobs
        with assert_requests(["Query"]):
            assert job.objects.filter(status="open").count() == 2

    def test_filter_by_other_attributes_is_evaluated_after_reading(self, jobs: tuple[Any, Foreign]) -> None:
        job, _ = jobs
        assert [each.job for each in job.objects.filter(status="done", text="t2")] == ["2"]
        assert [each.job for each in job.objects.filter(status="done", kind="b", text__gt="t0")] == ["4"]
        assert job.objects.filter(status="done", text__gt="t0").count() == 2

    def test_pages_by_cursor(self, jobs: tuple[Any, Foreign]) -> None:
        job, _ = jobs
        done = job.objects.filter(status="done")
        page = done.page(size=2)
        after = done.page(size=2, cursor=page.next_cursor)
        assert [[each.job for each in found] for found in (page.items, after.items)] == [["0", "2"], ["4"]]
        filtered = done.filter(text__gt="t0")
        assert [each.job for each in filtered.page(size=1, cursor=filtered.page(size=1).next_cursor).items] == ["4"]

    def test_change_moves_the_object_in_the_index(self, jobs: tuple[Any, Foreign]) -> None:
        job, _ = jobs
        found = job.objects.get(job="1")
        found.status = "done"
        found.save()
        assert [each.job for each in job.objects.filter(status="done")] == ["0", "1", "2", "4"]


class TestForeignItems:
    """Items of other programs among those of a model."""

    @pytest.mark.parametrize("names", [RAW, {"TYPE_ATTRIBUTE": "_type", "RAW_KEYS": True}], ids=["untyped", "typed"])
    def test_foreign_items_are_left_out(self, engine: Table, names: dict[str, Any]) -> None:
        shape = {"PARTITION_KEY": "PK", "SORT_KEY": "SK", "FOREIGN": "skip"}
        with foreign_table(**names, **shape) as table, forgotten():
            seat = model("Seat", ("ORG#{org}", "USER#{user}"), org=TEXT(), user=TEXT())
            seat.objects.bulk_create(seat(org="o", user=f"u{n}") for n in range(4))
            table.put(stored(PK="ORG#o", SK="USER#u1#x", deeper="x"), stored(PK="ORG#o", SK="USER#", n=1))
            of_org = seat.objects.filter(org="o")
            assert [each.user for each in of_org] == ["u0", "u1", "u2", "u3"]
            assert [each.user for each in of_org.all()[:3]] == ["u0", "u1", "u2"]
            assert [*of_org.values_list("user", flat=True)] == ["u0", "u1", "u2", "u3"]
            assert of_org.all().count() == 4
            page = of_org.page(size=2)
            assert [each.user for each in of_org.page(size=2, cursor=page.next_cursor).items] == ["u2", "u3"]
            assert len(table.items()) == 6


def test_filter_by_the_key_of_a_query_is_evaluated_after_reading(engine: Table) -> None:
    """DynamoDB rejects it."""
    with foreign_table(**RAW, PARTITION_KEY="forum", SORT_KEY="subject") as table, forgotten():
        thread = model("Topic", ("{forum}", "{subject}"), forum=TEXT(), subject=TEXT())
        table.put(*(stored(forum="f", subject=each) for each in ("abc", "abd", "xbc")))
        of_forum = thread.objects.filter(forum="f")
        assert [each.subject for each in of_forum.filter(subject__contains="bc")] == ["abc", "xbc"]
        assert [each.subject for each in of_forum.filter(subject__startswith="ab", subject__gt="abc")] == ["abd"]
        assert of_forum.filter(subject__contains="bc").count() == 2
        assert [each.subject for each in of_forum.filter(subject__contains="bc").only("forum")] == ["abc", "xbc"]
