"""Create a table, compare it with the settings, and repair the differences.

``differences`` compares DynamoDB's descriptions and does not send requests. ``apply`` sends DescribeTable, CreateTable,
UpdateTable, and UpdateTimeToLive; it does not delete anything. The module is independent of models and commands.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal

from django.utils.translation import gettext_noop as _
from msgspec import Struct
from msgspec.structs import replace

from dynamo_single.conf import TableSettings
from dynamo_single.conf.shapes import BY_ID, OWN, IndexShape, KeyForm
from dynamo_single.exceptions import NotSupported, RequestFailed, TableMismatch, TableNotFound, TableUnavailable
from dynamo_single.table.request import Request, key_schema
from dynamo_single.table.table import Table, table_at
from dynamo_single.translated import Sentence, joined, sentence

Description = Mapping[str, Any]
Kind = Literal["table", "keys", "index", "extra index", "billing mode", "capacity", "time to live"]

#: How long ``apply`` waits for the table, in seconds. The backfill of a new index on a large table takes longer.
PATIENCE = 900.0
_FIRST_PAUSE = 0.02
_LONGEST_PAUSE = 5.0


class TableDefinition(Struct, frozen=True):
    """The required table by the shape in the settings: keys, indexes, and the attribute of the TTL."""

    settings: TableSettings

    @property
    def keys(self) -> tuple[str, ...]:
        """The names of the partition key and of the sort key, if there is one."""
        return tuple(key.name for key in self.settings.shape.keys)

    @property
    def indexes(self) -> dict[str, IndexShape]:
        """The indexes by DynamoDB's name."""
        return {each.index_name: each for each in self.settings.shape.indexes}

    def types(self, names: Iterable[str]) -> list[dict[str, str]]:
        """Return the definitions of key attributes."""
        types = self.settings.shape.key_types
        return [{"AttributeName": name, "AttributeType": types[name]} for name in dict.fromkeys(names)]

    def create(self) -> Request:
        """Return the request that creates the table with all indexes."""
        params: dict[str, Any] = {
            "KeySchema": key_schema(self.keys),
            "AttributeDefinitions": self.types(self.settings.shape.key_types),
            "BillingMode": self.settings.billing_mode,
            **self.throughput(),
        }
        for kind, is_local in (("GlobalSecondaryIndexes", False), ("LocalSecondaryIndexes", True)):
            if found := [name for name, index in self.indexes.items() if index.is_local is is_local]:
                params[kind] = [self.index(name) for name in found]
        return Request("CreateTable", params)

    def add_index(self, name: str, described: Description) -> Request:
        """Return the request that adds one index; DynamoDB accepts one at a time."""
        known = list(described.get("AttributeDefinitions", ()))
        names = {definition["AttributeName"] for definition in known}
        added = self.types(key.name for key in self.indexes[name].keys if key.name not in names)
        return Request(
            "UpdateTable",
            {
                "AttributeDefinitions": known + added,
                "GlobalSecondaryIndexUpdates": [{"Create": self.index(name)}],
            },
        )

    def change_billing(self, described: Description) -> Request:
        """Return the request that changes the billing mode of the table and its indexes."""
        params: dict[str, Any] = {"BillingMode": self.settings.billing_mode, **self.throughput()}
        names = [index["IndexName"] for index in described.get("GlobalSecondaryIndexes", ())]
        if params.get("ProvisionedThroughput") and names:
            params["GlobalSecondaryIndexUpdates"] = [
                {"Update": {"IndexName": name, **self.throughput()}} for name in names
            ]
        return Request("UpdateTable", params)

    def enable_ttl(self) -> Request:
        """Return the request that lets DynamoDB delete items that have expired."""
        attribute = self.settings.shape.ttl_attribute
        return Request("UpdateTimeToLive", {"TimeToLiveSpecification": {"Enabled": True, "AttributeName": attribute}})

    def index(self, name: str) -> dict[str, object]:
        """Return one index as a parameter of CreateTable and UpdateTable."""
        index = self.indexes[name]
        # A local index uses the capacity of the table.
        capacity = {} if index.is_local else self.throughput()
        keys = [key.name for key in index.keys]
        return {"IndexName": name, "KeySchema": key_schema(keys), "Projection": _projection(index), **capacity}

    def throughput(self) -> dict[str, dict[str, int | None]]:
        """Return the provisioned capacity, or an empty dict."""
        if self.settings.billing_mode != "PROVISIONED":
            return {}
        units = {
            "ReadCapacityUnits": self.settings.read_capacity,
            "WriteCapacityUnits": self.settings.write_capacity,
        }
        return {"ProvisionedThroughput": units}


class Difference(Struct, frozen=True):
    """One difference between the table and the settings.

    ``repair`` is ``"automatic"`` if ``apply`` repairs it, ``"impossible"`` if a person has to do what the sentence
    says, and ``"unneeded"`` if the app works without a repair.
    """

    kind: Kind
    said: Sentence
    repair: Literal["automatic", "impossible", "unneeded"] = "automatic"
    subject: str = ""

    @property
    def sentence(self) -> str:
        """The difference in English."""
        return str(self.said)


class Observed(Struct, frozen=True):
    """DynamoDB's descriptions of a table; ``table`` is ``None`` if it does not exist."""

    table: Description | None
    ttl: Description


def observe(table: Table) -> Observed:
    """Describe the table and its TTL: two requests, or one if there is no table."""
    try:
        described = table.send(Request("DescribeTable"))["Table"]
        ttl = table.send(Request("DescribeTimeToLive")).get("TimeToLiveDescription", {})
    except TableNotFound:
        return Observed(None, {})
    return Observed(described, ttl)


def differences(settings: TableSettings, observed: Observed) -> list[Difference]:
    """Return the differences in the order of repair, without a request."""
    definition = TableDefinition(settings)
    if observed.table is None:
        text = _("The table %(name)s does not exist at %(place)s.")
        missing = Difference("table", sentence(text, name=repr(settings.table_name), place=settings.place))
        return _for_owner(settings, [missing, *_ttl({}, settings.shape.ttl_attribute)])
    found = _keys(definition, observed.table)
    if not found:  # with other keys, the app cannot use the indexes
        found += _billing(settings, observed.table)
        found += _indexes(definition, observed.table)
        found += _ttl(observed.ttl, settings.shape.ttl_attribute)
    return _for_owner(settings, found)


def _for_owner(settings: TableSettings, found: list[Difference]) -> list[Difference]:
    """Return differences as instructions if the app does not own the table: it repairs none of them.

    The app works with any billing mode, and hides expired items itself. On this machine it creates a missing table,
    for development.
    """
    if settings.owns or (settings.is_local and found and found[0].kind == "table"):
        return found[:1] if found and not settings.owns else found
    instructions = {
        "table": _("Create it with the program that owns it."),
        "index": _("Add it with the program that owns the table, or remove it from INDEXES."),
        "billing mode": _("OWNS is False: the app works with it."),
    }
    ttl = _("DynamoDB does not delete expired items, which the app hides: their attribute has no time to live.")
    optional = {"billing mode", "capacity", "extra index", "time to live"}

    def instruction(each: Difference) -> Sentence:
        if each.kind == "time to live":
            return sentence(ttl)
        return joined([each.said, sentence(instructions[each.kind])], " ") if each.kind in instructions else each.said

    return [
        Difference(each.kind, instruction(each), "unneeded" if each.kind in optional else "impossible", each.subject)
        for each in found
    ]


def as_owned(table: Table) -> Table:
    """Return a table with settings that let ``apply()`` create it: for a copy on a local engine."""
    return table_at(replace(table.settings, owns=True, companion=""))


def apply(
    table: Table,
    *,
    report: Callable[[Difference], None] = lambda _: None,
    patience: float = PATIENCE,
    only: Callable[[Difference], bool] = lambda _: True,
) -> list[Difference]:
    """Repair the differences sequentially, wait until the table is usable, and return the repaired differences.

    The function can be repeated, and can run in two processes in parallel. Raise ``TableMismatch`` before any change if
    a difference cannot be repaired. With ``only``, ignore the other differences.
    """
    definition = TableDefinition(table.settings)
    deadline = time.monotonic() + patience
    pause = _FIRST_PAUSE
    repaired: list[Difference] = []
    while True:
        observed = observe(table)
        found = [each for each in differences(table.settings, observed) if only(each)]
        refuse(table.settings, found)
        step = next((each for each in found if each.repair == "automatic"), None)
        busy = _busy(observed.table)
        if step is None and not busy:
            return repaired
        # A description may lag behind the change, so a repair is requested once.
        if step is not None and not busy and step not in repaired:
            report(step)
            _repair(table, definition, step, observed.table or {})
            repaired.append(step)
            pause = _FIRST_PAUSE
            continue
        if time.monotonic() > deadline:
            waited_for = busy or (step.sentence if step else "")
            raise TableUnavailable(
                f"The table {table.name!r} is not usable after {patience:.0f} s: {waited_for} "
                f"DynamoDB continues; run `{table.settings.command('dynamo_setup')}` again later."
            )
        time.sleep(pause)
        pause = min(pause * 2, _LONGEST_PAUSE)


def recreate(table: Table) -> Table:
    """Delete a table with all items and recreate it; raise ``NotSupported`` unless its endpoint is on this machine."""
    if not table.settings.is_local:
        raise NotSupported(
            f"The table {table.name!r} at {table.settings.place} is not deleted: only a table of a local engine, at a "
            "loopback address, can be recreated."
        )
    with contextlib.suppress(TableNotFound):
        table.send(Request("DeleteTable"))
    apply(as_owned(table))
    return table


def refuse(settings: TableSettings, found: Sequence[Difference]) -> None:
    """Raise ``TableMismatch`` if one of the differences cannot be repaired."""
    if fatal := [each.sentence for each in found if each.repair == "impossible"]:
        raise TableMismatch(
            f"The table {settings.table_name!r} at {settings.place} cannot be changed to match the settings. "
            f"Nothing was changed. {' '.join(fatal)}"
        )


def _repair(table: Table, definition: TableDefinition, step: Difference, described: Description) -> None:
    if step.kind == "table":
        request = definition.create()
    elif step.kind == "billing mode":
        request = definition.change_billing(described)
    elif step.kind == "index":
        request = definition.add_index(step.subject, described)
    else:
        request = definition.enable_ttl()
    try:
        table.send(request)
    except RequestFailed as error:
        # Another process was faster. The next description contains its change.
        if error.code != "ResourceInUseException" and "already" not in str(error):
            raise


def _busy(described: Description | None) -> str:
    if described is None:
        return ""
    if described["TableStatus"] != "ACTIVE":
        return f"it is {described['TableStatus']}."
    waiting = [index for index in described.get("GlobalSecondaryIndexes", ()) if index["IndexStatus"] != "ACTIVE"]
    return " ".join(f"its index {index['IndexName']!r} is {index['IndexStatus']}." for index in waiting)


def _keys(definition: TableDefinition, described: Description) -> list[Difference]:
    wanted = _typed_keys(definition)
    present = _typed(described["KeySchema"], described["AttributeDefinitions"])
    if wanted == present:
        return []
    alias = definition.settings.alias
    other: KeyForm = "pk" if definition.settings.key == "id" else "id"
    keys = (OWN if other == "pk" else BY_ID).keys
    is_other = present == [(kind, key.name, key.type) for kind, key in zip(("HASH", "RANGE"), keys, strict=False)]
    said = [
        sentence(
            _("Its keys are %(present)s, but the settings require %(wanted)s."),
            present=_said(present),
            wanted=_said(wanted),
        )
    ]
    if is_other:
        setting = f"DYNAMO_SINGLE[{alias!r}]['KEY'] = {other!r}"
        said.append(sentence(_("%(setting)s accepts the table unchanged."), setting=setting))
    text = _(
        "DynamoDB cannot change the keys of a table. Name another table in %(setting)s, and run "
        "dynamo_setup to create it."
    )
    said.append(sentence(text, setting=f"DYNAMO_SINGLE[{alias!r}]"))
    return [Difference("keys", joined(said, " "), "impossible")]


def _typed_keys(definition: TableDefinition) -> list[tuple[str, str, str]]:
    return _typed(key_schema(definition.keys), definition.types(definition.keys))


def _billing(settings: TableSettings, described: Description) -> list[Difference]:
    # Tables that were made with provisioned capacity have no summary.
    present = described.get("BillingModeSummary", {}).get("BillingMode", "PROVISIONED")
    if present != settings.billing_mode:
        text = _("The billing mode is %(present)s, but the settings require %(wanted)s.")
        return [Difference("billing mode", sentence(text, present=present, wanted=settings.billing_mode))]
    units = described.get("ProvisionedThroughput", {})
    capacity = units.get("ReadCapacityUnits"), units.get("WriteCapacityUnits")
    wanted = settings.read_capacity, settings.write_capacity
    if present == "PROVISIONED" and capacity != wanted:
        said = sentence(
            _(
                "The capacity is %(read)s read and %(write)s write units, but the settings define "
                "%(wanted_read)s and %(wanted_write)s. It was not changed, because auto scaling may have set "
                "it."
            ),
            read=capacity[0],
            write=capacity[1],
            wanted_read=wanted[0],
            wanted_write=wanted[1],
        )
        return [Difference("capacity", said, "unneeded")]
    return []


def _indexes(definition: TableDefinition, described: Description) -> list[Difference]:
    kinds = ("GlobalSecondaryIndexes", "LocalSecondaryIndexes")
    present = {index["IndexName"]: (kind, index) for kind in kinds for index in described.get(kind, ())}
    found = []
    for name, index in definition.indexes.items():
        kind = kinds[index.is_local]
        if name not in present:
            text = _("The index %(name)s is missing.")
            said = sentence(text, name=repr(name))
            if index.is_local:
                said = joined([said, sentence(_("DynamoDB creates local indexes only with their table."))], " ")
            found.append(Difference("index", said, "impossible" if index.is_local else "automatic", name))
        elif fault := _index_fault(definition, index, kind, *present[name], described["AttributeDefinitions"]):
            found.append(Difference("index", fault, "impossible", name))
    text = _("The index %(name)s is not in the settings. It was not changed.")
    found += [
        Difference("extra index", sentence(text, name=repr(name)), "unneeded", name)
        for name in present
        if name not in definition.indexes
    ]
    return found


def _index_fault(
    definition: TableDefinition,
    wanted: IndexShape,
    wanted_kind: str,
    kind: str,
    index: Description,
    types: Sequence[Description],
) -> Sentence | None:
    name = repr(wanted.index_name)
    way_out = sentence(_("Use another name in INDEXES, or delete the index yourself and run dynamo_setup again."))
    if kind != wanted_kind:
        is_local = wanted_kind == "GlobalSecondaryIndexes"
        text = (
            _("The index %(name)s is local; set 'local': True in INDEXES.")
            if is_local
            else _("The index %(name)s is not local; leave 'local' out of INDEXES.")
        )
        return sentence(text, name=name)
    keys = [key.name for key in wanted.keys]
    needed = _typed(key_schema(keys), definition.types(keys))
    present = _typed(index["KeySchema"], types)
    if needed != present:
        text = _("The index %(name)s has the keys %(present)s, but the settings require %(wanted)s.")
        fault = sentence(text, name=name, present=_said(present), wanted=_said(needed))
        return joined([fault, way_out], " ")
    projection = index.get("Projection", {})
    if _projected(projection) != _projected(_projection(wanted)):
        text = _("The index %(name)s projects %(present)s, but %(wanted)s is required.")
        shown = _shown_projection(projection), _shown_projection(_projection(wanted))
        return joined([sentence(text, name=name, present=shown[0], wanted=shown[1]), way_out], " ")
    return None


def _projection(index: IndexShape) -> dict[str, object]:
    if isinstance(index.projection, tuple):
        return {"ProjectionType": "INCLUDE", "NonKeyAttributes": list(index.projection)}
    return {"ProjectionType": index.projection}


def _projected(projection: Description) -> tuple[object, list[str]]:
    return projection.get("ProjectionType"), sorted(projection.get("NonKeyAttributes", ()))


def _shown_projection(projection: Description) -> str:
    kind, attributes = _projected(projection)
    return " ".join(filter(None, (str(kind), ", ".join(map(repr, attributes)))))


def _ttl(ttl: Description, wanted: str) -> list[Difference]:
    status, attribute = ttl.get("TimeToLiveStatus", "DISABLED"), ttl.get("AttributeName")
    if status == "DISABLED":
        text = _("Time to live on %(name)s is not enabled.")
        return [Difference("time to live", sentence(text, name=repr(wanted)))]
    if status == "DISABLING" or attribute != wanted:
        text = _(
            "Time to live is %(status)s on %(present)s, but %(wanted)s is required. Disable it on the table, wait "
            "until DynamoDB allows a change (up to an hour), and run dynamo_setup again."
        )
        said = sentence(text, status=status, present=repr(attribute), wanted=repr(wanted))
        return [Difference("time to live", said, "impossible")]
    return []


def _typed(schema: Sequence[Description], types: Sequence[Description]) -> list[tuple[str, str, str]]:
    """Return each key as (kind, name, type), the partition key first."""
    type_of = {definition["AttributeName"]: definition["AttributeType"] for definition in types}
    keys = [(key["KeyType"], key["AttributeName"], type_of.get(key["AttributeName"], "?")) for key in schema]
    return sorted(keys)


def _said(keys: list[tuple[str, str, str]]) -> str:
    return " and ".join(f"{name!r} ({kind}, {type_})" for kind, name, type_ in keys)
