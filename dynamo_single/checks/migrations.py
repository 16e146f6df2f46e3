"""Checks of migrations: open changes in a table, and models whose changes would go unnoticed."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Final

from django.apps import AppConfig
from django.core.checks import CheckMessage, Error, Warning
from django.core.exceptions import ImproperlyConfigured
from django.core.management import get_commands, load_command_class
from django.db import DEFAULT_DB_ALIAS, DatabaseError

from dynamo_single.conf import aliases
from dynamo_single.evolution.applied import unapplied_migrations
from dynamo_single.evolution.apply import is_responsible
from dynamo_single.evolution.commands import MakemigrationsMixin, MigrateMixin
from dynamo_single.evolution.migrate_run import is_running
from dynamo_single.exceptions import DynamoSingleError, ForeignTable, FormNotApplied
from dynamo_single.orm.rollout import following, knowledge
from dynamo_single.orm.rollout.own_migrations import has_migrations
from dynamo_single.orm.rollout.states import StoredForm, TableState, refuse_foreign
from dynamo_single.orm.schema import registry
from dynamo_single.orm.schema.types import DynamoModel
from dynamo_single.table.flow import run
from dynamo_single.table.table import Table, get_table

#: The base class that each command needs, and the consequence of not having it.
_MIXINS: Final[dict[str, type]] = {"makemigrations": MakemigrationsMixin, "migrate": MigrateMixin}
_WITHOUT: Final = {
    "makemigrations": "it would write them down as models of SQL",
    "migrate": "it could not finish what it begins",
}
#: The package whose models change only in releases of this project. Its users do not write migrations for them.
_SHIPPED = "dynamo_single"


def check_on_runserver(app_configs: Sequence[AppConfig] | None = None, **kwargs: object) -> list[CheckMessage]:
    """Return the messages of ``check_tables()``, for ``runserver``."""
    return check_tables(app_configs, databases=[DEFAULT_DB_ALIAS])


def check_tables(
    app_configs: Sequence[AppConfig] | None = None, databases: Collection[str] | None = None, **kwargs: object
) -> list[CheckMessage]:
    """W905: open changes of items; W914: shards that depend on spelling; E022: a foreign or unreadable table.

    ``migrate`` is about to carry out what is open, and does not warn of it.
    Runs for ``check --database`` and ``migrate``, and sends one strongly consistent GetItem for each table.
    """
    return [each for alias in aliases() for each in _table_problems(get_table(alias))] if databases else []


def check_applied(
    app_configs: Sequence[AppConfig] | None = None, databases: Collection[str] | None = None, **kwargs: object
) -> list[CheckMessage]:
    """W910: migrations of items that are not applied. For ``check --database``; ``migrate`` is about to apply them."""
    if is_running():
        return []
    return [
        Warning(f"{name} is not applied, and changes stored items.", hint="manage.py migrate", id="dynamo_single.W910")
        for alias in databases or ()
        if is_responsible(alias)
        for name in _unapplied(alias)
    ]


def _unapplied(alias: str) -> list[str]:
    try:
        return unapplied_migrations(alias)
    except (DatabaseError, DynamoSingleError, ImproperlyConfigured):
        return []  # code that uses the database reports the error


def _table_problems(table: Table) -> Iterator[CheckMessage]:
    try:
        state = run(knowledge.state_of(table))
        refuse_foreign(table.settings, state)
    except ForeignTable as error:
        yield Error(str(error), id="dynamo_single.E022")
        return
    except DynamoSingleError:
        return  # no table, so no open change; code that uses the table reports the error
    yield from _unfolded_shards(table, state)
    for item_type, form in state.forms.items():
        yield from _unreadable(table, item_type, form)
        for change in () if is_running() else form.opened:
            label = change.parameters.get("label", "")
            yield Warning(
                f"{change.migration} is not finished in the table {table.name!r}: {label}.",
                hint="Run manage.py migrate; after the deployment, if processes with older code still run.",
                obj=form.label,
                id="dynamo_single.W905",
            )


def _unfolded_shards(table: Table, state: TableState) -> Iterator[Warning]:
    """W914: the latest shards of a model hash a value that its primary key folds: spellings are different objects."""
    for model in registry.all_models():
        layout = registry.layout_of(model)
        recorded = state.shards.get(layout.item_type)
        if layout.alias != table.settings.alias or layout.sharding is None or recorded is None:
            continue
        latest, fold = recorded.entries[-1], layout.sharding.fold
        if fold and latest.shards > 1 and not latest.fold:
            yield Warning(
                f"The shards of {layout.label} in the table {table.name!r} hash {layout.sharding.attribute} as it is "
                "spelled, and the primary key folds it: each spelling of one address can be an object of its own.",
                hint=f"manage.py dynamo_shards {layout.label} {latest.shards} for new objects, and manage.py "
                "dynamo_verify --repair for older ones once that has begun.",
                obj=model,
                id="dynamo_single.W914",
            )


def _unreadable(table: Table, item_type: str, form: StoredForm) -> Iterator[Warning]:
    """W908: items may have an earlier schema version, which only a migration can upgrade."""
    model = registry.model_of_type(table.settings.alias, item_type)
    if model is not None and has_migrations(model._meta.app_label):
        try:
            following.refuse_older_items(registry.layout_of(model), form)
        except FormNotApplied as error:
            yield Warning(str(error), obj=model, id="dynamo_single.W908")


def check_commands(app_configs: Sequence[AppConfig] | None = None, **kwargs: object) -> list[CheckMessage]:
    """E032: ``makemigrations`` or ``migrate`` of an earlier app that does not support these models."""
    if all(map(_is_shipped, registry.all_models())):
        return []
    found = get_commands()
    commands = {name: load_command_class(found[name], name) for name in _MIXINS}
    return [
        Error(
            f"The command {name} comes from {found[name]!r}, which precedes dynamo_single in INSTALLED_APPS "
            f"and does not support models in DynamoDB: {_WITHOUT[name]}.",
            hint=f"class Command({mixin.__name__}, ...) with dynamo_single.migrations.{mixin.__name__} in front of its "
            "bases, in an app that stands before both; or let dynamo_single stand before it.",
            id="dynamo_single.E032",
        )
        for name, mixin in _MIXINS.items()
        if not isinstance(commands[name], mixin)
    ]


def check_apps(app_configs: Sequence[AppConfig] | None = None, **kwargs: object) -> list[CheckMessage]:
    """W906: an app with DynamoDB models but without migrations. For ``check --deploy``; sends no request."""
    labels = {model._meta.app_label for model in registry.all_models() if not _is_shipped(model)}
    return [
        Warning(
            f"The app {label!r} has models in DynamoDB but no migrations: if its models change, stored items "
            "do not change with them, and no error reports this.",
            hint=f"manage.py makemigrations {label}, and for a table that has items already migrate --fake-initial.",
            id="dynamo_single.W906",
        )
        for label in sorted(labels)
        if not has_migrations(label)
    ]


def _is_shipped(model: type[DynamoModel]) -> bool:
    return model.__module__.partition(".")[0] == _SHIPPED
