"""Check constraints: every writer checks the values before a request, computed values too."""

from __future__ import annotations

from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.core.exceptions import ValidationError
from django.db import IntegrityError
from django.db.models import CheckConstraint, F, Q

from dynamo_single import models, transactions
from dynamo_single.checks.models import check_model
from dynamo_single.exceptions import CheckViolation, NotSupported, StaleObject
from dynamo_single.testing import assert_requests
from tests.catalog.stores import Article
from tests.unit.declaring import declare, forgotten

pytestmark = pytest.mark.usefixtures("table")


@pytest.fixture
def article() -> Article:
    return Article.objects.create(article_id="a", stock=5, reserved=2, price=3)


def stored() -> tuple[int, int, int | None]:
    found = Article.objects.consistent().get(pk="a")
    return found.stock, found.reserved, found.price


def priced(price: int) -> Article:
    found = Article.objects.get(pk="a")
    found.price = price
    return found


WRITES: dict[str, Any] = {
    "update": lambda: Article.objects.filter(pk="a").update(reserved=6),
    "computed": lambda: Article.objects.filter(pk="a").update(reserved=F("reserved") + 4),
    "lowered": lambda: Article.objects.filter(pk="a").update(stock=F("stock") - 4),
    "bulk_create": lambda: Article.objects.bulk_create([Article(article_id="b"), Article(article_id="c", price=-1)]),
    "bulk_update": lambda: Article.objects.bulk_update([priced(0)], ["price"]),
    "create": lambda: Article.objects.create(article_id="d", reserved=1),
}


@pytest.mark.parametrize("name", WRITES)
def test_violation_writes_nothing(article: Article, name: str) -> None:
    with pytest.raises(IntegrityError):
        WRITES[name]()
    assert stored() == (5, 2, 3)


def test_save_sends_no_request(article: Article) -> None:
    article.price = 0
    with assert_requests([]), pytest.raises(CheckViolation) as raised:
        article.save()
    assert raised.value.name == "positive"
    assert str(raised.value) == (
        "catalog.Article with pk 'a' would violate the constraint 'positive' of catalog.Article. Nothing was written. "
        "Set values that meet the constraint."
    )


def test_asave_raises_violation(article: Article) -> None:
    article.reserved = 9
    with pytest.raises(CheckViolation):
        async_to_sync(article.asave)()


def test_valid_writes_are_stored(article: Article) -> None:
    Article.objects.filter(pk="a").update(reserved=F("reserved") + 3)
    Article.objects.filter(pk="a").update(price=None)
    assert stored() == (5, 5, None)


def test_missing_value_meets_constraint(article: Article) -> None:
    """A missing value meets a constraint, like NULL in SQL."""
    assert Article.objects.create(article_id="n", price=None).price is None


def test_update_of_other_attribute_is_plain(article: Article) -> None:
    with assert_requests(["UpdateItem"]):
        Article.objects.filter(pk="a").update(name="x")


def test_concurrent_change_is_noticed(article: Article) -> None:
    """Another process lowered the stock, which the object does not know."""
    Article.objects.filter(pk="a").update(stock=2)
    article.reserved = 5
    with pytest.raises(StaleObject):
        article.save()
    assert stored() == (2, 2, 3)


def test_block_is_checked(article: Article) -> None:
    with pytest.raises(CheckViolation), transactions.atomic():
        article.price = 0
        article.save()
    assert stored() == (5, 2, 3)


def test_pynamodb_writer_is_refused(article: Article) -> None:
    with pytest.raises(NotSupported, match="PynamoDB's writers"), Article.batch_write() as batch:
        batch.save(article)


def test_full_clean_reports_message() -> None:
    with pytest.raises(ValidationError) as raised:
        Article(article_id="x", price=0, name="x").full_clean()
    assert raised.value.message_dict == {"__all__": ["Enter a price."]}


def test_counter_in_constraint_is_reported() -> None:
    """Its value changes without a read of the object."""
    with forgotten():
        model = declare(
            "Shelf",
            ("SHELF#{shelf_id}", "#METADATA"),
            shelf_id=models.IdAttribute(),
            version=models.VersionAttribute(),
            options={"constraints": [CheckConstraint(condition=Q(version__lt=5), name="few")]},
        )
        found = [each.msg for each in check_model(model)]
    assert any("'few'" in each and "version" in each for each in found)
