"""Describe a PynamoDB class: its settings and its model. Does not send requests.

The class does not declare whether a ``NumberAttribute`` contains integers, or how a project's own attribute classes
store their values.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from typing import Any

from django.utils.module_loading import import_string
from pynamodb import attributes as pynamodb
from pynamodb.indexes import Index, LocalSecondaryIndex
from pynamodb.models import Model

from dynamo_single import models
from dynamo_single.contrib.inspection import names
from dynamo_single.contrib.inspection.indexes import PROJECTED, key_setting
from dynamo_single.contrib.inspection.keys import Variable
from dynamo_single.contrib.inspection.names import literal
from dynamo_single.contrib.inspection.proposal import Proposal, ProposedKey, ProposedModel
from dynamo_single.contrib.inspection.pynamodb_attributes import Translator, in_order
from dynamo_single.exceptions import ConfigurationError


def imported(path: str) -> type[Model]:
    """Return the PynamoDB class at a dotted path; raise ``ConfigurationError`` if it is none."""
    try:
        found = import_string(path)
    except ImportError as error:
        raise ConfigurationError(
            f"Cannot import {path!r}: {error}. Name a PynamoDB class, such as forum.Thread."
        ) from error
    if isinstance(found, type) and issubclass(found, models.Model):
        raise ConfigurationError(f"{path} is a model of dynamo_single already. Name a class of pynamodb.models.Model.")
    if not (isinstance(found, type) and issubclass(found, Model) and hasattr(found, "Meta")):
        raise ConfigurationError(f"{path} is not a PynamoDB class with a Meta. Name one, such as forum.Thread.")
    return found


def describe(model: type[Model], region: str) -> Proposal:
    """Return the settings of an alias and the model of a PynamoDB class; ``region`` is the default of its Meta."""
    meta: Any = model.Meta
    found = _attributes(model)
    indexes = [*_indexes(model)]
    for index in indexes:
        for stored, attribute in _of_index(index).items():
            found.setdefault(stored, (attribute.attr_name, attribute, ["only an index declares it"]))
    keys = {stored: attribute for stored, (_, attribute, _) in found.items()}
    partition = next((each for each in keys.values() if each.is_hash_key), None)
    if partition is None:
        raise ConfigurationError(f"{model.__module__}.{model.__qualname__} has no attribute with hash_key=True.")
    sort = next((each for each in keys.values() if each.is_range_key), None)
    ttl = next((each.attr_name for each in keys.values() if isinstance(each, pynamodb.TTLAttribute)), None)
    proposal = Proposal(
        alias=names.index_name(str(meta.table_name), ()),
        head=[f"The settings and the model of {model.__module__}.{model.__qualname__}."],
        settings={
            "TABLE_NAME": literal(str(meta.table_name)),
            "REGION": literal(str(getattr(meta, "region", None) or region)),
            **({"ENDPOINT_URL": literal(str(meta.host))} if getattr(meta, "host", None) else {}),
            "PARTITION_KEY": literal(key_setting(partition.attr_name, partition.attr_type)),
            "SORT_KEY": "None" if sort is None else literal(key_setting(sort.attr_name, sort.attr_type)),
            "TYPE_ATTRIBUTE": "None",
            **({"TTL_ATTRIBUTE": literal(ttl)} if ttl else {}),
            "RAW_KEYS": "True",
            "OWNS": "False",
        },
        indexes={},
        models=[],
    )
    proposed = ProposedModel(
        name=names.model_name(model.__name__) if not model.__name__.isidentifier() else model.__name__,
        count=0,
        attributes=[],
        primary=[(Variable(each.attr_name),) for each in (partition, sort) if each is not None],
        notes=[*_notes(model)],
    )
    taken: set[str] = set()
    translator = Translator(proposed.name)
    order = sorted(found, key=lambda stored: (not keys[stored].is_hash_key, not keys[stored].is_range_key))
    for stored in order:
        original, attribute, notes = found[stored]
        proposed.names[stored] = name = original if _is_free(original, taken) else names.python_name(original, taken)
        taken.add(name)
        proposed.attributes.append(translator.attribute(name, attribute, notes))
    for index in indexes:
        _add_index(proposal, proposed, index)
    proposal.models.append(proposed)
    proposal.maps = translator.maps
    return proposal


def _is_free(name: str, taken: set[str]) -> bool:
    return (
        name not in taken
        and name not in names.RESERVED
        and "__" not in name
        and not name.startswith("_")
        and not name.endswith("_")
    )


def _attributes(model: type[Model]) -> dict[str, tuple[str, Any, list[str]]]:
    """Return the attributes of a class and of its discriminated subclasses by their stored names, with notes."""
    found = {each.attr_name: (name, each, list[str]()) for name, each in in_order(model)}
    for _, discriminator, _ in [*found.values()]:
        if isinstance(discriminator, pynamodb.DiscriminatorAttribute):
            for kind in discriminator.get_registered_subclasses(model):
                own: Mapping[str, Any] = kind.get_attributes()
                for name, each in own.items():
                    found.setdefault(each.attr_name, (name, each, [f"only {kind.__name__} declares it"]))
    return found


def _notes(model: type[Model]) -> Iterator[str]:
    if any(isinstance(each, pynamodb.DiscriminatorAttribute) for each in model.get_attributes().values()):
        yield (
            "PynamoDB distinguishes its classes by a discriminator. The app distinguishes models by their keys, "
            "so this model reads the items of all these classes."
        )


def _indexes(model: type[Model]) -> Iterator[Any]:
    for _, index in inspect.getmembers_static(model, lambda each: isinstance(each, Index)):
        yield index


def _of_index(index: Any) -> dict[str, Any]:
    declared: Mapping[str, Any] = index.Meta.attributes
    return {each.attr_name: each for each in declared.values() if each.is_hash_key or each.is_range_key}


def _add_index(proposal: Proposal, model: ProposedModel, index: Any) -> None:
    name = names.index_name(index.Meta.index_name, proposal.indexes)
    keys = sorted(_of_index(index).values(), key=lambda each: not each.is_hash_key)
    entry: dict[str, Any] = {"name": str(index.Meta.index_name)}
    entry |= {
        word: key_setting(key.attr_name, key.attr_type) for word, key in zip(("partition", "sort"), keys, strict=False)
    }
    projection, notes = index.Meta.projection, []
    if projection.projection_type != "ALL":
        included = projection.non_key_attributes
        entry["projection"] = sorted(included) if included else str(projection.projection_type)
        notes.append(PROJECTED.format(projection.projection_type))
    if isinstance(index, LocalSecondaryIndex):
        entry["local"] = True
    proposal.indexes[name] = entry
    model.keys.append(ProposedKey(name, name, [(Variable(key.attr_name),) for key in keys], notes))
