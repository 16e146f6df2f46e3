"""Describe a table: its settings, and one model for each kind of its items."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from dynamo_single.conf import TableSettings
from dynamo_single.contrib.inspection import grouping, modelling, references, templates
from dynamo_single.contrib.inspection.grouping import Kind, Layout, Reader
from dynamo_single.contrib.inspection.indexes import indexes_of, key_names, key_setting, key_types
from dynamo_single.contrib.inspection.keys import Template, key_attribute
from dynamo_single.contrib.inspection.names import literal
from dynamo_single.contrib.inspection.proposal import Proposal
from dynamo_single.contrib.inspection.sample import Sample
from dynamo_single.contrib.inspection.templates import EmptyTemplates, Templates
from dynamo_single.orm.schema.keys.template import Pattern

#: The most models; the items of further kinds have no model.
MAX_MODELS: Final = 100


class Description(Struct, frozen=True):
    """The proposal for a table, with the items of each model."""

    proposal: Proposal
    layout: Layout
    models: list[references.Described]


def describe(sample: Sample, settings: TableSettings, alias: str) -> Description:
    """Return the settings of an alias and the models for the items of a sample. Does not send requests."""
    types = key_types(sample.description)
    indexes = indexes_of(sample.description, {name for item in sample.items for name in item})
    keys = tuple(key_attribute(name, types[name], sample.items) for name in key_names(sample.description))
    of_indexes = tuple(tuple(key_attribute(*key, sample.items) for key in index.keys) for index in indexes)
    layout = Layout(settings.table_name, keys, of_indexes, sample.ttl)
    typed = grouping.type_attribute(sample.items, layout.key_names)
    found = _kinds(replace(layout, type_attribute=typed), sample)
    if found is None:
        typed, found = None, _kinds(layout, sample) or []
    proposal = Proposal(
        alias=alias,
        head=[*_head(sample, settings)],
        settings={
            "TABLE_NAME": literal(settings.table_name),
            "REGION": literal(settings.region),
            **({"ENDPOINT_URL": literal(settings.endpoint_url)} if settings.endpoint_url else {}),
            "PARTITION_KEY": literal(key_setting(keys[0].name, keys[0].type)),
            "SORT_KEY": literal(key_setting(keys[1].name, keys[1].type)) if keys[1:] else "None",
            "TYPE_ATTRIBUTE": "None" if typed is None else literal(typed),
            **({"TTL_ATTRIBUTE": literal(sample.ttl)} if sample.ttl else {}),
            "RAW_KEYS": "True",
            "OWNS": "False",
        },
        indexes={index.name: index.settings for index in indexes},
        models=[],
    )
    described: list[references.Described] = []
    for kind, of_kind in found or [_of_empty(layout)]:
        model = modelling.model_of(kind, of_kind, indexes, [each.name for each in proposal.models])
        proposal.models.append(model)
        described.append((model, kind, of_kind))
    references.add(described)
    if rest := sum(not any(of_kind.match(item) for _, of_kind in found) for item in sample.items):
        items = f"{rest} {'item has' if rest == 1 else 'items have'}"
        proposal.notes.append(f"{items} no model. FOREIGN decides whether reading them raises UnexpectedItem.")
        proposal.settings["FOREIGN"] = '"skip"'
    return Description(proposal, layout, described)


def _of_empty(layout: Layout) -> tuple[Kind, Templates]:
    kind = Kind(None, tuple(() for _ in layout.keys), [])
    return kind, EmptyTemplates(Reader(layout, []), kind)


def _head(sample: Sample, settings: TableSettings) -> Iterator[str]:
    number = len(sample.items)
    counted = f"{number} {'item' if number == 1 else 'items'} of the table {literal(settings.table_name)}"
    cost = f"read by {sample.requests} requests, {sample.units:g} read units"
    yield f"{counted}, {cost}."
    if sample.is_complete:
        yield "The table has no other items."
    if not sample.is_complete:
        yield "The table has more items: rare kinds and rare attributes may be missing. --items reads more."
    if sample.failure:
        yield f"The scan ended early: {sample.failure}"
    if not sample.knows_ttl:
        yield "The role may not read the time to live (dynamodb:DescribeTimeToLive): add TTL_ATTRIBUTE if there is one."


def _kinds(layout: Layout, sample: Sample) -> list[tuple[Kind, Templates]] | None:
    """Return the kinds of a sample with their templates, the largest first; no two kinds have a key in common.

    Kinds whose keys could be equal are merged. ``None`` if two types have keys in common, because the app
    distinguishes models by their keys.
    """
    reader = Reader(layout, sample.items)
    is_typed = layout.type_attribute is not None
    waiting = grouping.kinds(reader, sample.items)
    if is_typed:
        by_type: dict[str | None, Kind] = {}
        for kind in (each for each in waiting if each.type is not None):
            by_type[kind.type] = templates.merge(by_type[kind.type], kind) if kind.type in by_type else kind
        waiting = [*by_type.values()]
    # Merging compares each kind with all others.
    del waiting[MAX_MODELS:]
    found: list[tuple[Kind, Templates]] = []
    spare = grouping.few(sample.items)
    while waiting:
        kind = waiting.pop(0)
        built = Templates(reader, kind)
        other = next((number for number, each in enumerate(found) if _collide(each[1], built)), None)
        if other is None:
            found.append((kind, built))
        elif is_typed:
            return None
        elif _is_vague(kind, built) and len(kind.items) <= spare:
            spare -= len(kind.items)
        else:
            # The merged keys are more general, and may collide with the keys of other kinds.
            waiting.insert(0, templates.merge(found.pop(other)[0], kind))
    return sorted(found, key=lambda each: (-len(each[0].items), repr(each[1].primary)))


def _is_vague(kind: Kind, found: Templates) -> bool:
    """Return whether a kind's keys have no pattern: a composed key is one value, or none contains a constant."""
    pairs = [*zip(found.reader.layout.keys, kind.signature, found.primary, strict=True)]
    composed = [(signature, template) for key, signature, template in pairs if key.is_composed]
    has_constant = any(isinstance(part, str) for _, template in composed for part in template)
    return bool(composed) and (not has_constant or any(not signature for signature, _ in composed))


def _collide(first: Templates, second: Templates) -> bool:
    """Return whether two kinds could have the same primary key, as the check of models decides it."""
    if any(second.match(item) for item in first.kind.items) or any(first.match(item) for item in second.kind.items):
        return True
    one, other = ([_pattern(each) for each in found.primary] for found in (first, second))
    return all(a.is_read_by(b, wholly=True) is not False for a, b in zip(one, other, strict=True))


def _pattern(template: Template) -> Pattern:
    """Return the keys of a template in a table with ``RAW_KEYS``."""
    literals = [""]
    for part in template:
        if isinstance(part, str):
            literals[-1] += part
        else:
            literals.append("")
    return Pattern(tuple(literals), raw=True)
