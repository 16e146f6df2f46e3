"""The baseline: the items of ``tests.catalog.models.Order`` as a PynamoDB model, as its documentation describes."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

from pynamodb.attributes import Attribute, MapAttribute, NumberAttribute, UnicodeAttribute
from pynamodb.constants import NUMBER
from pynamodb.models import Model

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MILLISECOND = timedelta(milliseconds=1)


class MomentAttribute(Attribute[datetime]):
    """Epoch milliseconds, for which PynamoDB does not have an attribute."""

    attr_type = NUMBER

    def serialize(self, value: datetime) -> str:
        """Return the stored value."""
        return str((value - EPOCH) // MILLISECOND)

    def deserialize(self, value: str) -> datetime:
        """Return the Python value."""
        return EPOCH + int(value) * MILLISECOND


class DecimalAttribute(Attribute[Decimal]):
    """A number with all its digits. PynamoDB's ``NumberAttribute`` returns a float."""

    attr_type = NUMBER

    def serialize(self, value: Decimal) -> str:
        """Return the stored value."""
        return str(value)

    def deserialize(self, value: str) -> Decimal:
        """Return the Python value."""
        return Decimal(value)


def model_of(endpoint_url: str | None, region: str, table: str) -> type[Any]:
    """Return the model of one table."""

    class PeerOrder(Model):
        class Meta:
            host = endpoint_url
            table_name = table
            aws_access_key_id = "local"
            aws_secret_access_key = "local"  # noqa: S105 - an engine on this machine, which checks none

        Meta.region = region

        pk = UnicodeAttribute(hash_key=True)
        sk = UnicodeAttribute(range_key=True)
        item_type = UnicodeAttribute(attr_name="itemType")
        gs1pk = UnicodeAttribute(null=True)
        gs1sk = UnicodeAttribute(null=True)
        gs2pk = UnicodeAttribute(null=True)
        gs2sk = UnicodeAttribute(null=True)
        customer = UnicodeAttribute()
        number = NumberAttribute()
        placed_at = MomentAttribute(null=True)
        status = UnicodeAttribute()
        coupon = UnicodeAttribute(null=True)
        total = DecimalAttribute(null=True)

    return PeerOrder


def document_of(endpoint_url: str | None, region: str, table: str) -> type[Any]:
    """Return the model of an item with a document."""

    class PeerDocument(Model):
        class Meta:
            host = endpoint_url
            table_name = table
            aws_access_key_id = "local"
            aws_secret_access_key = "local"  # noqa: S105 - as above

        Meta.region = region

        pk = UnicodeAttribute(hash_key=True)
        sk = UnicodeAttribute(range_key=True)
        data: MapAttribute[str, Any] = MapAttribute()

    return PeerDocument
