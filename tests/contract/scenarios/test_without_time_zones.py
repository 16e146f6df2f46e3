"""``USE_TZ = False`` in three zones: datetimes are naive and local in a project, as in Django, and stored as usual.

Each test runs by the clocks of Berlin and New York, which change, and of Kolkata, which is half an hour off.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from django.contrib.auth import authenticate, get_user_model
from django.core import serializers
from django.db.models import Count, F, Max
from django.db.models.functions import Now
from django.forms import MultiWidget, modelform_factory
from django.test import Client, RequestFactory, override_settings
from django.utils import timezone

from dynamo_single import cached_sessions, clock, models, sessions
from dynamo_single.exceptions import InvalidValue
from dynamo_single.table import Table
from dynamo_single.testing import frozen_time
from tests.catalog.models import Coupon, Order, Product, Sample, Ticket
from tests.contract.accounts.account_pages import PASSWORD
from tests.contract.caching import cache_of
from tests.contract.tables import assert_consistent, everything, stored
from tests.unit.declaring import declare, forgotten

pytestmark = [pytest.mark.usefixtures("table"), pytest.mark.urls("project.urls")]

ZONES = ["Europe/Berlin", "America/New_York", "Asia/Kolkata"]
#: By the clocks of the project.
NEW_YEAR = datetime(2024, 1, 1, 0, 30)
#: When clocks show an hour twice.
TWICE = {"Europe/Berlin": datetime(2024, 10, 27, 2, 30), "America/New_York": datetime(2024, 11, 3, 1, 30)}


@pytest.fixture(params=ZONES)
def zone(request: pytest.FixtureRequest, table: Table) -> Iterator[ZoneInfo]:
    """A project without time zones, and the clocks that it goes by."""
    with override_settings(USE_TZ=False, TIME_ZONE=request.param):
        yield ZoneInfo(request.param)


@pytest.fixture(params=TWICE)
def twice(request: pytest.FixtureRequest, table: Table) -> Iterator[tuple[datetime, datetime]]:
    """Return a local time that occurs twice an hour apart, and the clocks of the project."""
    with override_settings(USE_TZ=False, TIME_ZONE=request.param):
        yield TWICE[request.param], TWICE[request.param].replace(fold=1)


def milliseconds(moment: datetime, zone: ZoneInfo) -> str:
    """Return the stored form of a naive datetime."""
    return str(round(moment.replace(tzinfo=zone).timestamp() * 1000))


def reread(obj: Any) -> Any:
    """Return the stored object."""
    return type(obj).objects.get(pk=obj.pk)


def test_a_moment_comes_back_as_it_was_given(zone: ZoneInfo, table: Table) -> None:
    """The datetime is naive and local; the item contains the usual number."""
    sample = Sample.objects.create(sample_id="s", moment=NEW_YEAR)
    assert (sample.moment, sample.moment.tzinfo) == (NEW_YEAR, None)
    assert (reread(sample).moment, reread(sample).moment.tzinfo) == (NEW_YEAR, None)
    assert stored(table)["SAMPLE#s"]["moment"] == {"N": milliseconds(NEW_YEAR, zone)}


def test_an_aware_moment_is_the_same_moment(zone: ZoneInfo) -> None:
    """The datetime is converted, as in PostgreSQL for Django."""
    sample = Sample.objects.create(moment=NEW_YEAR.replace(tzinfo=zone).astimezone(UTC))
    assert reread(sample).moment == NEW_YEAR


def test_what_a_project_with_time_zones_wrote_is_read_by_the_clocks(zone: ZoneInfo) -> None:
    """The setting can therefore change in both directions with data in the table."""
    with override_settings(USE_TZ=True):
        sample = Sample.objects.create(moment=NEW_YEAR.replace(tzinfo=zone))
    assert reread(sample).moment == NEW_YEAR
    with override_settings(USE_TZ=True):
        assert reread(sample).moment == NEW_YEAR.replace(tzinfo=zone)


def test_the_hour_that_comes_twice_is_two_hours(twice: tuple[datetime, datetime]) -> None:
    """``fold`` distinguishes them in the item, a save, a lookup, an order and a count."""
    first, second = twice
    samples = [Sample.objects.create(sample_id=str(number), moment=moment) for number, moment in enumerate(twice)]
    assert [reread(each).moment.fold for each in samples] == [0, 1]
    every = Sample.objects.allow_in_memory(limit=10)
    assert [each.pk for each in Sample.objects.filter(moment=second)] == ["1"]
    later = Sample.objects.create(sample_id="2", moment=first + timedelta(minutes=10))
    assert [each.pk for each in every.order_by("moment")] == ["0", "2", "1"]
    assert every.aggregate(Max("moment"))["moment__max"].fold == 1
    assert every.aggregate(many=Count("moment", distinct=True)) == {"many": 3}
    later.moment = later.moment.replace(fold=1)
    later.save()
    assert reread(later).moment.fold == 1


def test_a_time_that_clocks_skip_is_the_one_that_they_show() -> None:
    """For a time that does not exist locally, the object has the value of a read."""
    with override_settings(USE_TZ=False, TIME_ZONE="Europe/Berlin"):
        sample = Sample.objects.create(moment=datetime(2024, 3, 31, 2, 30))
        assert reread(sample).moment == datetime(2024, 3, 31, 3, 30)


@pytest.mark.parametrize(
    "condition",
    [
        {"placed_at": NEW_YEAR},
        {"placed_at__range": (NEW_YEAR, NEW_YEAR)},
        {"placed_at__in": [NEW_YEAR]},
        {"placed_at__year": 2024},
        {"placed_at__date": date(2024, 1, 1)},
        {"placed_at__year": 2024, "placed_at__month": 1, "placed_at__day": 1},
        {"placed_at__gte": date(2024, 1, 1)},
        {"placed_at__gt": "2024-01-01 00:29:59"},
    ],
)
def test_a_lookup_goes_by_the_clocks_of_the_project(condition: dict[str, Any], zone: ZoneInfo) -> None:
    """The lookup finds the first minutes of the year, and excludes the last ones of the previous year."""
    for number, moment in enumerate((NEW_YEAR - timedelta(hours=1), NEW_YEAR)):
        Order.objects.create(customer="c", number=number, placed_at=moment)
    assert [order.number for order in Order.objects.filter(**condition)] == [1]


def test_a_time_zone_that_is_activated_changes_nothing(zone: ZoneInfo) -> None:
    """Django goes by ``TIME_ZONE`` alone without ``USE_TZ``."""
    Order.objects.create(customer="c", number=1, placed_at=NEW_YEAR)
    with timezone.override("Pacific/Auckland"):
        assert Order.objects.filter(placed_at__date=date(2024, 1, 1)).exists()
        orders = Order.objects.allow_in_memory(limit=10)
        assert list(orders.dates("placed_at", "day")) == [date(2024, 1, 1)]
        assert list(orders.datetimes("placed_at", "hour")) == [datetime(2024, 1, 1)]
        assert list(orders.datetimes("placed_at", "hour", tzinfo=UTC)) == [datetime(2024, 1, 1)]


def test_the_keys_hold_utc(zone: ZoneInfo, table: Table) -> None:
    """Stored keys do not depend on the settings, and the table is consistent."""
    Order.objects.create(customer="c", number=1, placed_at=NEW_YEAR)
    key = stored(table)["CUSTOMER#c"]["gs1sk"]["S"]
    in_utc = NEW_YEAR.replace(tzinfo=zone).astimezone(UTC)
    assert key.startswith(in_utc.strftime("%Y-%m-%dT%H:%M:%S.000Z"))
    assert_consistent()


def test_a_moment_in_a_primary_key_gives_one_pk(zone: ZoneInfo) -> None:
    """The ``pk`` is the same text with and without time zones, so that what refers to the object stays right."""
    with forgotten():
        event = declare(
            "Event", ("ROOM#{room}", "AT#{at}"), room=models.UnicodeAttribute(), at=models.TimestampAttribute()
        )
        pk = event.objects.create(room="r", at=NEW_YEAR).pk
        with override_settings(USE_TZ=True):
            (same,) = event.objects.filter(room="r")
            assert same.pk == pk
        assert event.objects.get(pk=pk).at == NEW_YEAR
        assert event.objects.get(pk=pk, at=NEW_YEAR.replace(tzinfo=zone)).pk == pk


def test_pages_follow_each_other_by_a_moment(zone: ZoneInfo) -> None:
    """A cursor with a naive datetime leads to the next page."""
    for number in range(5):
        Order.objects.create(customer="c", number=number, placed_at=NEW_YEAR + timedelta(minutes=number))
    orders = Order.objects.filter(placed_at__isnull=False).order_by("placed_at")
    page = orders.page(2)
    assert [each.number for each in orders.page(2, page.next_cursor)] == [2, 3]


def test_what_sets_itself_is_naive_and_now(zone: ZoneInfo) -> None:
    """``auto_now``, ``auto_now_add``, ``Now()`` and the trash go by the clocks."""
    at = NEW_YEAR.replace(tzinfo=zone)
    with frozen_time(at):
        product = Product.objects.create()
        Sample.objects.create(sample_id="s", moment=NEW_YEAR)
        Sample.objects.filter(pk="s").update(moment=Now() + timedelta(hours=1), day=clock.today())
        assert (product.created_at, product.updated_at, clock.now()) == (NEW_YEAR, NEW_YEAR, NEW_YEAR)
        product.delete()
    assert reread_deleted(product).deleted_at == NEW_YEAR
    product.restore()
    assert reread(product).created_at == NEW_YEAR
    sample = Sample.objects.get(pk="s")
    assert (sample.moment, sample.day) == (NEW_YEAR + timedelta(hours=1), date(2024, 1, 1))


def reread_deleted(obj: Any) -> Any:
    """Return the object in the trash."""
    return type(obj).all_objects.get(pk=obj.pk)


def test_adding_to_a_moment_adds_to_the_moment(zone: ZoneInfo) -> None:
    """``F()`` and a span of time."""
    sample = Sample.objects.create(moment=NEW_YEAR)
    Sample.objects.filter(pk=sample.pk).update(moment=F("moment") + timedelta(days=1))
    assert reread(sample).moment == NEW_YEAR + timedelta(days=1)


def test_an_object_expires_at_its_moment(zone: ZoneInfo) -> None:
    """The difference from UTC does not move the time, and its unique value is free then."""
    at = NEW_YEAR.replace(tzinfo=zone)
    with frozen_time(at) as frozen:
        Coupon.objects.create(code="a", email="a@example.com", expires_at=NEW_YEAR + timedelta(seconds=10))
        Ticket.objects.create(code="t", expires_at=NEW_YEAR + timedelta(seconds=10))
        frozen.move(timedelta(seconds=9))
        assert Ticket.objects.filter(pk="t").exists()
        assert Ticket.objects.count() == 1
        frozen.move(timedelta(seconds=1))
        assert not Ticket.objects.filter(pk="t").exists()
        assert Ticket.objects.count() == 0
        Coupon.objects.create(code="b", email="a@example.com", expires_at=None)


@pytest.mark.parametrize("form", ["json", "python", "xml"])
def test_a_fixture_brings_the_moment_back(form: str, zone: ZoneInfo) -> None:
    """Written and read by the same clocks, as Django's own fixtures are."""
    Sample.objects.create(sample_id="s", moment=NEW_YEAR)
    text = serializers.serialize(form, Sample.objects.all())
    Sample.objects.get(pk="s").delete()
    for each in serializers.deserialize(form, text):
        each.save()
    assert Sample.objects.get(pk="s").moment == NEW_YEAR
    if form == "json":
        assert json.loads(text)[0]["fields"]["moment"] == "2024-01-01T00:30:00"


def test_a_form_that_nobody_changed_changes_nothing(twice: tuple[datetime, datetime]) -> None:
    """This includes the hour that occurs twice, which a form cannot distinguish."""
    form_class = modelform_factory(Sample, fields=["moment"])
    sample = Sample.objects.create(moment=twice[1])
    form = form_class({"moment": str(form_class(instance=sample)["moment"].value())}, instance=sample)
    assert not form.has_changed()
    form.save()
    assert reread(sample).moment.fold == 1


def test_an_admin_page_that_nobody_changed_moves_no_moment(zone: ZoneInfo, table: Table) -> None:
    """A save of the unchanged user's page changes only the values that every write changes."""
    with frozen_time(NEW_YEAR.replace(tzinfo=zone)):
        admin = get_user_model().objects.create_superuser("admin", "admin@example.com", PASSWORD)
    client = Client()
    client.force_login(admin)
    before = item_of(table, admin)
    page = client.get(f"/admin/accounts/user/{admin.pk}/change/")
    assert page.context["original"].date_joined == NEW_YEAR
    saved = client.post(f"/admin/accounts/user/{admin.pk}/change/", posted(page))
    assert saved.status_code == 302
    after = item_of(table, admin)
    assert after["dateJoined"] == before["dateJoined"] == {"N": milliseconds(NEW_YEAR, zone)}
    assert int(before["lastLogin"]["N"]) - int(after["lastLogin"]["N"]) in range(1000)


def item_of(table: Table, obj: Any) -> dict[str, Any]:
    """The item of an object."""
    return everything(table)[obj._stored["pk"]["S"], obj._stored["sk"]["S"]]


def posted(page: Any) -> dict[str, Any]:
    """Return a browser's submission of a page's form."""
    data: dict[str, Any] = {}
    for formset in page.context["inline_admin_formsets"]:
        data |= {field.html_name: field.value() for field in formset.formset.management_form}
        assert not formset.formset.initial_forms
    for field in page.context["adminform"].form:
        widget = field.field.widget
        if isinstance(widget, MultiWidget):
            parts = widget.get_context(field.html_name, field.value(), {})["widget"]["subwidgets"]
            data |= {part["name"]: part["value"] for part in parts}
        elif field.value() not in (None, False):
            data[field.html_name] = field.value()
    return {name: value for name, value in data.items() if value is not None}


@pytest.mark.parametrize("engine", [sessions, cached_sessions])
def test_a_session_lasts_as_long_as_it_is_meant_to(engine: Any, zone: ZoneInfo) -> None:
    """A number of seconds, a duration or a datetime ends it."""
    with frozen_time(NEW_YEAR.replace(tzinfo=zone)) as frozen, cache_of():
        for expiry in (600, timedelta(minutes=10), datetime):
            store = engine.SessionStore()
            store["a"] = 1
            store.set_expiry(clock.now() + timedelta(minutes=10) if expiry is datetime else expiry)
            store.save()
            assert store.get_expiry_age() == 600
            assert store.get_expiry_date() == clock.now() + timedelta(minutes=10)
            frozen.move(timedelta(seconds=599))
            assert engine.SessionStore(store.session_key).load()["a"] == 1
            frozen.move(timedelta(seconds=1))
            assert engine.SessionStore(store.session_key).load() == {}


def test_a_login_is_counted_and_dated_by_the_clocks(zone: ZoneInfo) -> None:
    """``last_login`` is naive; failures delay the next attempt by seconds, not by hours."""
    user = get_user_model().objects.create_user("mike", "mike@example.com", PASSWORD)
    request = RequestFactory().get("/")
    with frozen_time(NEW_YEAR.replace(tzinfo=zone)) as frozen:
        for _ in range(6):
            assert authenticate(request, username="mike", password="wrong") is None
        assert authenticate(request, username="mike", password=PASSWORD) is None
        frozen.move(timedelta(minutes=15))
        assert Client().login(request=request, username="mike", password=PASSWORD)
    assert reread(user).last_login is not None
    assert reread(user).last_login.tzinfo is None


def test_a_refused_moment_is_refused_by_name(zone: ZoneInfo) -> None:
    """The error names a datetime that does not exist in UTC."""
    edge = datetime.max if zone.utcoffset(datetime(2024, 1, 1)).total_seconds() < 0 else datetime.min
    with pytest.raises(InvalidValue, match="moment must be a date and time"):
        Sample.objects.create(moment=edge)
