"""Times, durations, slugs and addresses: stored, sorted, compared, in forms and in keys."""

from __future__ import annotations

from datetime import date, time, timedelta
from typing import Any

import pytest
from django import forms
from django.core.exceptions import ValidationError
from django.db.models import F, Max, Min
from django.forms import modelform_factory

from dynamo_single import models
from dynamo_single.exceptions import DynamoSingleError
from dynamo_single.testing import assert_requests
from tests.catalog.models import Sample
from tests.unit.declaring import declare, forgotten

pytestmark = pytest.mark.usefixtures("table")

FIELDS = {
    "time": forms.TimeField,
    "duration": forms.DurationField,
    "slug": forms.SlugField,
    "url": forms.URLField,
    "address": forms.GenericIPAddressField,
}
SampleForm: Any = modelform_factory(Sample, fields=[*FIELDS])
TYPED = {
    "time": "09:30",
    "duration": "1 02:00:00.5",
    "slug": "a-b",
    "url": "example.com/a",
    "address": "2001:DB8::1",
}


def test_a_form_has_djangos_field_for_each_type() -> None:
    assert {name: type(field) for name, field in SampleForm().fields.items()} == FIELDS


def test_a_form_stores_what_was_typed() -> None:
    form = SampleForm(TYPED)
    assert form.is_valid(), form.errors
    form.save()
    assert Sample.objects.values(*FIELDS).get() == {
        "time": time(9, 30),
        "duration": timedelta(days=1, hours=2, milliseconds=500),
        "slug": "a-b",
        "url": "https://example.com/a",
        "address": "2001:db8::1",
    }


def test_a_form_that_nobody_touched_changes_nothing() -> None:
    """Not even microseconds, which Django's widget for a time does not show."""
    sample = Sample.objects.create(
        time=time(9, 30, 0, 5), duration=timedelta(microseconds=-5), slug="a", url="https://x.org/", address="::1"
    )
    shown = SampleForm(instance=sample)
    form = SampleForm({name: str(shown[name].value()) for name in shown.fields}, instance=sample)
    assert form.is_valid(), form.errors
    with assert_requests(0):
        form.save()


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("slug", "a b", "Enter a valid “slug”"),
        ("url", "x", "Enter a valid URL."),
        ("address", "10.0.0.256", "Enter a valid IPv4 or IPv6 address."),
        ("slug", "a" * 51, "Ensure this value has at most 50 characters"),
        ("url", f"https://example.com/{'a' * 200}", "Ensure this value has at most 200 characters"),
    ],
)
def test_validation_is_djangos(name: str, value: str, message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        Sample(sample_id="s", **{name: value}).full_clean()


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("time", [time(0), time(9, 30), time(9, 30, 0, 1), time(23, 59, 59, 999999)]),
        (
            "duration",
            [timedelta(-1), timedelta(microseconds=-1), timedelta(0), timedelta(microseconds=1), timedelta(9)],
        ),
    ],
)
def test_a_sort_key_has_the_order_of_the_values(name: str, values: list[Any]) -> None:
    """A Query for each returns them in order, and from a limit."""
    make: Any = {"time": models.TimeAttribute, "duration": models.DurationAttribute}[name]
    with forgotten():
        shift = declare(
            "Shift", ("SHIFT", "{begins}#{shift_id}"), {}, begins=make(), shift_id=models.UnicodeAttribute()
        )
        for place, value in enumerate(reversed(values)):
            shift.objects.create(begins=value, shift_id=str(place))
        with assert_requests(["Query"]):
            assert [each.begins for each in shift.objects.order_by("begins")] == values
        with assert_requests(["Query"]):
            assert [each.begins for each in shift.objects.filter(begins__gt=values[1])] == values[2:]
        found = shift.objects.get(begins=values[1])
        with assert_requests(["GetItem"]):
            assert shift.objects.get(pk=found.pk) == found


def test_the_outermost_are_found_and_what_is_no_number_is_not_added_to() -> None:
    for place, hours in enumerate((2, 1, 3)):
        Sample.objects.create(sample_id=str(place), duration=timedelta(hours=hours), time=time(hours))
    found = Sample.objects.allow_in_memory().aggregate(Min("time"), Max("duration"))
    assert found == {"time__min": time(1), "duration__max": timedelta(hours=3)}
    inside = Sample.objects.allow_in_memory().order_by("-duration")
    assert [each.pk for each in inside] == ["2", "0", "1"]
    with pytest.raises(DynamoSingleError, match="duration"):
        Sample.objects.filter(pk="1").update(duration=F("duration") + timedelta(hours=1))


def test_the_start_of_an_address_is_looked_for_as_it_is() -> None:
    for place, address in enumerate(("10.0.0.1", "10.1.0.1", "2001:db8::1")):
        Sample.objects.create(sample_id=str(place), address=address)
    assert [each.pk for each in Sample.objects.filter(address__startswith="10.0.")] == ["0"]
    assert [each.pk for each in Sample.objects.filter(address="2001:DB8:0::1")] == ["2"]


@pytest.mark.parametrize(
    ("make", "value"),
    [
        (models.DateAttribute, date(2024, 1, 1)),
        (models.TimeAttribute, time(9, 30)),
        (models.DurationAttribute, timedelta(1)),
        (models.BooleanAttribute, True),
    ],
)
def test_a_copy_follows_an_object_whatever_its_identity_is_made_of(make: Any, value: Any) -> None:
    """The reference finds the holders of copies, and its values have this type."""
    with forgotten():
        day = declare("Day", ("DAY#{day}", "#METADATA"), {}, day=make(), title=models.UnicodeAttribute())
        visit = declare(
            "Viewing",
            ("VISIT#{visit_id}", "#METADATA"),
            {"by_day": models.IndexKey("gs1", "DAY#{day_id}", "{visit_id}")},
            visit_id=models.UnicodeAttribute(),
            day=models.ReferenceAttribute(day, on_delete=models.DO_NOTHING),
            title=models.CopiedAttribute("day", "title"),
        )
        made = day.objects.create(day=value, title="a")
        visit.objects.create(visit_id="1", day=made)
        made.title = "b"
        made.save()
        assert visit.objects.get(pk="1").title == "b"
