"""Requests and responses of one table by its shape: from the app's own names to the table's, and back.

It depends on a shape and on the models of an alias. It does not send requests.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from decimal import Decimal
from functools import lru_cache, partial
from typing import Any, Final

from dynamo_single.conf.shapes import NO_SORT_KEY, KeyType, Shape
from dynamo_single.exceptions import InvalidValue, NotSupported
from dynamo_single.table import names as own
from dynamo_single.table.answers import TypedResponse
from dynamo_single.table.names import PARTITION_KEY, SORT_KEY
from dynamo_single.table.request import Item, Parameters, StoredValue
from dynamo_single.table.shaped import joined
from dynamo_single.table.shaped.declared import NO_MODELS, ModelNames
from dynamo_single.table.shaped.expressions import (
    EXPRESSIONS,
    NAMES,
    PROJECTION,
    ExpressionWriter,
    Rewritten,
    meets_constant,
)
from dynamo_single.table.shaped.joined import beginning_of, id_of_pair, is_pair, pair_of_id
from dynamo_single.table.shaped.sortable import key_text, key_value

_ONE_TABLE: Final = frozenset({"DeleteItem", "GetItem", "PutItem", "Query", "Scan", "UpdateItem"})
_EXPRESSIONS: Final = frozenset(EXPRESSIONS)
_VALUES: Final = "ExpressionAttributeValues"
#: The operations whose responses, also those of errors, contain at most one item.
_OF_ONE_ITEM: Final = frozenset({"DeleteItem", "GetItem", "PutItem", "UpdateItem"})


class Translator:
    """Translates for one table; ``shape`` is not the app's own."""

    def __init__(
        self, shape: Shape, models: ModelNames = NO_MODELS, others: Callable[[str], Translator | None] | None = None
    ) -> None:
        self.shape = shape
        self.models = models
        #: Returns the translator of the table that an action of a transaction names; ``None`` if it needs none.
        self.others = others or (lambda table_name: self)
        keys = {key.name for _, key in shape.pairs}
        self._shared = models.declared & keys
        self._expressions = ExpressionWriter(shape, self._shared, models.key_only)
        self._rewritten = lru_cache(maxsize=512)(self._expressions.rewrite)
        self._types: dict[str, KeyType] = {name: key.type for name, key in shape.pairs if key.type != "S"}
        self._renames = shape.renames
        self._back = _back(shape, self._shared)
        self._index_names = {each.name: each.index_name for each in shape.indexes if each.name != each.index_name}
        self._constants = tuple(own.key_names(each.name) for each in shape.indexes if each.sort is None)
        self._lacking = frozenset(sort for _, sort in self._constants)

    # Items

    def written(self, item: Item) -> Item:
        """Return an item or a key as it is stored."""
        shape, found = self.shape, {}
        skipped = self._skipped(item)
        if shape.sort is None and own.PARTITION_KEY in item and own.SORT_KEY in item:
            found[shape.partition.name] = self._joined(item)
            skipped |= {own.PARTITION_KEY, own.SORT_KEY}
        for name, value in item.items():
            if name in skipped:
                continue
            if name in self._types:
                value = key_value(value, self._types[name])
            stored = self._renames.get(name, name)
            if found.setdefault(stored, value) != value and not _is_same_number(found[stored], value):
                raise InvalidValue(
                    f"{stored!r} is a key of the table and an attribute, and would be stored as {value!r} and as "
                    f"{found[stored]!r}. Nothing was written. Use an index with keys of its own for this model."
                )
        return found

    def _skipped(self, item: Item) -> set[str]:
        found = {*self._lacking}
        if own.PARTITION_KEY in item:
            found |= self.models.key_only
            # An item of the app itself, such as a claim, has a type in every table.
            if self.shape.type_attribute is None and own.ITEM_TYPE in item and self._type_of(item):
                found.add(own.ITEM_TYPE)
        return found

    def _type_of(self, item: Item) -> str | None:
        return self.models.type_of(item[own.PARTITION_KEY]["S"], item[own.SORT_KEY]["S"])

    def _joined(self, item: Item) -> StoredValue:
        shape = self.shape
        partition, sort = item[own.PARTITION_KEY]["S"], item[own.SORT_KEY]["S"]
        identifier = {"S": id_of_pair(partition, sort, by_prefix=shape.by_prefix)}
        if not shape.by_prefix:
            return key_value(identifier, shape.partition.type)
        if item.get(own.ID, identifier) != identifier:
            shown = joined.shown_id(*joined.record_key(item[own.ID].get("S", "")))
            raise InvalidValue(
                f"{shown!r} cannot be the id of an item in a table whose KEY is 'id': its key would be "
                f"{joined.shown_id(partition, sort)!r}. The identifier of a record begins with '<id_prefix>-' there; "
                "leave it out, and one is made; or let the record have id_prefix = '', which takes any."
            )
        return identifier

    def read(self, item: Item) -> dict[str, StoredValue]:
        """Return a stored item or key by the app's own names."""
        found: dict[str, StoredValue] = {}
        for name, value in item.items():
            if (names := self._back.get(name)) is None:
                # Another program's attribute with the app's name of a key, the type or the expiry is none of these.
                if name not in self._renames:
                    found.setdefault(name, value)
                continue
            for each in names:
                found[each] = {"S": key_text(value)} if each in self._types else value
        self._add_missing(found, item)
        return found

    def _add_missing(self, found: dict[str, StoredValue], stored: Item) -> None:
        """Add what the table does not store: the constants of missing sort keys, the type, and parts of the key."""
        shape = self.shape
        if shape.sort is None and shape.partition.name in stored:
            text = key_text(stored[shape.partition.name])
            partition, sort = pair_of_id(text, by_prefix=shape.by_prefix)
            found |= {own.PARTITION_KEY: {"S": partition}, own.SORT_KEY: {"S": sort}}
            if is_pair(text):
                found.pop(shape.partition.name, None)
            elif shape.by_prefix:
                found[own.ID] = {"S": text}
        for partition_name, sort_name in self._constants:
            if partition_name in found:
                found[sort_name] = {"S": NO_SORT_KEY}
        if own.PARTITION_KEY not in found or own.SORT_KEY not in found:
            return
        # Another program may have an attribute with the app's name of the type.
        if shape.type_attribute is None and (item_type := self._type_of(found)):
            found[own.ITEM_TYPE] = {"S": item_type}
        if self.models.key_only:
            found |= self.models.values_of(found)

    def pair(self, key: Item) -> tuple[str, str]:
        """Return ``pk`` and ``sk`` of a stored item or key; empty strings without a key."""
        found = self.read(key)
        return found.get(own.PARTITION_KEY, {}).get("S", ""), found.get(own.SORT_KEY, {}).get("S", "")

    # Requests

    def request(self, operation: str, params: Parameters) -> tuple[str, Parameters]:
        """Return a request as the table takes it; raise ``NotSupported`` if it has no equivalent.

        The filter of a Query or Scan by type is left out if items have no type; see ``types_of()``.
        """
        if operation in _ONE_TABLE:
            if operation == "Query" and self.shape.sort is None and "IndexName" not in params:
                return self._partition(params)
            return operation, self._one(params)
        if operation == "BatchGetItem":
            return operation, {**params, "RequestItems": self._each(params["RequestItems"], self._batch)}
        if operation == "BatchWriteItem":
            return operation, {**params, "RequestItems": self._each(params["RequestItems"], self._writes)}
        if operation in ("TransactGetItems", "TransactWriteItems"):
            actions = [{kind: self._action(entry) for kind, entry in each.items()} for each in params["TransactItems"]]
            return operation, {**params, "TransactItems": actions}
        return operation, params

    def _action(self, entry: Parameters) -> Parameters:
        """Return an action of a transaction, which may be one on another table."""
        other = self.others(entry.get("TableName", ""))
        return entry if other is None else other._one(entry)

    def types_of(self, operation: str, params: Parameters) -> frozenset[str]:
        """Return the types to which a Query or Scan filters items that have no type; empty without such a filter."""
        if self.shape.type_attribute is not None or operation not in ("Query", "Scan"):
            return frozenset()
        if _EXPRESSIONS.isdisjoint(params) or (written := self._rewritten_of(params)) is None:
            return frozenset()
        return frozenset(params[_VALUES][each]["S"] for each in written.types)

    def _each(self, entries: Mapping[str, Any], translate: Callable[[Any], object]) -> dict[str, object]:
        return {name: translate(entry) for name, entry in entries.items()}

    def _one(self, params: Parameters) -> dict[str, Any]:
        """Return a copy of the parameters of a request or an action as the table takes them."""
        has_expressions = NAMES in params or not _EXPRESSIONS.isdisjoint(params)
        written = self._rewritten_of(params) if has_expressions else None
        found = dict(params) if written is None else {**params, **written.params}
        if written is not None and written.is_fitted:
            self._fit(found, written)
        if "Key" in found:
            found["Key"] = self.written(found["Key"])
        elif "Item" in found:
            found["Item"] = self.written(found["Item"])
        else:
            if "ExclusiveStartKey" in found:
                found["ExclusiveStartKey"] = self.written(found["ExclusiveStartKey"])
            if "IndexName" in found:
                found["IndexName"] = self._index_names.get(found["IndexName"], found["IndexName"])
        return found

    def _rewritten_of(self, params: Parameters) -> Rewritten | None:
        """Return the expressions as the table takes them; ``None`` if they stay as they are."""
        names = params.get(NAMES) or {}
        return self._rewritten((*map(params.get, EXPRESSIONS), *names, *names.values()))

    def _fit(self, params: dict[str, Any], written: Rewritten) -> None:
        """Leave out the parameters and values that the expressions no longer use, and change the others."""
        for name in written.dropped:
            params.pop(name, None)
        if _VALUES in params:
            params[_VALUES] = self._values(params[_VALUES], written)
            if not params[_VALUES]:
                del params[_VALUES]
        if written.types:
            self._read_keys(params)

    def _batch(self, entry: Parameters) -> dict[str, Any]:
        return {**self._one(entry), "Keys": [self.written(key) for key in entry["Keys"]]}

    def _writes(self, entries: list[dict[str, Any]]) -> list[dict[str, object]]:
        return [{kind: self._one(write) for kind, write in entry.items()} for entry in entries]

    def _read_keys(self, params: dict[str, Any]) -> None:
        """Read the keys, by which the types are recognized, also if only the number of items is needed."""
        is_count = params.get("Select") == "COUNT"
        if not is_count and "ProjectionExpression" not in params:
            return
        read = [] if is_count else params["ProjectionExpression"].split(", ")
        params.pop("Select", None)
        names = params[NAMES] = {**params.get(NAMES, {})}
        known = {names.get(each, each) for each in read}
        for number, key in enumerate(self.shape.keys):
            if key.name not in known:
                names[f"#key_{number}"] = key.name
                read.append(f"#key_{number}")
        params["ProjectionExpression"] = ", ".join(read)

    def _values(self, values: Mapping[str, StoredValue], written: Rewritten) -> dict[str, StoredValue]:
        for operator, compared in written.sorts:
            if not meets_constant(operator, tuple(values[each]["S"] for each in compared)):
                raise NotSupported(
                    "The query compares a sort key, but this table or index has only a partition key: name that alone."
                )
        found = {name: value for name, value in values.items() if name in written.values}
        for name, kind in written.typed:
            found[name] = key_value(found[name], kind)
        for name in written.prefixes:
            found[name] = {"S": beginning_of(found[name]["S"])}
        return found

    def _partition(self, params: Parameters) -> tuple[str, Parameters]:
        """Return the Query of a partition in a table without a sort key; a partition there has at most one item.

        The partition of migrations is a range of joined keys, which only a Scan finds.
        """
        beginning = joined.beginning_of_query(params)
        if beginning is not None:
            rest = {
                name: each for name, each in params.items() if name not in ("KeyConditionExpression", NAMES, _VALUES)
            }
            return "Scan", {
                **self._one(rest),
                "FilterExpression": "begins_with(#joined, :joined)",
                NAMES: {"#joined": self.shape.partition.name},
                _VALUES: {":joined": {"S": beginning}},
            }
        if self.shape.by_prefix:
            raise NotSupported(
                "A table whose KEY is 'id' has no partitions to query, because each item is its own partition. Query "
                "by the id, or by a key on an index."
            )
        return "Query", self._one(params)

    # Responses

    def response(self, operation: str, params: Parameters, answer: Mapping[str, Any]) -> dict[str, Any]:
        """Return a response or an error response to a request with its items by the app's own names.

        The response does not contain or count items whose type does not meet the filter of the request.
        """
        if operation in _OF_ONE_ITEM and isinstance(answer, TypedResponse):
            # Its only other member is the capacity. Listeners have the function of before.
            untyped = answer.untyped
            answer.untyped = lambda: self.response(operation, params, untyped())
            return answer
        if operation in _OF_ONE_ITEM:
            name = "Item" if "Item" in answer else "Attributes"
            item = answer.get(name)
            return {**answer, name: self.read(item)} if item else dict(answer)
        if isinstance(answer, TypedResponse):
            plain = partial(self.response, operation, params, answer.as_plain())
            return answer.of_items(answer.typed, self.response(operation, params, dict(answer)), plain)
        found, read = dict(answer), self.read
        if found.get("LastEvaluatedKey"):
            found["LastEvaluatedKey"] = read(found["LastEvaluatedKey"])
        if "Items" in found:
            found["Items"] = self._of_types(operation, params, [read(item) for item in found["Items"]], found)
        if "Responses" in found:
            found["Responses"] = self._responses(operation, params, found["Responses"])
        if found.get("UnprocessedKeys"):
            given = params.get("RequestItems", {})
            found["UnprocessedKeys"] = {
                name: {**given.get(name, entry), "Keys": [read(key) for key in entry["Keys"]]}
                for name, entry in found["UnprocessedKeys"].items()
            }
        if found.get("UnprocessedItems"):
            found["UnprocessedItems"] = {
                name: [{kind: self._entry(write) for kind, write in entry.items()} for entry in entries]
                for name, entries in found["UnprocessedItems"].items()
            }
        if "CancellationReasons" in found:
            found["CancellationReasons"] = [
                self._of_action(place, params, reason) for place, reason in enumerate(found["CancellationReasons"])
            ]
        return found

    def _of_types(
        self, operation: str, params: Parameters, items: list[dict[str, StoredValue]], answer: dict[str, Any]
    ) -> list[dict[str, StoredValue]]:
        if not (types := self.types_of(operation, params)):
            return items
        kept = [item for item in items if item.get(own.ITEM_TYPE, {}).get("S") in types]
        answer["Count"] = len(kept)
        return [] if params.get("Select") == "COUNT" else kept

    def _responses(self, operation: str, params: Parameters, responses: Any) -> Any:
        if operation == "BatchGetItem":
            return {name: [self.read(item) for item in items] for name, items in responses.items()}
        return [self._of_action(place, params, each) for place, each in enumerate(responses)]

    def _of_action(self, place: int, params: Parameters, entry: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return a response to an action of a transaction, or its reason; the action may be one on another table."""
        actions = params.get("TransactItems", ())
        action = next(iter(actions[place].values())) if place < len(actions) else {}
        other = self.others(action.get("TableName", ""))
        return entry if other is None else other._entry(entry)

    def _entry(self, entry: Mapping[str, Any]) -> dict[str, Any]:
        return {name: self.read(value) if name in ("Item", "Key") and value else value for name, value in entry.items()}


class RenamingTranslator(Translator):
    """Translates for a table whose names differ one by one, so that nothing else of an item has to change."""

    def __init__(
        self, shape: Shape, models: ModelNames = NO_MODELS, others: Callable[[str], Translator | None] | None = None
    ) -> None:
        super().__init__(shape, models, others)
        self._stored_pk, self._stored_sk = (shape.name_of(name) for name in (own.PARTITION_KEY, own.SORT_KEY))
        self._written = tuple(shape.renames.items())
        self._read = tuple((stored, name) for name, stored in self._written)

    def written(self, item: Item) -> dict[str, StoredValue]:
        """Return an item or a key as it is stored."""
        if len(item) == 2 and PARTITION_KEY in item and SORT_KEY in item:
            return {self._stored_pk: item[PARTITION_KEY], self._stored_sk: item[SORT_KEY]}
        found = dict(item)
        for name, stored in self._written:
            if name in found:
                found[stored] = found.pop(name)
        return found

    def request(self, operation: str, params: Parameters) -> tuple[str, Parameters]:
        """Return a request as the table takes it; the most frequent one is written here, with its key."""
        key: Item = params["Key"] if operation == "GetItem" and PROJECTION not in params else {}
        if len(key) == 2 and PARTITION_KEY in key and SORT_KEY in key:
            # Without a call of ``written()``, which costs half as much again.
            written = {self._stored_pk: key[PARTITION_KEY], self._stored_sk: key[SORT_KEY]}
            return operation, {**params, "Key": written}
        return super().request(operation, params)

    def read(self, item: Item) -> dict[str, StoredValue]:
        """Return a stored item or key by the app's own names."""
        found = dict(item)
        for stored, name in self._read:
            if stored in found:
                found[name] = found.pop(stored)
            elif name in found:
                del found[name]  # another program's attribute, as above
        return found


def translator_for(shape: Shape, models: ModelNames, others: Callable[[str], Translator | None]) -> Translator:
    """Return the translator of a table; ``others`` returns that of another table by its name."""
    renames, keys = shape.renames, {key.name for _, key in shape.pairs}
    is_plain = (
        shape.sort is not None
        and all(each.sort is not None for each in shape.indexes)
        and all(key.type == "S" for _, key in shape.pairs)
        and shape.type_attribute is not None
        and keys.isdisjoint(models.declared)
        and not models.key_only
        # No name stands for several of the app's own, and none is the app's own name of something else.
        and len({*renames.values()}) == len(renames)
        and renames.keys().isdisjoint(renames.values())
    )
    return (RenamingTranslator if is_plain else Translator)(shape, models, others)


def _back(shape: Shape, shared: frozenset[str]) -> dict[str, tuple[str, ...]]:
    """Return the app's own names of each attribute that the table calls otherwise, or that is several keys."""
    found: dict[str, tuple[str, ...]] = {}
    for name, stored in shape.renames.items():
        itself = (stored,) if stored in shared else ()
        found[stored] = (*found.get(stored, itself), name)
    for name, key in shape.pairs:
        if key.name in found and name not in found[key.name]:
            found[key.name] = (*found[key.name], name)
        elif key.type != "S" and key.name not in found:
            found[key.name] = (name,)
    if shape.sort is None:
        # Its own part is added by the rule of joined keys.
        kept = tuple(name for name in found.get(shape.partition.name, ()) if name != own.PARTITION_KEY)
        found[shape.partition.name] = kept
    return found


def _is_same_number(one: StoredValue, other: StoredValue) -> bool:
    return "N" in one and "N" in other and Decimal(one["N"]) == Decimal(other["N"])
