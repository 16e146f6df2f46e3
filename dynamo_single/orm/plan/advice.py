"""The most common error: no key supports a query. Its message contains the reasons and the fixes.

This module depends on keys and queries, and must not depend on planning.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from dynamo_single.exceptions import KeyNotFilled, NoAccessPattern
from dynamo_single.orm.conditions import lowering
from dynamo_single.orm.conditions.terms import DELETED_AT, EVERYTHING, IDENTITY, ITEM_TYPE, Compare
from dynamo_single.orm.conditions.wording import condition_text, extraction_advice, ordering_text
from dynamo_single.orm.plan.constraints import Constraints
from dynamo_single.orm.plan.plan import Plan, Query, Rejection
from dynamo_single.orm.schema.layout import AccessKey, ModelLayout

_INDEXABLE = ("S", "N", "BOOL")
#: An index that is younger than the items would silently leave them out.
_OLD_ITEMS = (
    "To add stored items to it, run manage.py makemigrations and migrate in an app with migrations, or "
    "manage.py dynamo_rebuild {label} in another app"
)
_FILLING = "Apply the open migrations: manage.py migrate."
_RANGES = ("lt", "lte", "gt", "gte", "range", "startswith")


def no_access_pattern(
    query: Query, constraints: Constraints, rejected: Sequence[Rejection], *, in_any_order: str | None = None
) -> NoAccessPattern:
    """Return the error for a query that no key supports; ``in_any_order`` names a key that would without the order."""
    lines = [f"{query.layout.label}: no key supports {query_text(query)}."]
    lines += [f"  {describe_key(rejection.key)}: {rejection.reason}." for rejection in rejected]
    lines += [
        "To fix this, do one of the following:",
        *(f"  - {way}" for way in _ways_out(query, constraints, in_any_order)),
    ]
    return NoAccessPattern("\n".join(lines))


def unknown_key(query: Query, keys: Iterable[AccessKey], name: str) -> NoAccessPattern:
    """Make the error for a query that names a key which the model does not have."""
    known = ", ".join(key.name if key.index is None else f"{key.name} ({key.index})" for key in keys)
    return NoAccessPattern(f"{query.layout.label} has no key or index {name!r}; it has {known}.")


def key_not_filled(query: Query, filled: Plan) -> KeyNotFilled:
    """Return the error for a query that only incomplete keys support."""
    used = [part.key for part in (filled, *filled.parts) if part.key is not None and part.lookup is None]
    keys = ", ".join(describe_key(key) for key in dict.fromkeys(used) if key.name in query.missing_keys)
    if not keys:
        claimed = dict.fromkeys(part.lookup.name for part in (filled, *filled.parts) if part.lookup is not None)
        return KeyNotFilled(
            f"{query.layout.label}: {query_text(query)} needs the claims on {', '.join(claimed)}, which may "
            f"be incomplete. The result could omit objects. {_FILLING}"
        )
    return KeyNotFilled(
        f"{query.layout.label}: {query_text(query)} needs {keys}, which some items may not have yet. The "
        f"result could omit objects. {_FILLING}"
    )


def attribute_not_filled(query: Query, name: str) -> KeyNotFilled:
    """Return the error for a query that filters by an attribute that some items do not have yet."""
    return KeyNotFilled(
        f"{query.layout.label}: {query_text(query)} needs {name}, which some items may not have yet. {_FILLING}"
    )


def query_text(query: Query) -> str:
    """Write a query as queryset methods: ``filter(name='Mike').order_by(name)``."""
    text = "all()" if query.where == EVERYTHING else f"filter({condition_text(query.where, query.layout)})"
    if query.ordering:
        text += f".order_by({ordering_text(query.ordering)})"
    if query.visibility != "live":
        text += " among the deleted" if query.visibility == "deleted" else " among live and deleted"
    return text + (", consistently" if query.consistent else "")


def describe_key(key: AccessKey) -> str:
    """Write a key with its templates: ``by_name (gs1) 'COMPANY' / '{name}#{company_id}'``."""
    index = "" if key.index is None else f" ({key.index})"
    condition = "" if key.condition is None else f" if {lowering.filter_text(key.condition)}"
    return f"{key.name}{index} {key.partition.source!r} / {key.sort.source!r}{condition}"


def _ways_out(query: Query, constraints: Constraints, in_any_order: str | None) -> Iterable[str]:
    yield "filter by one of the keys above"
    model = query.layout.label.rpartition(".")[2]
    proposal = propose_key(query, constraints)
    if proposal:
        yield f"add a key to {model}.Keys: {proposal}\n    {_OLD_ITEMS.format(label=query.layout.label)}"
    yield from _places(query, constraints)
    for place in dict.fromkeys(
        "__".join(map(str, (term.attribute, *term.path)))
        for term in constraints.terms
        if isinstance(term, Compare) and term.path
    ):
        name = place.rpartition("__")[2]
        yield (
            f"also keep {place} in a separate attribute, and name that in a key, because nested values have no "
            f"index: {name} = {extraction_advice(place)}"
        )
    if query.using_index is not None:
        yield f"omit using_index({query.using_index!r}), so that the planner considers every key"
    if in_any_order is not None:
        yield f"remove the order (.order_by() without names), so that {in_any_order} supports it"
        yield (
            f"call .allow_in_memory(limit=1000): {in_any_order} supports it, and the app sorts up to 1000 "
            "matches in memory"
        )
    elif query.using_index is not None:
        return
    elif query.allow_scan and query.ordering:
        yield "omit order_by(), or also call .allow_in_memory(): the scan that allow_scan() allows has no order"
    elif query.allow_scan:
        yield "compare exactly: the filter of the scan that allow_scan() allows cannot compare canonical forms"
    else:
        without = " and omit order_by()" if query.ordering else ""
        yield f"call .allow_scan(){without} to read, and pay for, every item of the table"


def propose_key(query: Query, constraints: Constraints) -> str | None:
    """Propose the ``IndexKey`` that would support a query, or return ``None`` if no index can."""
    layout = query.layout
    if query.consistent or (layout.soft_delete and query.visibility != "live"):
        return None
    named = [term.attribute for term in constraints.terms if isinstance(term, Compare) and not term.path]
    named = [name for name in dict.fromkeys(named) if name not in (IDENTITY, ITEM_TYPE, DELETED_AT)]
    equal = [name for name in named if name in constraints.allowed or _is_canonical(name, constraints)]
    sort = [order.attribute for order in query.ordering if order.attribute not in equal]
    if not sort:
        sort = [name for name in named if any(map(_narrows, constraints.on(name)))][:1]
    if not sort:
        equal, sort = [], equal
    searched = [*equal, *sort]
    if len({order.descending for order in query.ordering}) > 1:
        return None
    if not all(layout.attributes[name].type in _INDEXABLE for name in searched):
        return None
    sort = [*sort, *(name for name in layout.identity if name not in searched)]
    partition = "#".join([layout.item_type.upper(), *(_variable(name, query, constraints) for name in equal)])
    template = "#".join(_variable(name, query, constraints) for name in sort) or "#METADATA"
    if any((key.partition.source, key.sort.source) == (partition, template) for key in layout.indexes):
        return None
    name = "by_" + "_and_".join(searched) if searched else "listing"
    return f'{_free(name, layout)} = models.IndexKey("{_free_index(layout)}", "{partition}", "{template}")'


def _is_canonical(name: str, constraints: Constraints) -> bool:
    """Return whether the query uses the canonical form of an attribute, so that another spelling finds it too."""
    return any(term.operator == "canonical" for term in constraints.on(name))


def _narrows(term: Compare) -> bool:
    """Return whether a range of a sort key serves a comparison: objects without a value form such a range."""
    return term.operator in _RANGES or (term.operator, term.value) == ("isnull", True)


def _variable(name: str, query: Query, constraints: Constraints) -> str:
    canonical = ("canonical",) if _is_canonical(name, constraints) else ()
    return "{" + ":".join((name, *canonical, *_place(name, query, constraints))) + "}"


def _place(name: str, query: Query, constraints: Constraints) -> tuple[str, ...]:
    """Return where a key must have objects without a value, if the query can match them."""
    info = query.layout.attributes[name]
    if info.required or name in query.layout.identity or constraints.excludes_empty(name, text=info.is_text):
        return ()
    for order in query.ordering:
        if order.attribute == name:
            missing_first = order.descending if order.missing_first is None else order.missing_first
            return ("first" if missing_first != order.descending else "last",)
    return ("first",)


def _places(query: Query, constraints: Constraints) -> Iterable[str]:
    """Return existing keys that would support the query if they contained objects without a value."""
    if query.consistent or (query.layout.soft_delete and query.visibility != "live"):
        return
    for key in query.layout.indexes:
        parts = (*key.partition.parts, *key.sort.parts)
        given = all(part.name in constraints.allowed for part in key.partition.parts)
        order = [part.name for part in key.sort.parts if part.name not in constraints.allowed]
        wanted = [each.attribute for each in query.ordering if each.attribute not in constraints.allowed]
        if not given or not key.required_variables or order[: len(wanted)] != wanted:
            continue
        lacking = [
            (part, _place(part.name, query, constraints)) for part in parts if part.name in key.required_variables
        ]
        if not any(place and (part.name in wanted or constraints.on(part.name)) for part, place in lacking):
            continue
        written = [":".join((part.shown, *filter(None, (part.spec,)), *place)) for part, place in lacking if place]
        if written:
            shown = " and ".join(f"{{{each}}}" for each in written)
            yield f"let {key.name} ({key.index}) also contain objects without a value: write {shown} in it"


def _free(name: str, layout: ModelLayout) -> str:
    taken = {key.name for key in layout.keys}
    return next(free for free in (name, *(f"{name}_{count}" for count in range(2, 99))) if free not in taken)


def _free_index(layout: ModelLayout) -> str:
    taken = {key.index for key in (*layout.keys, layout.trash) if key is not None}
    return next(index for index in (f"gs{count}" for count in range(1, 99)) if index not in taken)
