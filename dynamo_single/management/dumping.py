"""What ``dumpdata`` reads where no key lists a model: one Scan of a table, for all such models together.

Django's command asks each model's manager for a queryset of an alias, and has no other place for a word of ours: so the
alias knows which models are read by the Scan.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Self

from dynamo_single.exceptions import NoAccessPattern
from dynamo_single.management.fixture_secrets import FixtureSecrets, Noted
from dynamo_single.orm.conditions.matching import matches
from dynamo_single.orm.plan.plan import Plan
from dynamo_single.orm.query.state import InKeyOrder, state_of
from dynamo_single.orm.results import objects
from dynamo_single.orm.results.state import QueryState
from dynamo_single.orm.schema.kinds import DynamoModel
from dynamo_single.table import names
from dynamo_single.table.request import Request
from dynamo_single.table.table import Table

if TYPE_CHECKING:
    from dynamo_single.orm.query.queryset import QuerySet

#: The most operands of ``IN`` (AWS developer guide, "Comparison operator and function reference").
_MOST_TYPES: Final = 100


@dataclass(frozen=True, slots=True)
class Unlisted:
    """What is asked of a model that no key lists, and the plan whose filter the items of a Scan have to meet."""

    state: QueryState
    plan: Plan

    @property
    def item_type(self) -> str:
        """What the model's items say of their type."""
        return str(self.state.layout.item_type)

    def object_of(self, item: Any) -> object:
        """The object of an item, or ``None`` if that is not asked for."""
        return objects.reader(self.state)(item) if matches(self.plan.filter, item, self.state.layout) else None


class ScanningAlias(InKeyOrder):
    """An alias of ``DATABASES`` for one dump, which knows the models that no key lists.

    The first of them that is asked for gives the objects of all that are in its table, and the others none.
    """

    unlisted: dict[Any, Unlisted]
    announce: Callable[[str], object]
    secrets: FixtureSecrets
    #: The tables, by their aliases, that were read already.
    read: set[str]

    @classmethod
    def for_dump(
        cls, alias: str, managers: Iterable[Any], announce: Callable[[str], object], secrets: FixtureSecrets
    ) -> Self:
        """Return the alias for a dump of what these managers give; ``announce`` is told of each Scan before it begins.

        The objects pass ``secrets``.
        """
        made = cls(alias)
        made.secrets = secrets
        made.announce, made.read = announce, set()
        found = (_unlisted(manager.using(InKeyOrder(alias))) for manager in managers)
        made.unlisted = {each.state.model: each for each in found if each is not None}
        return made

    def queryset_of(self, queryset: QuerySet[DynamoModel]) -> object:
        """What stands in for the queryset of a model that no key lists; any other in the order of its key."""
        ordered = super().queryset_of(queryset)
        return Noted(self.secrets, _Scanned(self, ordered) if queryset.model in self.unlisted else ordered)

    def objects_along(self, model: type[DynamoModel]) -> Iterator[Any]:
        """At the first call the objects of a model and of the others in its table: one Scan, page by page."""
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
    """As much of a queryset as ``dumpdata`` asks for."""

    _prefetch_related_lookups = ()

    def __init__(self, alias: ScanningAlias, queryset: QuerySet[DynamoModel]) -> None:
        self.alias = alias
        self.queryset = queryset

    def order_by(self, *names: str) -> Self:
        """A Scan has no order."""
        return self

    def filter(self, **conditions: Any) -> QuerySet[DynamoModel]:
        """Named objects are read by their keys."""
        return self.queryset.filter(**conditions)

    def iterator(self, chunk_size: int | None = None) -> Iterator[object]:
        """The objects of all such models of the table, or none where another model has given them."""
        return self.alias.objects_along(self.queryset.model)


def _unlisted(queryset: QuerySet[DynamoModel]) -> Unlisted | None:
    """What is asked by a queryset that no key answers, ``None`` for any other. Sends nothing."""
    # As Django asks; the order is given up.
    queryset = queryset.order_by(queryset.model._meta.pk.name)
    try:
        objects.plan(state_of(queryset))
    except NoAccessPattern:
        state = state_of(queryset.allow_scan())
        return Unlisted(state, objects.plan(state))
    return None


def _items(table: Table, types: Sequence[str]) -> Iterator[Any]:
    """The items of these types: a Scan, which reads the others too."""
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
