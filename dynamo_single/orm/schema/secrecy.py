"""Decide which attributes of a model are secrets: a single rule for everything that users can read or query.

The option ``secret`` decides first, then the attributes that a value is derived from, then its names. A site can add
secrets (``also``) but cannot remove any. This module does not send requests.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from django.apps import apps

from dynamo_single.conf import COMPANION_PREFIX
from dynamo_single.exceptions import ConfigurationError
from dynamo_single.orm.schema import registry
from dynamo_single.orm.schema.attributes import Attribute
from dynamo_single.orm.schema.attributes.base import AlsoSecret
from dynamo_single.orm.schema.bindings import ModelBinding, fact
from dynamo_single.orm.schema.keys.secret_values import MASK, Path, hide_in, is_secret_name
from dynamo_single.orm.schema.layout import AccessKey
from dynamo_single.orm.schema.types import DynamoModel
from dynamo_single.table import masking, names

_CLAIM: Final = f"{names.UNIQUE_PREFIX}#"
_LOG: Final = f"{names.LOG_OF_OBJECT}#"


def is_secret(model: type[Any] | None, name: str, also: AlsoSecret | None = None) -> bool:
    """Return whether an attribute is a secret; ``name`` is its Python name, its field's name or its name in the item.

    ``pk`` is a secret if a part of it is. The words of the name decide for an unknown name, or without a model.
    """
    return hides(model, (name,), also)


def secrets_of(model: type[DynamoModel], also: AlsoSecret | None = None) -> frozenset[str]:
    """Return the Python names of a model's secret attributes.

    ``also`` is called once for each attribute, and the results are cached with the model's binding.
    """
    return _secrets_of(model, also)


@fact
def _secrets_of(binding: ModelBinding, also: AlsoSecret | None) -> frozenset[str]:
    return frozenset(name for name, each in registry.attributes_of(binding.model).items() if each.is_secret(also))


def lookup_hides(model: type[Any], lookup: str, also: AlsoSecret | None = None) -> bool:
    """Return whether a lookup or an ordering names a secret, such as ``-phone_secret`` or ``user__password__gte``."""
    return hides(model, tuple(lookup.lstrip("-").split("__")), also)


def hides(model: type[Any] | None, path: Path, also: AlsoSecret | None = None) -> bool:
    """Return whether a path, over relations and into documents, leads to a secret or through one."""
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
    """Return whether a model has an attribute or a relation of this name; ``pk`` counts."""
    # Comparing an attribute with == would create a condition of PynamoDB.
    is_found = any(each is not None for each in _found(model, name))
    return is_found or name == "pk" or name in {field.name for field in model._meta.fields}


def hide(model: type[Any], name: str, value: object, also: AlsoSecret | None = None) -> object:
    """Return the value of an attribute for people: masked if it is a secret, else with the secrets in it masked."""
    if value in (None, "") or not is_secret(model, name, also):
        attribute, _related = _found(model, name)
        if attribute is None:
            return hide_in(value, lambda path: hides(None, path[-1:], also))
        return hide_in(value, lambda path: attribute.hides(path, also))
    return MASK


def shown(model: type[Any], value: object, *names: str) -> str:
    """Return the value of attributes, by default of ``pk``, for a message; it is masked if one of them is a secret."""
    return MASK if any(is_secret(model, name) for name in names or ("pk",)) else repr(value)


def named(model: type[Any], pk: object) -> str:
    """Return the name of an object for a message: ``shop.Firm with pk 'f1'``."""
    return f"{model._meta.label} with pk {shown(model, pk)}"


def worded(model: type[Any], names: Sequence[str], values: Sequence[object]) -> str:
    """Return attributes and their values for a message: ``name 'Acme' and code •••``."""
    return " and ".join(f"{name} {shown(model, value, name)}" for name, value in zip(names, values, strict=True))


def masked_key(alias: str | None, partition: str, sort: str, also: AlsoSecret | None = None) -> tuple[str, str]:
    """Return a key of a table or an index with its secrets masked; the literal text before a secret is kept.

    Without an alias, the keys of the models in all tables apply. ``sort`` may be the beginning of a sort key. The names
    in the key of a claim are kept, and so are the values unless one of them is a secret.
    """
    if partition.startswith(COMPANION_PREFIX):
        of, _, rest = partition.removeprefix(COMPANION_PREFIX).partition("#")
        masked, sort = masked_key(of, rest, sort, also)
        return f"{COMPANION_PREFIX}{of}#{masked}", sort
    if partition.startswith(_CLAIM):
        parts = partition.split("#")
        owners = [model for model in _models(alias) if model._options.item_type == parts[1]]
        if not owners or any(is_secret(model, part, also) for model in owners for part in parts[2:]):
            partition = "#".join([*parts[:3], MASK])
        return partition, sort
    shown = masked_log(partition, also), sort
    for model in _models(alias):
        if not (secret := secrets_of(model, also)):
            continue
        for key in _keys_with(model, secret):
            if key.has_partition(partition):
                shown = _masked_by(key, secret, shown)
    return shown


def masked_log(partition: str, also: AlsoSecret | None = None) -> str:
    """Return a partition key, or the beginning of one, without the ``pk`` of an object whose log it leads to.

    The ``pk`` is masked if it contains a secret, or if the object's model is not installed. Other keys are unchanged.
    """
    label, _separator, pk = partition.removeprefix(_LOG).partition("#")
    if not partition.startswith(_LOG) or not pk:
        return partition
    try:
        model = apps.get_model(label)
    except (LookupError, ValueError):
        return f"{_LOG}{label}#{MASK}"
    return f"{_LOG}{label}#{MASK}" if is_secret(model, "pk", also) else partition


def _models(alias: str | None) -> list[type[DynamoModel]]:
    return [model for model in registry.all_models() if alias in (None, model._options.alias)]


def _keys_with(model: type[DynamoModel], secret: frozenset[str]) -> list[AccessKey]:
    try:
        layout = registry.layout_of(model)
    except ConfigurationError:  # a check reports it, and the message may be about it
        return []
    return [key for key in (layout.primary, *layout.index_keys) if not secret.isdisjoint(key.variables)]


def _masked_by(key: AccessKey, secret: frozenset[str], shown: tuple[str, str]) -> tuple[str, str]:
    partition, sort = shown
    if not secret.isdisjoint(key.partition.variables):
        partition = key.partition.head + MASK
    if not secret.isdisjoint(key.sort.variables) and key.sort.could_start_with(sort):
        sort = key.sort.head + MASK
    return partition, sort


def _found(model: type[Any] | None, name: str) -> tuple[Attribute | None, type[Any] | None]:
    """Return the attribute of this name, if there is one, and the related model of a relation."""
    for field in () if model is None else model._meta.get_fields(include_hidden=True):
        attribute: Attribute | None = getattr(field, "attribute", None)
        if name not in (field.name, getattr(field, "attname", field.name), getattr(attribute, "attr_name", None)):
            continue
        related = field.related_model if field.is_relation else None
        if attribute is not None or related is not None:
            return attribute or _reference(field), None if isinstance(related, str) else related
    children = getattr(model, name, None)
    if isinstance(children, Attribute):
        return None, None
    return _reference(children), getattr(children, "model", None)


def _reference(relation: Any) -> Attribute | None:
    """Return the attribute of the reference that a relation from the other side follows."""
    found: Attribute | None = getattr(getattr(relation, "field", None), "attribute", None)
    return found


def _is_secret_key(model: type[Any] | None, name: str, also: AlsoSecret | None) -> bool:
    if model is None or name not in ("pk", model._meta.pk.name if model._meta.pk else "pk"):
        return False
    return any(is_secret(model, part, also) for part in getattr(model, "_identity", ()) if part != name)


masking.mask_by(masked_key)
