"""Objects for ``dumpdata``: one Scan of a table for all models that no key lists, and the secrets of a fixture.

Django's command asks each model's manager for a queryset of an alias, and provides no other hook. The alias therefore
contains the models that the Scan reads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Self

from dynamo_single.exceptions import NoAccessPattern
from dynamo_single.orm.conditions.matching import matches
from dynamo_single.orm.plan.plan import Plan
from dynamo_single.orm.query.state import InKeyOrder, state_of
from dynamo_single.orm.results import objects
from dynamo_single.orm.results.state import QueryState
from dynamo_single.orm.schema import registry, secrecy
from dynamo_single.orm.schema.keys.secret_values import leave_out
from dynamo_single.orm.schema.types import DynamoModel
from dynamo_single.table import names
from dynamo_single.table.request import Request
from dynamo_single.table.table import Table

if TYPE_CHECKING:
    from dynamo_single.orm.query.queryset import QuerySet


class FixtureSecrets:
    """The secrets in the objects of one dump, and whether they are omitted.

    ``found`` contains their names by model, in order of appearance. ``keys`` contains the number of objects by model
    whose primary keys contain a secret.
    """

    def __init__(self, *, are_left_out: bool) -> None:
        self.are_left_out = are_left_out
        self.found: dict[str, dict[str, None]] = {}
        self.keys: dict[str, int] = {}

    def of(self, obj: DynamoModel) -> Iterator[DynamoModel]:
        """Yield an object in the form to write, or nothing if its key contains a secret and secrets are omitted."""
        model: Any = type(obj)._meta.concrete_model
        label, found = model._meta.label, secrecy.secrets_of(model)
        if self.are_left_out and secrecy.is_secret(model, "pk"):
            self.keys[label] = self.keys.get(label, 0) + 1
            return
        for name, attribute in registry.attributes_of(model).items():
            value = obj.__dict__.get(name)
            if value in (None, "") or attribute.computed:
                continue
            if name in found:
                self._note(label, name)
                continue
            without = leave_out(value, attribute.hides)
            if without != value:
                self._note(label, f"{name} (in part)")
                if self.are_left_out:
                    obj.__dict__[name] = without
        yield obj

    def note_sql(self, models: Iterable[type[Any]]) -> None:
        """Record the secrets of SQL models, whose objects Django serializes without this app."""
        for model in models:
            for field in _secret_fields(model):
                self._note(model._meta.label, field.name)

    def _note(self, label: str, name: str) -> None:
        self.found.setdefault(label, {})[name] = None

    def __str__(self) -> str:
        """Return the message for the user, or an empty string."""
        named = "; ".join(f"{label}: {', '.join(names)}" for label, names in self.found.items())
        if not self.are_left_out:
            return named and f"The fixture contains secrets, of {named}. Keep it safe, or use --without-secrets."
        skipped = ", ".join(f"{count} of {label}" for label, count in self.keys.items())
        return " ".join(
            text
            for text in (
                named and f"Left out as secrets: {named}.",
                skipped and f"Left out as their keys contain secrets: {skipped}.",
            )
            if text
        )


class Noted:
    """The methods of a queryset that ``dumpdata`` uses. Its objects pass ``FixtureSecrets``."""

    def __init__(self, secrets: FixtureSecrets, queryset: Any) -> None:
        self.secrets = secrets
        self.queryset = queryset
        self._prefetch_related_lookups = queryset._prefetch_related_lookups

    def order_by(self, *names: str) -> Self:
        """Return the same objects in another order."""
        return type(self)(self.secrets, self.queryset.order_by(*names))

    def filter(self, *args: Any, **kwargs: Any) -> Self:
        """Return the objects that match conditions."""
        return type(self)(self.secrets, self.queryset.filter(*args, **kwargs))

    def count(self) -> int:
        """Return the number of objects, including the omitted ones."""
        return int(self.queryset.count())

    def iterator(self, chunk_size: int | None = None) -> Iterator[DynamoModel]:
        """Yield the objects in the form to write."""
        for obj in self.queryset.iterator(chunk_size=chunk_size):
            yield from self.secrets.of(obj)


@contextmanager
def without_fields(models: Iterable[type[Any]]) -> Iterator[None]:
    """Let serializers of this process skip the secret fields of some models within the block."""
    fields = [field for model in models for field in _secret_fields(model)]
    for field in fields:
        field.serialize = False
    try:
        yield
    finally:
        for field in fields:
            field.serialize = True


def _secret_fields(model: type[Any]) -> list[Any]:
    return [
        field
        for field in model._meta.local_fields
        if field.serialize and not field.primary_key and secrecy.is_secret(model, field.name)
    ]


#: The most operands of ``IN`` (AWS developer guide, "Comparison operator and function reference").
_MOST_TYPES: Final = 100


@dataclass(frozen=True, slots=True)
class Unlisted:
    """The query for a model that no key lists, and a plan with the filter for the items of a Scan."""

    state: QueryState
    plan: Plan

    @property
    def item_type(self) -> str:
        """The item type of the model's items."""
        return str(self.state.layout.item_type)

    def object_of(self, item: Any) -> object:
        """Return the object of an item, or ``None`` if the query does not include it."""
        return objects.object_reader(self.state)(item) if matches(self.plan.filter, item, self.state.layout) else None


class ScanningAlias(InKeyOrder):
    """An alias of ``DATABASES`` for one dump that contains the models that no key lists.

    The first of these models yields the objects of all of them in its table, and the others yield none.
    """

    unlisted: dict[Any, Unlisted]
    announce: Callable[[str], object]
    secrets: FixtureSecrets
    #: The aliases of the tables that have been read.
    read: set[str]

    @classmethod
    def for_dump(
        cls, alias: str, managers: Iterable[Any], announce: Callable[[str], object], secrets: FixtureSecrets
    ) -> Self:
        """Return the alias for a dump of the querysets of these managers. ``announce`` is called before each Scan.

        The objects pass ``secrets``.
        """
        made = cls(alias)
        made.secrets = secrets
        made.announce, made.read = announce, set()
        found = (_unlisted(manager.using(InKeyOrder(alias))) for manager in managers)
        made.unlisted = {each.state.model: each for each in found if each is not None}
        return made

    def queryset_of(self, queryset: QuerySet[DynamoModel]) -> object:
        """Return a stand-in for the queryset of a model that no key lists; others in the order of their key."""
        ordered = super().queryset_of(queryset)
        return Noted(self.secrets, _Scanned(self, ordered) if queryset.model in self.unlisted else ordered)

    def objects_along(self, model: type[DynamoModel]) -> Iterator[Any]:
        """Yield the objects of a model and of the others in its table at the first call: one Scan, page by page."""
        table = self.unlisted[model].state.table
        if table.settings.alias in self.read:
            return
        self.read.add(table.settings.alias)
        together = [each for each in self.unlisted.values() if each.state.table is table]
        labels = ", ".join(sorted(each.state.label for each in together))
        self.announce(
            f"No key lists {labels}: they are read by a Scan of the whole table {table.name!r} at "
            f"{table.settings.place}, which is charged for every item in it."
        )
        by_type = {each.item_type: each for each in together}
        for item in _items(table, sorted(by_type)):
            found = by_type[item[names.ITEM_TYPE]["S"]].object_of(item)
            if found is not None:
                yield found


class _Scanned:
    """The methods of a queryset that ``dumpdata`` uses."""

    _prefetch_related_lookups = ()

    def __init__(self, alias: ScanningAlias, queryset: QuerySet[DynamoModel]) -> None:
        self.alias = alias
        self.queryset = queryset

    def order_by(self, *names: str) -> Self:
        """Return the same: a Scan has no order."""
        return self

    def filter(self, **conditions: Any) -> QuerySet[DynamoModel]:
        """Return the selected objects, which are read by their keys."""
        return self.queryset.filter(**conditions)

    def iterator(self, chunk_size: int | None = None) -> Iterator[object]:
        """Yield the objects of all such models of the table, or none if another model has yielded them."""
        return self.alias.objects_along(self.queryset.model)


def _unlisted(queryset: QuerySet[DynamoModel]) -> Unlisted | None:
    """Return the query of a queryset that no key serves, or ``None`` for any other. Sends no request."""
    # Django adds this order, which a Scan ignores.
    queryset = queryset.order_by(queryset.model._meta.pk.name)
    try:
        objects.plan(state_of(queryset))
    except NoAccessPattern:
        state = state_of(queryset.allow_scan())
        return Unlisted(state, objects.plan(state))
    return None


def _items(table: Table, types: Sequence[str]) -> Iterator[Any]:
    """Yield the items of these types. The Scan reads all others too."""
    params: dict[str, Any] = {}
    if len(types) <= _MOST_TYPES:
        values = {f":{number}": {"S": each} for number, each in enumerate(types)}
        params = {
            "FilterExpression": f"#type IN ({', '.join(values)})",
            "ExpressionAttributeNames": {"#type": names.ITEM_TYPE},
            "ExpressionAttributeValues": values,
        }
    for answer in table.pages(Request("Scan", params)):
        yield from (item for item in answer["Items"] if item.get(names.ITEM_TYPE, {}).get("S") in types)
