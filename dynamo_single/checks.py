"""System checks: the mistakes in models that would otherwise show up with the first object.

Django does not call the checks of models that are hidden from migrations, so this module calls them too.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import Any

from django.apps import AppConfig
from django.core.checks import CheckMessage, Error

from dynamo_single import layout as names
from dynamo_single import registry
from dynamo_single.collections import Children
from dynamo_single.conf import table_settings
from dynamo_single.exceptions import ConfigurationError
from dynamo_single.keys import can_collide
from dynamo_single.model import Model
from dynamo_single.options import ModelLayout


def check_models(app_configs: Sequence[AppConfig] | None = None, **kwargs: Any) -> list[CheckMessage]:
    """Every check of every model of the given apps; collisions are looked for among all models."""
    labels = None if app_configs is None else {config.label for config in app_configs}
    models = [model for model in registry.all_models() if labels is None or model._meta.app_label in labels]
    messages: list[CheckMessage] = []
    for model in models:
        # W042 speaks of an automatic id, which a model gets only where E003 names the real mistake.
        messages += (message for message in model.check(**kwargs) if message.id != "models.W042")
        messages += _check_names(model)
        messages += _check_layout(model)
        messages += _check_children(model)
    return [*messages, *_check_collisions(models)]


def _error(model: Any, id: str, message: str, hint: str | None = None) -> Error:
    return Error(message, hint=hint, obj=model, id=f"dynamo_single.{id}")


def _check_names(model: Any) -> Iterator[Error]:
    """E001: a Python name that models use themselves; E002: a stored name that is the layout's, or taken."""
    python_names = set(dir(Model))
    reserved = {names.PARTITION_KEY, names.SORT_KEY, names.ITEM_TYPE}
    for index in table_settings(model._options.alias).indexes:
        reserved |= {names.index_partition(index), names.index_sort(index)}
    taken: dict[str, str] = {}
    for name, attribute in registry.attributes_of(model).items():
        if {name, attribute.field.name} & python_names:
            yield _error(
                model,
                "E001",
                f"The attribute name {attribute.field.name!r} is a method or a property of every model.",
                "Call the attribute something else; attr_name= keeps the name in the stored item.",
            )
        stored = attribute.attr_name
        if stored in reserved:
            yield _error(
                model,
                "E002",
                f"{name} would be stored as {stored!r}, where a key or the item's type is stored.",
                "Give it another name, or another attr_name=.",
            )
        if stored in taken:
            yield _error(model, "E002", f"{taken[stored]} and {name} would both be stored as {stored!r}.")
        taken[stored] = name


def _check_layout(model: Any) -> Iterator[Error]:
    """E003: a key that cannot work; E004: an index that is not in the settings; E005: two keys on one index."""
    try:
        layout = registry.layout_of(model)
    except ConfigurationError as error:
        yield _error(model, "E003", str(error))
        return
    configured = table_settings(layout.alias).indexes
    used: dict[str, str] = {}
    for key in (*layout.indexes, *((layout.trash,) if layout.trash else ())):
        index = str(key.index)
        if index not in configured:
            yield _error(
                model,
                "E004",
                f"The key {key.name} is on the index {index!r}, which the table does not have.",
                f"Its indexes are {', '.join(configured) or 'none'}: add {index!r} to INDEXES of "
                f"DYNAMO_SINGLE[{layout.alias!r}] and run manage.py dynamo_setup, or use another index.",
            )
        if index in used and key is not layout.trash:
            yield _error(
                model,
                "E005",
                f"The keys {used[index]} and {key.name} are both on the index {index!r}, where an item has one key.",
                "Put one of them on another index.",
            )
        used.setdefault(index, key.name)


def _check_children(model: Any) -> Iterator[Error]:
    """E006: ``Children`` that name no model, or one without a reference to this."""
    for value in vars(model).values():
        if isinstance(value, Children) and (problem := value.problem()):
            yield _error(model, "E006", problem)


def _check_collisions(models: Sequence[Any]) -> Iterator[Error]:
    """E007: two models of one table that could write the same primary key."""
    layouts: list[tuple[Any, ModelLayout]] = []
    for model in registry.all_models():
        try:
            layouts.append((model, registry.layout_of(model)))
        except ConfigurationError:
            continue  # E003 says so for that model
    for (first, one), (second, other) in combinations(layouts, 2):
        if one.alias != other.alias or not {first, second} & set(models):
            continue
        if can_collide((one.primary.partition, one.primary.sort), (other.primary.partition, other.primary.sort)):
            yield _error(
                second,
                "E007",
                f"{other.label} and {one.label} could write the same primary key: "
                f"{other.primary.partition.source!r} / {other.primary.sort.source!r} and "
                f"{one.primary.partition.source!r} / {one.primary.sort.source!r}.",
                "Put a different literal into one of the templates, such as the model's name in front.",
            )
