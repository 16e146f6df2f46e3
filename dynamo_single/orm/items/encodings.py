"""The documents of one write. Each is encoded once for all steps of the write."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

from msgspec import Struct

from dynamo_single.orm.schema.attributes import Attribute
from dynamo_single.orm.schema.keys.documents import Encoded
from dynamo_single.orm.schema.keys.values import item_size
from dynamo_single.table.request import Item, StoredValue


class _Entry(Struct, frozen=True):
    given: Any
    before: StoredValue | None
    encoded: Encoded


class Encodings(dict[str, _Entry]):
    """The values encoded in one write, by attribute.

    It recognizes a value by its identity. If a document changes in place while the write waits, the write uses the
    earlier encoding; the next save finds the change, because it compares with the written value.
    """

    def of(self, attribute: Attribute, value: object, before: StoredValue | None) -> Encoded:
        """Return a value encoded, with the stored AttributeValue; raise as ``Attribute.encoded()``.

        ``value`` may also be the prepared value that an earlier call returned.
        """
        known = self.get(attribute.name)
        if known is not None and known.before is before and (value is known.given or value is known.encoded.value):
            return known.encoded
        found = attribute.encoded(value, before)
        self[attribute.name] = _Entry(value, before, found)
        return found

    def of_values(self, values: Mapping[str, object]) -> dict[str, Any]:
        """Return the AttributeValues of the already encoded values, by attribute."""
        return {
            name: each.encoded.stored
            for name, each in self.items()
            if name in values and values[name] is each.encoded.value
        }

    def item_size(self, item: Mapping[str, StoredValue]) -> int:
        """Count an item's bytes as ``values.item_size()`` does, without counting encoded values again."""
        known = {id(each.encoded.stored): each.encoded.size for each in self.values()}
        counted = {name: size for name, value in item.items() if (size := known.get(id(value))) is not None}
        rest = {name: value for name, value in item.items() if name not in counted}
        return item_size(rest) + item_size(dict.fromkeys(counted, _EMPTY)) + sum(counted.values())


#: The source of a new object's values.
NO_ITEM: Final[Item] = MappingProxyType({})
#: An AttributeValue of no bytes.
_EMPTY: Final = {"S": ""}
