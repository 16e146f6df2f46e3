"""An SQL database file of an earlier project next to the table."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar

import pytest
from django.contrib.auth.models import Permission
from django.contrib.contenttypes.models import ContentType
from django.db import connections

from dynamo_single.contrib.sql_import import declared

#: The alias of the database.
OLD = "old"
#: The modules of models, each with rows of one kind.
OLD_MODELS = "tests.contract.sql_import.old"
MODULES = [
    f"{OLD_MODELS}.{name}" for name in ("samples", "estates", "library", "expiring", "games", "orders", "theatres")
]


class Rows:
    """The models of the old database by name, and its rows."""

    #: The modules of the rows that the test has inserted.
    modules: ClassVar[set[str]] = set()

    def __init__(self, models: Mapping[str, Any]) -> None:
        self.models = models
        self.modules.clear()

    def add(self, name: str, *rows: Mapping[str, Any]) -> None:
        """Insert rows of a model, whatever they refer to."""
        model = self.models[name]
        if model.__module__ in MODULES:
            self.modules.add(model.__module__)
        with connections[OLD].constraint_checks_disabled():
            model._base_manager.using(OLD).bulk_create([model(**row) for row in rows])

    def of(self, name: str) -> Any:
        """All rows of a model."""
        return self.models[name]._base_manager.using(OLD).all()


def _models() -> dict[str, Any]:
    found = declared.models_of(MODULES)
    users = declared.users_and_groups({"auth_user", "auth_group"}, has_users=False)
    return {each.__name__: each for each in (ContentType, Permission, *users, *found)}


@contextmanager
def connected(path: Path) -> Iterator[None]:
    """Let the alias name the database in a file."""
    connections.settings[OLD] = {
        **connections.settings["default"],
        "ENGINE": "django.db.backends.sqlite3",
        "NAME": str(path),
        "OPTIONS": {},
    }
    try:
        yield
    finally:
        connections[OLD].close()
        del connections[OLD]
        del connections.settings[OLD]


@pytest.fixture(scope="session")
def empty_database(tmp_path_factory: pytest.TempPathFactory, django_db_blocker: Any) -> Path:
    """The file of a database with all tables, as ``migrate`` makes them."""
    path = tmp_path_factory.mktemp("sql") / "old.sqlite3"
    with django_db_blocker.unblock(), connected(path), connections[OLD].schema_editor() as editor:
        for model in _models().values():
            editor.create_model(model)
    return path


@pytest.fixture
def database(empty_database: Path, tmp_path: Path) -> Path:
    """The file of the test's database."""
    return Path(shutil.copy(empty_database, tmp_path / "old.sqlite3"))


@pytest.fixture
def rows(table: Any, database: Path, django_db_blocker: Any) -> Iterator[Rows]:
    """The database's rows."""
    with django_db_blocker.unblock(), connected(database):
        yield Rows(_models())
