"""Decide which attributes of a model are secrets: the one rule for whatever is read or asked by other people than code.

The option ``secret`` decides, then what an attribute is made of, then its names. A site can add to the secrets
(``also``), and cannot remove any. This module sends nothing.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from dynamo_single.orm.schema import registry
from dynamo_single.orm.schema.attributes import Attribute
from dynamo_single.orm.schema.attributes.base import AlsoSecret
from dynamo_single.orm.schema.encoding.secrets import MASK, Path, hide_in, is_secret_name
from dynamo_single.orm.schema.kinds import DynamoModel


def is_secret(model: type[Any] | None, name: str, also: AlsoSecret | None = None) -> bool:
    """Return whether an attribute is a secret, by its Python name, its field's name or its name in the item.

    ``pk`` is one if a part of it is. Any other name, and one of no model, is decided by its words.
    """
    return hides(model, (name,), also)


def secrets_of(model: type[DynamoModel], also: AlsoSecret | None = None) -> frozenset[str]:
    """Return the Python names of a model's secret attributes."""
    if also is None:
        return _secrets_of(model, registry.generation)
    return frozenset(name for name, each in registry.attributes_of(model).items() if each.is_secret(also))


@lru_cache(maxsize=1024)
def _secrets_of(model: type[DynamoModel], generation: int) -> frozenset[str]:
    return frozenset(name for name, each in registry.attributes_of(model).items() if each.is_secret())


def lookup_hides(model: type[Any], lookup: str, also: AlsoSecret | None = None) -> bool:
    """Return whether a lookup or an order compares with a secret: ``-phone_secret``, ``user__password__gte``."""
    return hides(model, tuple(lookup.lstrip("-").split("__")), also)


def hides(model: type[Any] | None, path: Path, also: AlsoSecret | None = None) -> bool:
    """Return whether a path of names, over relations and into documents, leads to a secret or passes one."""
    for number, step in enumerate(path):
        attribute, related = _found(model, str(step))
        if attribute is None and related is None:
            return _is_secret_key(model, str(step), also) or any(
                is_secret_name(str(each)) or (also is not None and also(model, str(each))) for each in path[number:]
            )
        if attribute is not None and attribute.is_secret(also):
            return True
        if attribute is not None and related is None:
            return attribute.hides(path[number + 1 :], also)
        model = related
    return False


def has(model: type[Any], name: str) -> bool:
    """Return whether a name is that of an attribute or a relation of a model, or ``pk``."""
    # An attribute is not compared: that makes a condition of PynamoDB's.
    is_found = any(each is not None for each in _found(model, name))
    return is_found or name == "pk" or name in {field.name for field in model._meta.fields}


def hide(model: type[Any], name: str, value: object, also: AlsoSecret | None = None) -> object:
    """Return the value of an attribute as others may read it: a secret is masked, and so are the secrets inside it."""
    if value in (None, "") or not is_secret(model, name, also):
        attribute, _related = _found(model, name)
        if attribute is None:
            return hide_in(value, lambda path: hides(None, path[-1:], also))
        return hide_in(value, lambda path: attribute.hides(path, also))
    return MASK


def _found(model: type[Any] | None, name: str) -> tuple[Attribute | None, type[Any] | None]:
    """Return the attribute of this name, if it is one, and the model that it leads to, if it is a relation."""
    for field in () if model is None else model._meta.get_fields(include_hidden=True):
        attribute: Attribute | None = getattr(field, "attribute", None)
        if name not in (field.name, getattr(field, "attname", field.name), getattr(attribute, "attr_name", None)):
            continue
        related = field.related_model if field.is_relation else None
        if attribute is not None or related is not None:
            return attribute, None if isinstance(related, str) else related
    children = getattr(model, name, None)
    return None, getattr(children, "model", None) if not isinstance(children, Attribute) else None


def _is_secret_key(model: type[Any] | None, name: str, also: AlsoSecret | None) -> bool:
    if model is None or name not in ("pk", model._meta.pk.name if model._meta.pk else "pk"):
        return False
    return any(is_secret(model, part, also) for part in getattr(model, "_identity", ()) if part != name)
