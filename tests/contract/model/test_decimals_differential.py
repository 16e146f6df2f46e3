"""Decimals are read and compared as in Django on SQLite, after any kind of write."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from decimal import Decimal, InvalidOperation
from typing import Any

import pytest
from django.db import models as django_models
from django.db.models import F
from hypothesis import given, settings
from hypothesis import strategies as st

from dynamo_single import models, transactions
from dynamo_single.exceptions import TooManyDigits
from tests.contract.sqlite import ALIAS, sqlite
from tests.deep import examples
from tests.unit.declaring import declare, forgotten

pytestmark = pytest.mark.usefixtures("table")

EXAMPLES = examples(6, 400)
BOUNDS = {"max_digits": 6, "decimal_places": 2}


@pytest.fixture(scope="module")
def both(django_db_blocker: Any) -> Iterator[tuple[Any, Any]]:
    """Return managers of the same model here and on SQLite."""
    with forgotten(), django_db_blocker.unblock(), sqlite() as connection:

        class Row(django_models.Model):
            row_id = django_models.CharField(max_length=10, primary_key=True)
            price = django_models.DecimalField(**BOUNDS, null=True)
            weight = django_models.DecimalField(max_digits=9, decimal_places=4, default=0)

            class Meta:
                app_label = "catalog"

            def __str__(self) -> str:
                return self.row_id

        with connection.schema_editor() as editor:
            editor.create_model(Row)
        ours = declare(
            "PricedRow",
            ("PRICED#{row_id}", "#METADATA"),
            {
                "by_price": models.IndexKey("gs1", "PRICED", "{price}#{row_id}"),
                "listed": models.IndexKey("gs2", "ROW", "{row_id}"),
            },
            row_id=models.UnicodeAttribute(),
            price=models.DecimalAttribute(**BOUNDS, null=True),
            weight=models.DecimalAttribute(max_digits=9, decimal_places=4, default=Decimal(0)),
        )
        yield ours.objects, Row.objects.using(ALIAS)


NUMBERS = st.one_of(
    st.integers(-20_000, 20_000),
    st.integers(-2_000_000, 2_000_000).map(lambda number: Decimal(number).scaleb(-3)),
    st.integers(-2_000_000, 2_000_000).map(lambda number: Decimal(number).scaleb(-5)),
    st.integers(-2_000_000, 2_000_000).map(lambda number: str(Decimal(number).scaleb(-3))),
    st.floats(-20_000, 20_000, allow_nan=False, allow_subnormal=False),
    st.sampled_from([2.675, 1.005, 0.1, "1.50", "0", Decimal("1E+2"), Decimal("9999.995"), Decimal("9999.994"), None]),
)


def _save(rows: Any, value: Any) -> None:
    row = rows.get(pk="r")
    row.price = value
    row.save()


def _bulk_update(rows: Any, value: Any) -> None:
    row = rows.get(pk="r")
    row.price = value
    rows.bulk_update([row], ["price"])


#: Each way to write a value of an object that is there.
WAYS: dict[str, Callable[[Any, Any], object]] = {
    "create": lambda rows, value: rows.create(row_id="new", price=value),
    "save": _save,
    "update": lambda rows, value: rows.filter(pk="r").update(price=value),
    "bulk_create": lambda rows, value: rows.bulk_create([rows.model(row_id="new", price=value)]),
    "bulk_update": _bulk_update,
    "get_or_create": lambda rows, value: rows.get_or_create(row_id="new", defaults={"price": value}),
    "update_or_create": lambda rows, value: rows.update_or_create(row_id="r", defaults={"price": value}),
}


def empty(rows: Any) -> None:
    rows.all().delete()


def outcome(rows: Any, work: Callable[[Any], object]) -> list[tuple[str, str | None]] | str:
    """Return the stored value as shown, or the class of the error."""
    empty(rows)
    rows.create(row_id="r", price=Decimal("1.01"), weight=Decimal("0.1234"))
    try:
        work(rows)
        found = sorted((row.pk, row.price) for row in rows.all())
    except InvalidOperation:
        return "too many digits"
    return [(pk, None if price is None else str(price).replace("-0.00", "0.00")) for pk, price in found]


@pytest.mark.parametrize("way", WAYS)
@settings(max_examples=EXAMPLES)
@given(value=NUMBERS)
def test_stored_value_is_djangos(both: tuple[Any, Any], way: str, value: Any) -> None:
    """The value has the declared places, rounded half to even; too many digits raise an error."""
    ours, theirs = (outcome(rows, lambda rows: WAYS[way](rows, value)) for rows in both)
    assert ours == theirs


SUMS = st.sampled_from(
    [
        lambda delta: F("price") + delta,
        lambda delta: F("price") - delta,
        lambda delta: F("weight"),
        lambda delta: F("weight") + delta,
        lambda delta: F("price") + F("weight"),
    ]
)


@settings(max_examples=EXAMPLES)
@given(make=SUMS, delta=st.integers(-50_000, 50_000).map(lambda number: Decimal(number).scaleb(-4)))
def test_sum_is_rounded_as_djangos_is_when_it_is_read(both: tuple[Any, Any], make: Any, delta: Decimal) -> None:
    ours, theirs = (outcome(rows, lambda rows: rows.filter(pk="r").update(price=make(delta))) for rows in both)
    assert ours == theirs


LOOKUPS = st.sampled_from(["exact", "gt", "gte", "lt", "lte"])


@settings(max_examples=EXAMPLES)
@given(
    lookup=LOOKUPS,
    # DynamoDB takes numbers from 1E-130 on.
    value=NUMBERS.filter(
        lambda value: value is not None and not (isinstance(value, float) and 0 < abs(value) < 1e-100)
    ),
    stored=st.lists(st.integers(-2000, 2000).map(lambda number: Decimal(number).scaleb(-2)), max_size=4),
)
def test_lookup_compares_as_djangos_does(both: tuple[Any, Any], lookup: str, value: Any, stored: list[Any]) -> None:
    """This includes a key with the number, a filter, and values between two storable ones."""
    found: list[Any] = []
    for rows in both:
        empty(rows)
        for number, price in enumerate(stored):
            rows.create(row_id=f"r{number}", price=price, weight=price)
        queries = (rows.filter(**{f"{name}__{lookup}": value}) for name in ("price", "weight"))
        found.append([sorted(row.pk for row in query) for query in queries])
    assert found[0] == found[1]


def test_too_many_digits_write_nothing(both: tuple[Any, Any]) -> None:
    """A block is rejected as a whole."""
    ours, _ = both
    empty(ours)
    with pytest.raises(TooManyDigits, match="more than 6 digits"), transactions.atomic():
        ours.create(row_id="a", price=1)
        ours.create(row_id="b", price=Decimal(10_000))
    assert not ours.exists()


def test_columns_have_the_places(both: tuple[Any, Any]) -> None:
    """``values_list()``, which reads rows and makes no objects."""
    rows = [
        (empty(each), each.create(row_id="r", price=1), list(each.values_list("price", "weight")))[2] for each in both
    ]
    assert str(rows[0]) == str(rows[1]) == "[(Decimal('1.00'), Decimal('0.0000'))]"


def test_copy_has_the_places_of_its_source() -> None:
    """This applies to its creation, and to its update after a rounded sum."""
    with forgotten():
        source = declare(
            "Rate",
            ("RATE#{rate_id}", "#METADATA"),
            rate_id=models.UnicodeAttribute(),
            amount=models.DecimalAttribute(**BOUNDS),
        )
        copy = declare(
            "RateUse",
            ("RATE#{rate_id}", "USE#{use_id}"),
            use_id=models.UnicodeAttribute(),
            rate=models.ReferenceAttribute(source, on_delete=models.DO_NOTHING, related_name="+"),
            amount=models.CopiedAttribute("rate", "amount"),
        )
        rate = source.objects.create(rate_id="r", amount=Decimal("1.019"))
        copy.objects.create(use_id="u", rate=rate)
        assert str(copy.objects.get(rate=rate).amount) == "1.02"
        source.objects.filter(pk="r").update(amount=F("amount") + Decimal("0.015"))
        found = [str(each.amount) for each in (source.objects.get(pk="r"), copy.objects.get(rate="r"))]
    assert found == ["1.04", "1.04"]


def test_numbers_of_one_pk_are_equal() -> None:
    """The ``pk`` of several parts has the shortest text of a number, as it had before there were places."""
    with forgotten():
        model = declare(
            "Step",
            ("STEP#{name}", "{height}"),
            name=models.UnicodeAttribute(),
            height=models.DecimalAttribute(**BOUNDS),
        )
        made = model.objects.create(name="a", height=Decimal("1.50"))
        assert (made.pk, model.objects.get(pk="a~~1.5").pk) == ("a~~1.5", "a~~1.5")
