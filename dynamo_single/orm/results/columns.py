"""The rows of ``values()`` and ``values_list()``, read from items without creating objects, and nested values.

``values()`` and ``order_by()`` may name values inside documents. Python reads them from the items, because DynamoDB
orders by keys and returns whole attributes. This module does not depend on plans or requests; the projection limits the
read attributes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any

from django.db.models.utils import create_namedtuple_class
from msgspec import Struct

from dynamo_single.exceptions import NotSupported, UnknownField
from dynamo_single.orm.conditions.wording import COMPUTE_IN_PYTHON, SORT_IN_PYTHON, extraction_advice
from dynamo_single.orm.items import decode
from dynamo_single.orm.items.decode import Item
from dynamo_single.orm.items.page_readers import PageReader, RowShape, rows_reader
from dynamo_single.orm.items.readers import row_reader, value_reader
from dynamo_single.orm.schema import registry
from dynamo_single.orm.schema.attributes.computed import Steps, steps_into, value_at
from dynamo_single.orm.schema.attributes.documents import SetAttribute
from dynamo_single.orm.schema.attributes.shapes import stored_steps
from dynamo_single.orm.schema.fields.base import IdentityField
from dynamo_single.orm.schema.types import DynamoModel
from dynamo_single.orm.where.lookups import refuse_path
from dynamo_single.orm.where.paths import reference_of

_STEP = "__"
#: The types whose values have an order, and their names in messages.
_KINDS: tuple[tuple[type | tuple[type, ...], str], ...] = (
    (bool, "truth values"),
    ((int, Decimal), "numbers"),
    (str, "texts"),
    (bytes, "bytes"),
)


def place_of(model: type[DynamoModel], name: str) -> tuple[str, Steps] | None:
    """Return the document and the path in it that a name means; ``None`` if it does not lead into a document."""
    first, *steps = name.split(_STEP)
    attribute = registry.attributes_of(model).get(first)
    if not steps or attribute is None or not attribute.document or isinstance(attribute, SetAttribute):
        return None
    place = stored_steps(attribute, steps_into(attribute.attr_type, steps))
    if "" in place or (attribute.attr_type == "L" and isinstance(place[0], str)):
        raise UnknownField(
            f"{model._meta.label} has no path {name!r}: elements of lists are numbered from 0, and names "
            "cannot be empty."
        )
    return first, place


def sort_value_reader(model: type[DynamoModel], name: str) -> Callable[[Item], object]:
    """Return a function that reads the value of an attribute, or a nested value, for ordering.

    It raises ``NotSupported`` for nested values that have no order, or whose types have no order among each other.
    """
    place = place_of(model, name)
    if place is None:
        return value_reader(model, name)
    read, steps, found = value_reader(model, place[0]), place[1], dict[str, None]()

    def value(item: Item) -> object:
        given = value_at(read(item), steps)
        if given is not None:
            kind = next((name for kinds, name in _KINDS if isinstance(given, kinds)), "")
            found[kind or type(given).__name__] = None
            if not kind or len(found) > 1:
                raise NotSupported(
                    f"{model._meta.label}: order_by({name!r}) finds {' and '.join(found)} there, which have no order"
                    f"{' among each other' if kind else ''}. Exclude values of another type, or {SORT_IN_PYTHON}."
                )
        return given

    return value


Shape = Callable[[Sequence[str], tuple[Any, ...]], Any]


class Columns(Struct, frozen=True):
    """The attributes of each row, their names in it, and the shape of a row."""

    attributes: tuple[str, ...]
    names: tuple[str, ...]
    shape: Shape
    #: The paths of nested values, by the numbers of their columns.
    places: Mapping[int, Steps] = {}
    #: The paths from a reference to values of other objects, by the numbers of their columns.
    paths: Mapping[int, str] = {}

    def without_places(self, model: type[DynamoModel]) -> Columns:
        """Return the columns for grouped, distinct or annotated rows; raises ``NotSupported`` for nested values."""
        for number in self.places:
            raise NotSupported(
                f"{model._meta.label}: values({self.names[number]!r}) is inside {self.attributes[number]}, and "
                f"grouped, distinct or annotated rows consist of whole attributes. Either {COMPUTE_IN_PYTHON}. "
                f"Or keep the value in an attribute: {extraction_advice(self.names[number])}."
            )
        for number in self.paths:
            reference, _, rest = self.names[number].partition(_STEP)
            raise NotSupported(
                f"{model._meta.label}: values({self.names[number]!r}) is an attribute of another model, and "
                f"grouped or annotated rows consist of the model's own attributes. Either {COMPUTE_IN_PYTHON}. "
                f'Or keep a copy: models.CopiedAttribute("{reference}", "{rest}").'
            )
        return self

    def reader(self, model: type[DynamoModel]) -> Callable[[decode.Item], Any]:
        """Return a function that makes the row of an item; it raises ``UnexpectedItem`` for another model's item."""
        names, shape, read = self.names, self.shape, _reader(model, self.attributes)
        if self.places:
            read = _placed(read, self.places)

        def row(item: decode.Item) -> object:
            decode.check_type(model, item)
            return shape(names, read(item))

        return row

    def page_reader(self, model: type[DynamoModel]) -> PageReader | None:
        """Return what makes the rows of a page; ``None`` if rows are made item by item."""
        shape = _SHAPES.get(self.shape)
        if self.places:
            return None
        if shape is None and self.shape is not as_named_tuple:
            return None
        made = shape or create_namedtuple_class(*self.names)._make
        return rows_reader(model, self.attributes, self.names, made)


def _reader(model: type[DynamoModel], names: Sequence[str]) -> Callable[[decode.Item], tuple[object, ...]]:
    """Return a function that reads attributes; it joins the attributes of a composite identity."""
    fields: list[Any] = [model._meta.get_field(name) if name != "pk" else model._meta.pk for name in names]
    if not any(isinstance(field, IdentityField) for field in fields):
        return row_reader(model, [field.attname for field in fields])
    groups = [field.names if isinstance(field, IdentityField) else (field.attname,) for field in fields]
    read = row_reader(model, [name for group in groups for name in group])

    def row(item: decode.Item) -> tuple[object, ...]:
        values = iter(read(item))
        return tuple(
            field.joined([next(values) for _ in group]) if isinstance(field, IdentityField) else next(values)
            for field, group in zip(fields, groups, strict=True)
        )

    return row


def _placed(
    read: Callable[[decode.Item], tuple[Any, ...]], places: Mapping[int, Steps]
) -> Callable[[decode.Item], tuple[Any, ...]]:
    """Return a function that replaces documents in rows by their nested values."""

    def row(item: decode.Item) -> tuple[Any, ...]:
        values = enumerate(read(item))
        return tuple(value_at(value, places[number]) if number in places else value for number, value in values)

    return row


def columns(
    model: type[DynamoModel], fields: Sequence[Any], expressions: Mapping[str, object], shape: Shape
) -> Columns:
    """Return the requested columns: without any names, all attributes."""
    if expressions or any(not isinstance(field, str) for field in fields):
        raise NotSupported(
            "Expressions in values() are not supported: DynamoDB returns attributes as they are stored. Name "
            f"attributes, or {COMPUTE_IN_PYTHON}."
        )
    meta = model._meta
    attributes = {"pk": "pk"}
    attributes |= {name: f.attname for f in meta.concrete_fields for name in (f.name, f.attname)}
    attributes |= {f"{field.name}__{name}": field.attname for field, name in _keys_of_references(model)}
    places: dict[int, Steps] = {}
    paths: dict[int, str] = {}
    for number, field in enumerate(fields):
        place = None if field in attributes else place_of(model, field)
        if place is not None:
            attributes[field], places[number] = place
        reference = None if field in attributes else reference_of(model, field)
        if reference is not None:
            check_path(reference[0].related_model, reference[1])
            attributes[field], paths[number] = reference[0].attname, reference[1]
        if field not in attributes:
            refuse_path(model, field, "values")
            raise UnknownField(
                f"{meta.label} has no attribute {field!r} for values(). It has "
                f"{', '.join(f.name for f in meta.concrete_fields)}."
            )
    names = tuple(fields) or tuple(f.attname for f in meta.concrete_fields)
    return Columns(tuple(attributes[name] for name in names), names, shape, places, paths)


def check_path(model: type[DynamoModel], name: str) -> None:
    """Raise ``UnknownField`` or ``NotSupported`` for a name that is no attribute of a model or of its references."""
    columns(model, (name,), {}, as_value)


def _keys_of_references(model: type[DynamoModel]) -> Iterator[tuple[Any, str]]:
    """Yield each reference with the names of the primary key that it contains."""
    fields: Any = model._meta.concrete_fields
    for field in fields:
        if field.is_relation:
            yield field, "pk"
            yield field, field.target_field.name


def as_dict(names: Sequence[str], row: tuple[object, ...]) -> dict[str, object]:
    """Return a row of ``values()``."""
    return dict(zip(names, row, strict=True))


def as_tuple(names: Sequence[str], row: tuple[object, ...]) -> tuple[object, ...]:
    """Return a row of ``values_list()``."""
    return row


def as_named_tuple(names: Sequence[str], row: tuple[object, ...]) -> tuple[object, ...]:
    """Return a row of ``values_list(named=True)``: Django's named tuple, one class for the same names."""
    named: tuple[Any, ...] = create_namedtuple_class(*names)._make(row)
    return named


def as_value(names: Sequence[str], row: tuple[object, ...]) -> object:
    """Return a row of ``values_list(flat=True)``."""
    return row[0]


#: The names of the shapes in the compiled loops.
_SHAPES: dict[Shape, RowShape] = {as_dict: "dict", as_tuple: "tuple", as_value: "value"}
