"""Layouts and queries from plain values, so that planning is tested without Django models."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any, TypeVar

from dynamo_single.orm.conditions.terms import EVERYTHING, And, Compare, Condition, Order
from dynamo_single.orm.plan.plan import Query
from dynamo_single.orm.schema.keys.template import Template, codec_for
from dynamo_single.orm.schema.keys.values import to_attribute_value
from dynamo_single.orm.schema.layout import AccessKey, AttributeInfo, AttributeValue, ModelLayout

T = TypeVar("T")

#: The kind that a key codec wants, and the type that DynamoDB stores.
TYPES = {
    "text": "S",
    "number": "N",
    "boolean": "BOOL",
    "date": "S",
    "time": "S",
    "duration": "N",
    "timestamp": "N",
    "uuid": "S",
    "map": "M",
    "list": "L",
    "texts": "SS",
    "numbers": "NS",
    "binary": "B",
}


def serialize(value: Any) -> AttributeValue:
    """Store dates as text and points in time as epoch milliseconds, like the attributes of real models."""
    if isinstance(value, datetime):
        return {"N": str(int(value.timestamp() * 1000))}
    if value is None or isinstance(value, str | int | float | Decimal | bool | bytes | list | dict | set | frozenset):
        return to_attribute_value(value)
    return {"S": str(value)}


def in_tens(found: Sequence[T]) -> list[Sequence[T]]:
    """Group parameters by ten: a test for each would cost more than its assertion."""
    return [found[start : start + 10] for start in range(0, len(found), 10)]


@dataclass
class Space:
    """The models of one table."""

    layouts: list[ModelLayout] = field(default_factory=list)

    def model(
        self,
        label: str,
        attributes: Mapping[str, str],
        primary: tuple[str, str],
        indexes: Mapping[str, tuple[str, str, str]] | None = None,
        *,
        trash: tuple[str, str, str] | None = None,
        soft_delete: bool = False,
        expires: str | None = None,
    ) -> ModelLayout:
        """Add a model; ``attributes`` maps names to kinds, with a ``?`` after what may be missing."""
        soft_delete = soft_delete or trash is not None
        kinds = {name: kind.rstrip("?") for name, kind in attributes.items()}
        infos = {
            name: AttributeInfo(name, camel(name), TYPES[kinds[name]], not kind.endswith("?"), serialize)
            for name, kind in attributes.items()
        }
        infos["item_type"] = AttributeInfo("item_type", "itemType", "S", True, serialize)
        if soft_delete:
            kinds["deleted_at"] = "timestamp"
            infos["deleted_at"] = AttributeInfo("deleted_at", "deletedAt", "N", False, serialize)
        layout = ModelLayout(
            label,
            label.rpartition(".")[2],
            "default",
            infos,
            access_key("primary", None, *primary, kinds=kinds),
            tuple(access_key(name, *key, kinds=kinds) for name, key in (indexes or {}).items()),
            soft_delete,
            None if trash is None else access_key("trash", *trash, kinds=kinds),
            expires,
            lambda: self.layouts,
        )
        self.layouts.append(layout)
        return layout


def camel(name: str) -> str:
    """Return the stored name: ``company_id`` is stored as ``companyId``."""
    first, *rest = name.split("_")
    return first + "".join(map(str.capitalize, rest))


def access_key(name: str, index: str | None, partition: str, sort: str, *, kinds: Mapping[str, str]) -> AccessKey:
    """Make a bound key."""
    return AccessKey(name, index, bind(partition, kinds), bind(sort, kinds))


def bind(source: str, kinds: Mapping[str, str]) -> Template:
    """Parse a template and bind its variables to codecs of their kinds."""
    template = Template.parse(source)
    return template.bind({part.name: codec_for(kinds[part.name], part.spec) for part in template.parts})


SPACE = Space()
COMPANY = SPACE.model(
    "directory.Company",
    {"company_id": "text", "name": "text", "stock": "text?"},
    ("COMPANY#{company_id}", "#METADATA"),
    {"by_name": ("gs1", "COMPANY", "{name}#{company_id}")},
    trash=("gs1", "TRASH#COMPANY", "{deleted_at}#{company_id}"),
)
PERSON = SPACE.model(
    "directory.Person",
    {"company_id": "text", "person_id": "text", "name": "text", "email": "text?", "age": "number?", "data": "map?"},
    ("COMPANY#{company_id}", "PEOPLE#{person_id}"),
    {"by_id": ("gs1", "PERSON#{person_id}", "#METADATA")},
    trash=("gs1", "TRASH#PERSON", "{deleted_at}#{person_id}"),
)
EVENT = SPACE.model(
    "directory.Event",
    {"stream": "text", "number": "number", "kind": "text", "at": "timestamp", "score": "number", "city": "text?"},
    ("EVENT#{stream}", "{number}"),
    {
        "by_time": ("gs1", "EVENTS#{kind}", "AT#{at}#{number}"),
        "by_kind": ("gs2", "STREAM#{stream}", "{kind}#{score:04d}"),
        "by_city": ("gs3", "CITY#{city}", "{kind}_{score:04d}"),
    },
)
ACCOUNT = SPACE.model(
    "accounts.Account",
    {"email": "text", "joined": "date", "token": "uuid"},
    ("ACCOUNT#{email:canonical}", "#METADATA"),
    {"by_token": ("gs1", "TOKEN", "{token}#{joined}")},
)
SESSION = SPACE.model(
    "sessions.Session",
    {"session_key": "text", "expires_at": "number?"},
    ("SESSION#{session_key}", "#SESSION"),
    expires="expires_at",
)
ORDER_LINE = SPACE.model(
    "shop.OrderLine",
    {"order": "text", "line": "text", "note": "text?"},
    ("ORDER#{order}", "LINE#{line}#END"),
)

LOOKUPS = frozenset(
    {"exact", "in", "lt", "lte", "gt", "gte", "range", "startswith", "contains", "isnull", "has_key", "canonical"}
    | {"size_exact", "size_gt", "attribute_type", "regex"}
)


def compare(**conditions: Any) -> And:
    """Read conditions as ``filter()`` does: ``name="x"``, ``name__startswith="x"``, ``data__price__gt=1``."""
    return And(tuple(_compare(name, value) for name, value in conditions.items()))


def _compare(name: str, value: Any) -> Compare:
    attribute, *path = name.split("__")
    operator = path.pop() if path and path[-1] in LOOKUPS else "exact"
    return Compare(attribute, operator, value, tuple(int(step) if step.isdigit() else step for step in path))


def orders(*names: str) -> tuple[Order, ...]:
    """Read an ordering as ``order_by()`` does: ``-name``."""
    return tuple(Order(name.lstrip("-"), name.startswith("-")) for name in names)


def ask(
    layout: ModelLayout, where: Condition | Mapping[str, Any] = EVERYTHING, order: Iterable[str] = (), **options: Any
) -> Query:
    """Make a query; ``where`` is a condition or what ``filter()`` would take."""
    condition = compare(**where) if isinstance(where, Mapping) else where
    return Query(layout, condition, orders(*order), **options)


def moment(text: str) -> datetime:
    """Read a point in time in UTC."""
    return datetime.fromisoformat(text).replace(tzinfo=UTC)
