"""Make the rows or objects of a whole page by one compiled loop for each model and selection.

msgspec fills a slot for each attribute that is needed; the loop converts the values as ``readers`` does. The loop
raises at an unusual item. The app then reads the page as dicts, item by item. The module does not send requests.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, Literal

import msgspec
from django.db import DEFAULT_DB_ALIAS
from django.db.models.signals import post_init, pre_init
from msgspec import Struct

from dynamo_single.conf import table_settings
from dynamo_single.lazy_modules import LazyModule
from dynamo_single.orm.items.readers import is_read_whole, names_of, value_source
from dynamo_single.orm.items.stored import NAME, PartialBytes
from dynamo_single.orm.schema import registry
from dynamo_single.orm.schema.attributes import Attribute
from dynamo_single.orm.schema.bindings import ModelBinding, Subject, fact
from dynamo_single.orm.schema.fields.base import IdentityField
from dynamo_single.orm.schema.fields.fetching import ObjectState
from dynamo_single.orm.schema.types import DynamoModel
from dynamo_single.table import names as physical
from dynamo_single.table.answers import ResponseDecoder
from dynamo_single.table.shaped.declared import models_of
from dynamo_single.table.shaped.sortable import key_text

if TYPE_CHECKING:
    from dynamo_single.table.shaped import joined
else:
    # Only tables of other programs need it.
    joined = LazyModule("dynamo_single.table.shaped.joined")

#: The container of a row, or a function that converts a tuple.
RowShape = Literal["tuple", "dict", "value"] | Callable[[Iterable[Any]], Any]

#: The content of an AttributeValue, by its type (AWS API reference, AttributeValue). All other values stay unchanged.
_INSIDES: dict[str, Any] = {
    "S": str,
    "N": str,
    "B": bytes,
    "BOOL": bool,
    "SS": list[str],
    "NS": list[str],
    "BS": list[bytes],
}


#: The types of maps and lists.
_NESTED = frozenset(("M", "L"))
_KEY = (physical.PARTITION_KEY, physical.SORT_KEY)


class PageReader(Struct, frozen=True, eq=False):
    """``make`` gives the results of the items of a page, if they were decoded by the ``form``."""

    form: ResponseDecoder
    make: Callable[[Sequence[Any]], list[Any]]


@fact
def rows_reader(
    binding: ModelBinding, attributes: tuple[str, ...], names: tuple[str, ...], shape: RowShape
) -> PageReader | None:
    """The rows of ``values()`` and ``values_list()``: attributes, and the names that they go by.

    ``None`` if the items cannot be decoded this way.
    """
    model: Any = binding.model
    meta = model._meta
    fields: list[Any] = [meta.get_field(name) if name != "pk" else meta.pk for name in attributes]
    groups = [field.names if isinstance(field, IdentityField) else (field.attname,) for field in fields]
    own = registry.attributes_of(model)
    item = _Item(binding, [own[name] for group in groups for name in group])
    decoded = item.type()
    if decoded is None:
        return None
    sources, columns = iter(item.sources), []
    for number, (field, group) in enumerate(zip(fields, groups, strict=True)):
        values = [next(sources) for _ in group]
        if isinstance(field, IdentityField):
            item.known[f"joined_{number}"] = field.joined
        columns.append(f"joined_{number}({_tuple(values)})" if isinstance(field, IdentityField) else values[0])
    if callable(shape):
        item.known["shape"] = shape
        row = f"shape({_tuple(columns)})"
    elif shape == "dict":
        row = _dict(zip(names, columns, strict=True))
    else:
        row = _tuple(columns) if shape == "tuple" else columns[0]
    lines = [*item.usual, f"add({row})"]
    if not any(own[name].attr_type in _NESTED for group in groups for name in group):
        return PageReader(ResponseDecoder(decoded, is_raw=item.is_raw), _compiled("item", lines, item.known))
    # Item by item: the decoded documents of a whole page at once would take several times the memory of its rows.
    item.known["decode"] = msgspec.json.Decoder(decoded).decode
    return PageReader(ResponseDecoder(msgspec.Raw, is_raw=item.is_raw), _compiled("raw", lines, item.known))


def objects_reader(model: Subject, read: Sequence[str], *, keyed: bool = False, by: str = "") -> PageReader | None:
    """The objects of items of which the physical names in ``read`` were read; if there are none, everything.

    ``keyed`` is for a BatchGetItem: the results are pairs of a primary key and an object. With ``by``, the physical
    name of a string, they are pairs of that and an object. Returns ``None`` if the items cannot be decoded this way.
    """
    operation = "BatchGetItem" if keyed else "Query"
    return _partial_reader(model, frozenset(read), operation, by) if read else _whole_reader(model, operation, by)


def single_reader(binding: ModelBinding, absent: str) -> PageReader | None:
    """The object of a GetItem, of a page that is this one item; raises if the item has the attribute ``absent``.

    ``None`` if the item cannot be decoded this way.
    """
    return _reader_of_objects(binding, None, "GetItem", absent=absent)


@fact
def _whole_reader(binding: ModelBinding, operation: str, by: str) -> PageReader | None:
    return _reader_of_objects(binding, None, operation, by=by)


@fact
def _partial_reader(binding: ModelBinding, read: frozenset[str], operation: str, by: str) -> PageReader | None:
    return _reader_of_objects(binding, read, operation, by=by)


def _reader_of_objects(
    binding: ModelBinding, read: frozenset[str] | None, operation: str, *, by: str = "", absent: str = ""
) -> PageReader | None:
    model: Any = binding.model
    keyed, infos, own = operation == "BatchGetItem", binding.layout.attributes, registry.attributes_of(binding.model)
    attributes = {name: each for name, each in own.items() if read is None or infos[name].stored in read}
    item = _Item(binding, list(attributes.values()), _KEY if keyed else tuple(filter(None, (by, absent))))
    decoded = item.type()
    if decoded is None:
        return None
    item.known |= {
        "decode": msgspec.json.Decoder(decoded).decode,
        "model": model,
        "new": model.__new__,
        "State": ObjectState,
        "database": DEFAULT_DB_ALIAS,
        "partial": PartialBytes,
        "read": read,
        "before": pre_init.has_listeners,
        "after": post_init.has_listeners,
    }
    if absent:
        item.usual.append(f"if {item.value(absent)} is not None: raise Other")
    # Its own bytes: a part of the page would hold all of it.
    stored = "bytes(raw)" if read is None else "partial(bytes(raw), read)"
    held = [*zip(attributes, item.sources, strict=True), ("_state", "state"), (NAME, stored)]
    lines = (
        *item.usual,
        "state = State()",
        "state.adding = False",
        "state.db = database",
        "made = new(model)",
        f"made.__dict__ = {_dict(held)}",
        f"add(({item.pair()}, made))" if keyed else f"add(({item.text(by)}, made))" if by else "add(made)",
    )
    form = ResponseDecoder(msgspec.Raw, is_raw=item.is_raw, operation=operation)
    # An object for which a signal has a receiver is made by itself.
    return PageReader(form, _compiled("raw", lines, item.known, "if before(model) or after(model): raise Other"))


class _Item:
    """The struct that msgspec fills with an item, and the sources of some attributes' values.

    ``texts`` contains the app's own names of further keys and strings. ``is_raw`` means that msgspec does not
    decode binary values. Slots have the table's names; one attribute may be several keys there.
    """

    def __init__(self, binding: ModelBinding, attributes: Sequence[Attribute], texts: Sequence[str] = ()) -> None:
        layout = binding.layout
        self.shape = shape = table_settings(layout.alias).shape
        is_typed = shape.type_attribute is not None
        wanted = dict.fromkeys((*((physical.ITEM_TYPE,) if is_typed else _KEY), *texts))
        if shape.sort is None:
            wanted.pop(physical.SORT_KEY, None)
        key_types = {name: key.type for name, key in shape.pairs}
        stored_as = [shape.name_of(layout.attributes[each.name].stored) for each in attributes]
        stored = list(dict.fromkeys((*map(shape.name_of, wanted), *stored_as)))
        places = {name: f"slot_{number}" for number, name in enumerate(stored)}
        self._places = places
        self._renamed = {place: name for name, place in places.items()}
        self._types: dict[str, Any] = {
            places[shape.name_of(text)]: _value_type(key_types.get(text, "S")) for text in wanted
        }
        self.is_raw = False
        self._is_mixed = False
        self.sources = []
        #: Ends the loop at an item that is not as usual.
        self.usual = []
        if is_typed:
            self.usual = [f"if item.{places[shape.name_of(physical.ITEM_TYPE)]}.S != item_type: raise Other"]
        for position, attribute in enumerate(attributes):
            place, kind = places[stored_as[position]], attribute.attr_type
            if is_read_whole(attribute) or kind not in _INSIDES:
                self._is_mixed = self._is_mixed or place in self._types
                self._types[place] = Any
                self.is_raw = True
                inside = f"found[{kind!r}]"
            else:
                self._add_type(place, kind)
                inside = f"found.{kind}"
            self.sources.append(value_source(position, attribute, f"item.{place}", inside))
        # The app reads attributes that only keys contain item by item.
        self._is_mixed = self._is_mixed or any(each.in_key_only for each in attributes)
        self.known = {**names_of(attributes), "item_type": layout.item_type, "Other": _Other}
        if not shape.is_own:
            self.known |= {"key_text": key_text, "pair_of_id": joined.pair_of_id}
        if not is_typed:
            self.known["type_of"] = models_of(layout.alias).type_of
            self.usual = [f"if type_of(*{self.pair()}) != item_type: raise Other"]

    def _add_type(self, place: str, kind: str) -> None:
        wanted = _value_type(kind)
        # If a key has another type than the attribute with its name, the app decodes item by item.
        self._is_mixed = self._is_mixed or self._types.get(place, wanted) is not wanted
        self._types[place] = wanted

    def text(self, name: str) -> str:
        """Return the source of a key or string by the app's own name."""
        kind = next((key.type for each, key in self.shape.pairs if each == name), "S")
        found = f"{self.value(name)}.{kind}"
        return found if kind == "S" else f"key_text({{{kind!r}: {found}}})"

    def value(self, name: str) -> str:
        """Return the source of an AttributeValue, or of ``None``, by the app's own name."""
        return f"item.{self._places[self.shape.name_of(name)]}"

    def pair(self) -> str:
        """Return the source of the primary key as a pair of strings."""
        if self.shape.sort is not None:
            return f"({self.text(physical.PARTITION_KEY)}, {self.text(physical.SORT_KEY)})"
        return f"pair_of_id({self.text(physical.PARTITION_KEY)}, by_prefix={self.shape.by_prefix})"

    def type(self) -> Any:
        """The type; ``None`` if the table has other types, or an attribute has a name that msgspec does not take."""
        if self._is_mixed:
            return None
        fields = [(place, Any if kind is Any else kind | None, None) for place, kind in self._types.items()]
        try:
            return msgspec.defstruct("Item", fields, rename=self._renamed, gc=False)
        except ValueError:
            return None


class _Other(Exception):
    """An item is another model's."""


@cache
def _value_type(kind: str) -> type[Struct]:
    """An AttributeValue of one type; a value of another type does not fit."""
    return msgspec.defstruct("Value", [(kind, _INSIDES[kind])], gc=False)


def _compiled(
    each: str, lines: Iterable[str], known: dict[str, Any], first: str = "pass"
) -> Callable[[Sequence[DynamoModel]], list[DynamoModel]]:
    """Return the loop over a page, after a ``first`` line; ``each`` is ``"raw"`` if its parts are bytes."""
    decoding = ("item = decode(raw)",) if each == "raw" else ()
    body = (*decoding, *lines)
    loop = "".join(f"\n        {line}" for line in body)
    begin = f"def make(page):\n    {first}\n    results = []\n    add = results.append"
    source = f"{begin}\n    for {each} in page:{loop}\n    return results\n"
    exec(source, known)  # noqa: S102 - literals and positions, as ``readers`` says
    make: Callable[[Sequence[Any]], list[Any]] = known["make"]
    return make


def _tuple(sources: Iterable[str]) -> str:
    return f"({''.join(f'{each}, ' for each in sources)})"


def _dict(sources: Iterable[tuple[str, str]]) -> str:
    return f"{{{', '.join(f'{name!r}: {each}' for name, each in sources)}}}"
