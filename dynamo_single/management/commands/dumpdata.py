"""``manage.py dumpdata``: Django's command, with support for models in DynamoDB."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from django.apps import apps
from django.conf import settings
from django.core.management.base import CommandParser
from django.core.management.commands import dumpdata
from django.core.management.utils import parse_apps_and_model_labels
from django.db import connections, router

from dynamo_single.backend.errors import is_stored_in_dynamodb
from dynamo_single.backend.router import uses_engine
from dynamo_single.management.dump import FixtureSecrets, ScanningAlias, without_fields


class Command(dumpdata.Command):
    """Django's command, except that objects come in the order of their key rather than ``pk``, which no key supports.

    Models that no key lists are read by one Scan of their table, which the command announces.
    """

    def add_arguments(self, parser: CommandParser) -> None:
        """Add ``--without-secrets``."""
        super().add_arguments(parser)
        parser.add_argument("--without-secrets", action="store_true", help="leave out the values of secret attributes")

    def handle(self, *app_labels: str, **options: Any) -> str | None:
        """Write the fixture: for each model, the requests of ``Model.objects.all()``, or those of the Scan.

        Standard error reports which secrets were written or omitted.
        """
        self._tell_of_sql(app_labels, options["database"])
        manager = "_base_manager" if options["use_base_manager"] else "_default_manager"
        models = [*_chosen(app_labels, options["exclude"], options["database"])]
        secrets = FixtureSecrets(are_left_out=options["without_secrets"])
        managers = [getattr(model, manager) for model in models if is_stored_in_dynamodb(model)]
        secrets.note_sql(model for model in models if not is_stored_in_dynamodb(model))
        alias = ScanningAlias.for_dump(options["database"], managers, self.stderr.write, secrets)
        if alias.unlisted:
            # Counting the objects would take another Scan, so that no progress is shown.
            options["verbosity"] = 0
        # Django's command passes only the alias to every queryset.
        try:
            with without_fields(models if secrets.are_left_out else ()):
                return super().handle(*app_labels, **{**options, "database": alias})
        finally:
            if told := str(secrets):
                self.stderr.write(told)

    def _tell_of_sql(self, labels: Iterable[str], alias: str) -> None:
        """Report selected SQL models that are not dumped because there is no SQL database."""
        if alias not in connections or not uses_engine(alias):
            return
        named = {label.lower() for label in labels}
        sql = [
            model._meta.label
            for model in apps.get_models()
            if not is_stored_in_dynamodb(model)
            and not named.isdisjoint((model._meta.app_label, model._meta.label_lower))
        ]
        if sql:
            users = settings.AUTH_USER_MODEL
            instead = f" Users are {users} here." if any(label.startswith("auth.") for label in sql) else ""
            self.stderr.write(
                f"Nothing is dumped of {', '.join(sql)}: they are of SQL, and {alias!r} is no SQL database.{instead}"
            )


def _chosen(labels: Iterable[str], excludes: Iterable[str], alias: str) -> Iterator[type[Any]]:
    """Yield the models that Django's command selects for these labels. The command itself reports wrong labels."""
    excluded_models, excluded_apps = parse_apps_and_model_labels(excludes)
    wanted = set(labels) or {config.label for config in apps.get_app_configs()}
    for model in apps.get_models():
        if not is_stored_in_dynamodb(model) and uses_engine(router.db_for_read(model)):
            continue
        options = model._meta
        named = options.app_label in wanted or options.label_lower in {label.lower() for label in wanted}
        excluded = model in excluded_models or options.app_config in excluded_apps
        if named and not excluded and not options.proxy and router.allow_migrate_model(alias, model):
            yield model
