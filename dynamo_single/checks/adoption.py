"""System checks of models in tables that other programs use too."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

from django.core.checks import Error

from dynamo_single.conf import table_settings
from dynamo_single.exceptions import ConfigurationError
from dynamo_single.orm.items.unique_rules import rules_of
from dynamo_single.orm.rollout import knowledge
from dynamo_single.orm.schema import registry
from dynamo_single.orm.schema.types import DynamoModel


def check_companion(model: type[DynamoModel]) -> Iterator[Error]:
    """E045: a model that needs items of the app in a table with ``OWNS = False`` that has no companion."""
    alias = model._options.alias
    if table_settings(alias).keeps_own_items:
        return
    with suppress(ConfigurationError):  # E003 and E009 report an invalid declaration
        for what, instead in _needs(model):
            yield Error(
                f"{model._meta.label} {what}, which the app cannot store: DYNAMO_SINGLE[{alias!r}]['OWNS'] is False, "
                "and the table has no companion.",
                hint=f"Set DYNAMO_SINGLE[{alias!r}]['COMPANION'] to the alias of a table of your own, or {instead}.",
                obj=model,
                id="dynamo_single.E045",
            )


def _needs(model: type[DynamoModel]) -> Iterator[tuple[str, str]]:
    """Yield each feature of a model that needs items of the app, with what to do without it."""
    for rule in rules_of(model):
        yield f"has claims for unique values of {' and '.join(rule.fields)}", "remove the uniqueness"
    if registry.declared_layout(model).sharding is not None:
        yield "has a schedule of its shards", "remove Keys.shards"
    if knowledge.has_migrations(model._meta.app_label):
        app = model._meta.app_label
        yield f"has a state of its migrations, as the app {app!r} has migrations", "move the model to another app"
