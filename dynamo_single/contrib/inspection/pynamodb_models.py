"""Describe a PynamoDB class: its settings and its model. Does not send requests.

The class does not declare whether a ``NumberAttribute`` contains integers, or how a project's own attribute classes
store their values.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any, Final

from django.utils.module_loading import import_string
from pynamodb import attributes as pynamodb
from pynamodb.indexes import Index, LocalSecondaryIndex
from pynamodb.models import Model

from dynamo_single import models
from dynamo_single.contrib.inspection import names
from dynamo_single.contrib.inspection.indexes import PROJECTED, key_setting
from dynamo_single.contrib.inspection.keys import Variable
from dynamo_single.contrib.inspection.names import literal
from dynamo_single.contrib.inspection.proposal import Proposal, ProposedAttribute, ProposedKey, ProposedModel
from dynamo_single.exceptions import ConfigurationError
from dynamo_single.orm.schema.keys.secret_values import is_secret_name

#: The attributes of ``models`` and their options by PynamoDB's classes; a subclass comes before its base.
_KINDS: Final[dict[type[Any], tuple[str, dict[str, str]]]] = {
    pynamodb.VersionAttribute: ("VersionAttribute", {}),
    pynamodb.TTLAttribute: ("TTLAttribute", {}),
    pynamodb.UTCDateTimeAttribute: ("TimestampAttribute", {"stored_as": '"pynamodb"'}),
    pynamodb.JSONAttribute: ("JSONAttribute", {"stored_as": '"text"'}),
    pynamodb.NumberAttribute: ("NumberAttribute", {}),
    pynamodb.BooleanAttribute: ("BooleanAttribute", {}),
    pynamodb.UnicodeAttribute: ("UnicodeAttribute", {}),
    pynamodb.BinaryAttribute: ("BinaryAttribute", {}),
    pynamodb.UnicodeSetAttribute: ("UnicodeSetAttribute", {}),
    pynamodb.NumberSetAttribute: ("NumberSetAttribute", {}),
    pynamodb.BinarySetAttribute: ("BinarySetAttribute", {}),
    pynamodb.ListAttribute: ("ListAttribute", {}),
    pynamodb.MapAttribute: ("MapAttribute", {}),
}
_SETS: Final = ("SS", "NS", "BS")


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
    order = sorted(found, key=lambda stored: (not keys[stored].is_hash_key, not keys[stored].is_range_key))
    for stored in order:
        original, attribute, notes = found[stored]
        proposed.names[stored] = name = original if _is_free(original, taken) else names.python_name(original, taken)
        taken.add(name)
        proposed.attributes.append(_attribute(name, attribute, notes))
    for index in indexes:
        _add_index(proposal, proposed, index)
    proposal.models.append(proposed)
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
    # PynamoDB orders them by name.
    declared = [*dict.fromkeys(name for kind in reversed(model.__mro__) for name in vars(kind))]
    order = sorted(model.get_attributes().items(), key=lambda each: declared.index(each[0]))
    found = {each.attr_name: (name, each, list[str]()) for name, each in order}
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


def _attribute(name: str, attribute: Any, notes: list[str]) -> ProposedAttribute:
    notes = [*notes]
    declared = type(attribute)
    if isinstance(attribute, pynamodb.DiscriminatorAttribute):
        return ProposedAttribute(
            name, "UnicodeAttribute", attribute.attr_name, {"null": "True"}, ["PynamoDB's discriminator"]
        )
    base = next((each for each in _KINDS if isinstance(attribute, each)), None)
    if base is None:
        note = f"{declared.__name__} stores it as {attribute.attr_type}"
        return ProposedAttribute(name, "", attribute.attr_name, {}, [note])
    kind, options = _KINDS[base][0], dict(_KINDS[base][1])
    if getattr(attribute, "legacy_encoding", False):
        options["stored_as"] = '"base64"'
    if kind == "TTLAttribute":
        # The setting TTL_ATTRIBUTE has its stored name.
        return ProposedAttribute(name, kind, name, {"null": "True"}, notes)
    if kind != "VersionAttribute":
        if attribute.null or attribute.attr_type in _SETS or any("declares it" in note for note in notes):
            options["null"] = "True"
        _add_default(name, attribute, options, notes)
    if kind == "NumberAttribute":
        notes.append("IntegerAttribute() if it has only integers")
    notes += _of_documents(attribute, declared, base)
    return ProposedAttribute(name, kind, attribute.attr_name, options, notes)


def _of_documents(attribute: Any, declared: type[Any], base: type[Any]) -> Iterator[str]:
    if isinstance(attribute, pynamodb.MapAttribute) and declared is not pynamodb.MapAttribute:
        members = ", ".join(f"{name} ({type(each).__name__})" for name, each in declared.get_attributes().items())
        yield f"{declared.__name__} declares {members or 'no members'}: a schema=... validates them"
    elif isinstance(attribute, pynamodb.ListAttribute) and attribute.element_type is not None:
        yield f"a list of {attribute.element_type.__name__}"
    elif declared is not base:
        yield f"{declared.__name__} may convert the value: compare its serialize() and deserialize()"


def _add_default(name: str, attribute: Any, options: dict[str, str], notes: list[str]) -> None:
    default = attribute.default if attribute.default is not None else attribute.default_for_new
    if default is None:
        return
    if is_secret_name(name):
        notes.append("PynamoDB's class has a default")
    elif callable(default):
        notes.append(f"default={getattr(default, '__module__', '')}.{getattr(default, '__qualname__', '')}")
    elif isinstance(default, str):
        options["default"] = literal(default)
    elif isinstance(default, bool | int | float | Decimal):
        options["default"] = str(default) if not isinstance(default, Decimal) else literal(str(default))
    else:
        notes.append(f"PynamoDB's class has a default of the type {type(default).__name__}")
