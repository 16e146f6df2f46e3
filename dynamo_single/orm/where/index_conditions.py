"""The condition that a model declares for a key on an index, read once: ``Q`` becomes a value without a model.

This module sends nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial

from django.db.models import Q

from dynamo_single.exceptions import ConfigurationError, DynamoSingleError
from dynamo_single.orm.conditions import indexes
from dynamo_single.orm.conditions.algebra import names_in, with_names
from dynamo_single.orm.conditions.terms import EVERYTHING, Nothing
from dynamo_single.orm.schema import registry
from dynamo_single.orm.schema.kinds import DynamoModel
from dynamo_single.orm.schema.layout import IndexCondition
from dynamo_single.orm.where import preconditions


def reading(model: type[DynamoModel], name: str, given: object) -> Callable[[], IndexCondition] | None:
    """What reads a key's ``condition=``, once: it takes lookups, which take a model that is complete."""
    return None if given is None else cache(partial(read_index_condition, model, name, given))


def read_index_condition(model: type[DynamoModel], name: str, given: object) -> IndexCondition:
    """What a key's ``condition=`` says; raises ``ConfigurationError`` for what no item can be held to."""
    where = f"{model._meta.label}: the condition of the key {name}"
    if not isinstance(given, Q):
        raise ConfigurationError(f"{where} is {given!r}, as a migration has it: declare a Q, as in Q(status='open').")
    try:
        condition = preconditions.read_declared(model, given)
    except DynamoSingleError as error:
        raise ConfigurationError(f"{where}: {error}") from error
    if condition == EVERYTHING or isinstance(condition, Nothing):
        which = "every object meets it" if condition == EVERYTHING else "no object can meet it"
        raise ConfigurationError(f"{where}: {which}. Leave it out, or ask for something.")
    attributes = registry.attributes_of(model)
    python = {each.attr_name: each_name for each_name, each in attributes.items()}
    for stored in names_in(condition):
        attribute = attributes.get(python.get(stored, ""))
        if attribute is None or python[stored] in (registry.DELETED_AT, registry.DELETED_WITH):
            raise ConfigurationError(
                f"{where} asks for {python.get(stored, stored)!r}. It can ask for the model's own attributes; what is "
                "in the trash has a key of its own."
            )
    return indexes.of(with_names(condition, python))
