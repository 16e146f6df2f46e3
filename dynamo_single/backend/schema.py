"""The schema editor, which Django opens more often than it uses."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn, Self

from dynamo_single.backend.errors import command_refused

if TYPE_CHECKING:
    from collections.abc import Callable

    from django.db.backends.base.base import BaseDatabaseWrapper


class SchemaEditor:
    """Can be opened and closed; every change of a table is refused.

    ``migrate --run-syncdb``, and with it every test run, opens one although no model is left for it to make.
    """

    atomic_migration = False

    def __init__(self, connection: BaseDatabaseWrapper, collect_sql: bool = False, atomic: bool = True) -> None:
        self.connection = connection
        self.deferred_sql: list[Any] = []
        #: ``sqlmigrate``: operations on items put the requests here that they would send, and send nothing.
        self.collect_sql = collect_sql
        self.collected_sql: list[str] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        pass

    def __getattr__(self, name: str) -> Callable[..., NoReturn]:
        """Stand in for every operation of Django's own editor."""
        if name.startswith("_"):
            raise AttributeError(name)

        def refuse(*args: object, **kwargs: object) -> NoReturn:
            raise command_refused(
                f"change the schema ({name})",
                "A model of dynamo_single.models needs no change of a table.",
                self.connection.alias,
            )

        return refuse
