"""A key of a model as a form: its variables are fields, and their values become a condition and a queryset.

This module sends no requests.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from django.contrib.admin.sites import AdminSite
from django.core.exceptions import ValidationError
from django.db import models
from django.http import HttpRequest
from django.utils import timezone
from django.utils.text import capfirst
from django.utils.translation import gettext as _
from msgspec import Struct

from dynamo_single.admin.secrets import Masks
from dynamo_single.admin.viewing.rules import may_view_model
from dynamo_single.contrib.table_admin.explorer.asked import Asked, Mistaken, check_order
from dynamo_single.exceptions import EmptyKeyPart, InvalidValue
from dynamo_single.orm.conditions import lowering
from dynamo_single.orm.conditions.terms import Compare
from dynamo_single.orm.plan.candidates import narrow_by_part
from dynamo_single.orm.plan.plan import KeyCondition
from dynamo_single.orm.schema import registry
from dynamo_single.orm.schema.keys.shards import shard_suffix
from dynamo_single.orm.schema.keys.template import KeyPart
from dynamo_single.orm.schema.layout import AccessKey
from dynamo_single.table.request import PARTITION_KEY_LIMIT, SORT_KEY_LIMIT

#: The parameter with the number of a shard.
SHARD: Final = "shard"
#: The most shards of a partition.
_MAX_SHARDS: Final = 100

#: The lookups of Django for the conditions on the last given variable.
_LOOKUPS: Final[Mapping[str, str]] = {
    "eq": "exact",
    "lt": "lt",
    "le": "lte",
    "gt": "gt",
    "ge": "gte",
    "between": "range",
    "begins": "startswith",
}


class KeyField(Struct, frozen=True):
    """A variable of a key as a field of the form; ``is_sort`` if the sort key contains it."""

    name: str
    label: str
    value: str
    is_sort: bool


class KeyChoice(Struct, frozen=True):
    """A key of a model; ``name`` is its name in an address."""

    name: str
    model: Any
    key: AccessKey

    @property
    def group(self) -> str:
        """The model's name."""
        return capfirst(str(self.model._meta.verbose_name))

    @property
    def label(self) -> str:
        """The templates."""
        return f"{self.key.partition.source} / {self.key.sort.source}"

    @property
    def sort_variables(self) -> tuple[str, ...]:
        """The attributes that only the sort key contains."""
        return tuple(name for name in self.key.sort.variables if name not in self.key.partition.variables)

    def fields(self, asked: Asked) -> Iterator[KeyField]:
        """Yield the fields with the values of the address."""
        for name in self.key.partition.variables:
            yield KeyField(name, name, asked.values.get(name, ""), is_sort=False)
        if self.key.sharding is not None:
            yield KeyField(SHARD, _("shard"), asked.values.get(SHARD, ""), is_sort=False)
        for name in self.sort_variables:
            yield KeyField(name, name, asked.values.get(name, ""), is_sort=True)


class Range(Struct, frozen=True):
    """The range of a Query, the sort key in it that does not belong to it, and the same as a queryset."""

    condition: KeyCondition
    without: str = ""
    queryset: str = ""


def key_choices(site: AdminSite, request: HttpRequest, alias: str, masks: Masks) -> list[KeyChoice]:
    """Return the keys of each model of a table that the user may view. Keys with a secret are omitted."""
    found = []
    for model in registry.all_models():
        if model._options.alias != alias or not may_view_model(site, request, model):
            continue
        layout = registry.layout_of(model)
        secret = masks.attributes(model)
        found += [
            KeyChoice(f"{model._meta.label_lower}.{key.name}", model, key)
            for key in (layout.primary, *layout.index_keys)
            if secret.isdisjoint(key.variables)
        ]
    return found


def range_of(choice: KeyChoice, asked: Asked) -> Range | None:
    """Return the range for the values of a form; ``None`` if a variable of the partition does not have a value.

    Raise ``Mistaken`` for values that the attributes or the key do not accept.
    """
    key, model = choice.key, choice.model
    if any(not asked.values.get(name) for name in key.partition.variables):
        return None
    given = _given(choice, asked)
    values = {name: _value(model, name, asked.values[name]) for name in (*key.partition.variables, *given)}
    try:
        partition = key.partition.render(values, limit=PARTITION_KEY_LIMIT)
        if key.sharding is not None:
            partition += shard_suffix(_shard(asked.values.get(SHARD, "")))
        condition, without = _condition(choice, asked, partition, values, given)
    except (EmptyKeyPart, InvalidValue) as error:
        raise Mistaken(error.in_words()) from error
    if any(len(text.encode()) > SORT_KEY_LIMIT for text in condition.operands):
        raise Mistaken(_("The sort key would be too long."))
    return Range(condition, without, queryset_text(choice, asked, values, given))


def _given(choice: KeyChoice, asked: Asked) -> tuple[str, ...]:
    """Return the variables of the sort key that have a value: its first ones, since the key is a string."""
    has_value = [bool(asked.values.get(name)) for name in choice.sort_variables]
    count = has_value.index(False) if False in has_value else len(has_value)
    if any(has_value[count:]):
        raise Mistaken(
            _("Enter a value for %(first)s too: the sort key begins with it.") % {"first": choice.sort_variables[count]}
        )
    return choice.sort_variables[:count]


def _condition(
    choice: KeyChoice, asked: Asked, partition: str, values: Mapping[str, object], given: Sequence[str]
) -> tuple[KeyCondition, str]:
    sort = choice.key.sort
    is_equal = asked.operator == "eq" or not given
    equal = {*choice.key.partition.variables, *(given if is_equal else given[:-1])}
    count = next((place for place, part in enumerate(sort.parts) if part.name not in equal), len(sort.parts))
    prefix = sort.prefix(values, count)
    if count == len(sort.parts):
        return KeyCondition(partition, "=", (prefix,)), ""
    if is_equal:
        return KeyCondition(partition, "begins_with", (prefix,)) if prefix else KeyCondition(partition), ""
    return _narrowed(asked, partition, prefix, sort.parts[count], _compared(choice, asked, given[-1]))


def _compared(choice: KeyChoice, asked: Asked, name: str) -> object:
    """Return the value that the last given variable is compared with; a beginning is text as it is."""
    if asked.operator == "begins":
        return asked.values[name]
    value = _value(choice.model, name, asked.values[name])
    return (value, _value(choice.model, name, asked.to)) if asked.operator == "between" else value


def _narrowed(asked: Asked, partition: str, prefix: str, part: KeyPart, value: object) -> tuple[KeyCondition, str]:
    comparison = Compare(part.name, _LOOKUPS[asked.operator], value)
    found = narrow_by_part(part, prefix, [comparison])
    if found is None or not found.operator:
        raise Mistaken(
            _("This key does not support “%(comparison)s” for %(name)s. Use “=”.")
            % {"comparison": asked.operator, "name": part.name}
        )
    if found.operator == "between":
        check_order(found.operands)
    # BETWEEN includes its bounds; if no character follows the value, "less than" excludes one of them.
    without = found.operands[-1] if asked.operator == "lt" and comparison not in found.used else ""
    return KeyCondition(partition, found.operator, found.operands), without


def _value(model: Any, name: str, text: str) -> Any:
    """Return the value of an attribute from a form; raise ``Mistaken`` if the attribute does not accept it."""
    field: Any = _fields(model)[name]
    try:
        value = (field.target_field if field.is_relation else field).to_python(text)
    except (ValidationError, InvalidValue, ValueError, TypeError, OverflowError) as error:
        raise Mistaken(_("%(name)s does not accept %(value)s.") % {"name": name, "value": repr(text[:100])}) from error
    is_moment = isinstance(field, models.DateTimeField)
    try:
        return timezone.make_aware(value) if is_moment and value and timezone.is_naive(value) else value
    except (OverflowError, ValueError) as error:
        raise Mistaken(_("%(name)s does not accept %(value)s.") % {"name": name, "value": repr(text)}) from error


def _fields(model: Any) -> dict[str, Any]:
    return {field.attname: field for field in model._meta.concrete_fields}


def _shard(text: str) -> int:
    """Return the place of a shard: 0 is the partition without a number."""
    if not text:
        return 0
    if not text.isascii() or not text.isdigit() or int(text[:4]) >= _MAX_SHARDS:
        raise Mistaken(_("A shard number is between 0 and 99. Leave it empty for the partition without a number."))
    return int(text) + 1


def queryset_text(choice: KeyChoice, asked: Asked, values: Mapping[str, object], given: Sequence[str]) -> str:
    """Return the queryset of the model's objects in a range, as Python.

    It includes the conditions without which the key would not serve it: the conditions of a
    conditional index, and the presence of optional attributes.
    """
    key, layout = choice.key, registry.layout_of(choice.model)
    name = choice.model.__name__
    if layout.trash is key:
        return f"{name}.deleted_objects.all()"
    conditions = [f"{each}={values[each]!r}" for each in key.partition.variables]
    for each in given:
        is_compared = each == given[-1] and asked.operator != "eq"
        value = _compared(choice, asked, each) if is_compared else values[each]
        lookup = f"__{_LOOKUPS[asked.operator]}" if is_compared else ""
        conditions.append(f"{each}{lookup}={value!r}")
    if key.index is not None:
        for each in key.variables:
            if each not in values and not layout.attributes[each].required:
                is_text = layout.attributes[each].is_text
                conditions.append(f'{each}__gt=""' if is_text else f"{each}__isnull=False")
    if key.condition is not None:
        conditions.append(lowering.filter_text(key.condition))
    method = f"filter({', '.join(conditions)})" if conditions else "all()"
    via = f'.using_index("{key.name}")' if key.index else ""
    return f"{name}.{choice.model._default_manager.name}{via}.{method}"
