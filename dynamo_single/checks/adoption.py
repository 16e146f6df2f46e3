"""System checks of models in tables that other programs use too."""

from __future__ import annotations

from collections.abc import Iterator

from django.core.checks import Error
from django.db.models import CheckConstraint
from django.utils.module_loading import import_string
from pynamodb.models import Model as PynamoDBModel

from dynamo_single.conf import table_settings
from dynamo_single.orm.effects.counters import parent_counters
from dynamo_single.orm.items.unique_rules import rules_of
from dynamo_single.orm.rollout.own_migrations import has_migrations
from dynamo_single.orm.schema import registry
from dynamo_single.orm.schema.types import DynamoModel
from dynamo_single.table import names


def check_companion(model: type[DynamoModel]) -> Iterator[Error]:
    """E045: a model that needs items of the app in a table that cannot store them and has no companion."""
    alias = model._options.alias
    settings = table_settings(alias)
    if settings.keeps_own_items:
        return
    needed = f"DYNAMO_SINGLE[{alias!r}]['OWNS'] to False and " if settings.owns else ""
    for what, instead in _needs(model):
        yield Error(
            f"{model._meta.label} {what}, which the app cannot store: {settings.without_own_items}, and the table "
            "has no companion.",
            hint=f"Set {needed}DYNAMO_SINGLE[{alias!r}]['COMPANION'] to the alias of a table of your own, or "
            f"{instead}.",
            obj=model,
            id="dynamo_single.E045",
        )


def _needs(model: type[DynamoModel]) -> Iterator[tuple[str, str]]:
    """Yield each feature of a model that needs items of the app, with what to do without it."""
    for rule in rules_of(model):
        yield f"has claims for unique values of {' and '.join(rule.fields)}", "remove the uniqueness"
    if registry.declared_layout(model).sharding is not None:
        yield "has a schedule of its shards", "remove Keys.shards"
    if has_migrations(model._meta.app_label):
        app = model._meta.app_label
        yield f"has a state of its migrations, as the app {app!r} has migrations", "move the model to another app"


def check_shared(model: type[DynamoModel]) -> Iterator[Error]:
    """E046: a shared model with a feature that the other program's writes would break.

    PynamoDB's ``save()`` replaces the whole item with the attributes that its class declares.
    """
    if not model._options.shared:
        return
    for what, why, instead in (*_kept_by_writers(model), *_lost_by_saving(model), *_unknown_to_others(model)):
        yield Error(
            f"{model._meta.label} has Meta.shared and {what}: {why}.",
            hint=f"{instead}, or remove Meta.shared once the other program has stopped writing.",
            obj=model,
            id="dynamo_single.E046",
        )


_Unsafe = tuple[str, str, str]
_FOLLOWS = "the other program changes objects without it"
_LOSES = "the other program's save() removes what it does not know"


def _kept_by_writers(model: type[DynamoModel]) -> Iterator[_Unsafe]:
    """Yield the features for which every writer has to write other items, or other attributes of the item."""
    for rule in rules_of(model):
        fields = " and ".join(rule.fields)
        yield f"unique values of {fields}", f"{_FOLLOWS}, and takes no claims", "Remove the uniqueness"
    if any(isinstance(each, CheckConstraint) for each in model._meta.constraints):
        yield "a CheckConstraint", f"{_FOLLOWS}, and does not check it", "Remove the constraint"
    if registry.declared_layout(model).sharding is not None:
        yield "shards", "the other program writes keys without their number", "Remove Keys.shards"
    for copy in registry.copied_from(model):
        holder = f"{copy.field.model._meta.label}.{copy.name}"
        yield f"attributes that {holder} copies", f"{_FOLLOWS}, and leaves copies outdated", f"Remove {holder}"
    for counter in parent_counters(model):
        parent = counter.parent._meta.label
        yield f"objects that {parent} counts", f"{_FOLLOWS}, and does not count", "Remove the counter, or checked=True"
    if model.derived_from or model.derived_by:
        yield "derived objects", f"{_FOLLOWS}, and leaves them outdated", "Save these objects separately"
    for computed in registry.copies_of(model):
        source = f"{computed.name}, which is computed from {computed.source}"
        yield source, f"{_FOLLOWS}, and leaves it outdated", f"Remove {computed.name}"


def _lost_by_saving(model: type[DynamoModel]) -> Iterator[_Unsafe]:
    """Yield the features that only the app writes into the item."""
    if registry.has_soft_delete(model):
        yield "soft delete", f"{_LOSES}, and restores a deleted object by halves", "Derive it from models.Model"
    for counted in registry.counters_of(model):
        yield f"the counter {counted.name}", _LOSES, f"Remove {counted.name}"
    for copied in registry.copied_of(model):
        yield f"the copy {copied.name}", _LOSES, f"Remove {copied.name}"
    for field, holder in _checked_references_to(model):
        what = f"the checked reference {holder}.{field}"
        yield what, f"{_LOSES}, such as its count", f"Remove checked=True of {field}"
    for name, attribute in registry.attributes_of(model).items():
        is_automatic = any(attribute.field_options.get(each) for each in ("auto_now", "auto_now_add"))
        if is_automatic and not attribute.null:
            yield f"{name}, which only the app sets", f"{_LOSES}, and it is required", f"Give {name} null=True"


def _checked_references_to(model: type[DynamoModel]) -> Iterator[tuple[str, str]]:
    """Yield the checked references to a model, each with the label of the model that has it."""
    for other in registry.all_models():
        for counter in parent_counters(other):
            is_count = counter.name.startswith(names.REFERRED_PREFIX)
            if is_count and counter.parent._meta.concrete_model is model._meta.concrete_model:
                yield counter.field.name, other._meta.label


def _unknown_to_others(model: type[DynamoModel]) -> Iterator[_Unsafe]:
    """Yield what the other program's class does not declare, if ``Meta.shared`` names that class."""
    path = model._options.shared
    if not isinstance(path, str):
        return
    try:
        found: object = import_string(path)
    except ImportError as error:
        yield f"names {path!r}", f"it cannot be imported ({error})", "Correct the path, or write shared = True"
        return
    if not (isinstance(found, type) and issubclass(found, PynamoDBModel)):
        yield f"names {path!r}", "it is not a model of PynamoDB", "Correct the path, or write shared = True"
        return
    known = {attribute.attr_name for attribute in found.get_attributes().values()}
    shape = table_settings(model._options.alias).shape
    required = {str(each.attr_name) for each in registry.attributes_of(model).values() if not each.null}
    if shape.type_attribute is not None:
        required.add(shape.type_attribute)
    for key in registry.declared_layout(model).index_keys:
        if key.condition is None:
            required |= {shape.name_of(each) for each in names.key_names(key.index)}
    for stored in sorted(required - known):
        yield f"requires {stored!r}", f"{_LOSES}, and {path} does not declare it", f"Declare {stored!r} there"
