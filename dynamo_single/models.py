"""The public names for declaring models: ``from dynamo_single import models``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.db.models import CASCADE, DO_NOTHING, PROTECT, SET_DEFAULT, SET_NULL, ProtectedError

from dynamo_single.orm.model.bases import AuthoredModel, Record, SoftDeleteModel, TimestampedModel
from dynamo_single.orm.model.many_to_many import ManyToMany
from dynamo_single.orm.model.model import Model
from dynamo_single.orm.query.manager import Children, Manager, SoftDeleteManager
from dynamo_single.orm.query.queryset import QuerySet
from dynamo_single.orm.schema import attributes
from dynamo_single.orm.schema.attributes import *  # noqa: F403 - its __all__ lists the attributes once
from dynamo_single.orm.schema.attributes.field_names import missing_name
from dynamo_single.orm.schema.attributes.operations import REMOVE, AddToSet, Append, Prepend, RemoveFromSet
from dynamo_single.orm.schema.fields.fetching import FETCH_ONE, FETCH_PEERS, FETCH_RAISE
from dynamo_single.orm.schema.keys.shards import Shards
from dynamo_single.orm.schema.keys.template import IndexKey, Key
from dynamo_single.orm.schema.upgrades import Upgrade

__all__ = [
    "CASCADE",
    "DO_NOTHING",
    "FETCH_ONE",
    "FETCH_PEERS",
    "FETCH_RAISE",
    "PROTECT",
    "REMOVE",
    "SET_DEFAULT",
    "SET_NULL",
    "AddToSet",
    "Append",
    "AuthoredModel",
    "Children",
    "IndexKey",
    "Key",
    "Manager",
    "ManyToMany",
    "Model",
    "Prepend",
    "ProtectedError",
    "QuerySet",
    "Record",
    "RemoveFromSet",
    "Shards",
    "SoftDeleteManager",
    "SoftDeleteModel",
    "TimestampedModel",
    "Upgrade",
]
__all__ += attributes.__all__

if not TYPE_CHECKING:  # for a type checker, a module with this function has every name

    def __getattr__(name: str) -> object:
        """Raise ``ConfigurationError`` with the name of the attribute that replaces a Django field."""
        raise missing_name(name)
