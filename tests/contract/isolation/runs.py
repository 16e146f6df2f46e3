"""Runs of ``tests.isolated_project`` in child processes, next to a development table that must not change."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dynamo_single.conf import TableSettings
from dynamo_single.engines import LocalEngine, find_engine
from dynamo_single.table import Request, schema
from dynamo_single.table.table import Table
from tests import children

ROOT = Path(__file__).resolve().parents[3]
SECONDS = 400
#: The pytest plugins of a project. Other installed ones would take as long as its tests.
PLUGINS = ("no:cacheprovider", "xdist.plugin", "pytest_django.plugin", "dynamo_single.pytest_plugin")


@dataclass(frozen=True)
class Development:
    """An engine that runs, with the development table in it."""

    table: Table

    @property
    def url(self) -> str:
        """The table, as a setting."""
        return f"{self.table.settings.place.replace('http', 'dynamodb', 1)}/{self.table.name}?region=us-east-1"

    def state(self) -> tuple[Any, ...]:
        """Return the engine's tables, and the contents of the development table."""
        items = self.table.send(Request("Scan"))["Items"]
        return sorted(self.tables()), sorted(items, key=lambda item: str(item["pk"]))

    def tables(self) -> list[str]:
        """The names of the engine's tables."""
        names: list[str] = self.table.call("ListTables", {})["TableNames"]
        return names

    def django(self, *arguments: str, settings: str = "settings", **environment: str) -> str:
        """Run ``manage.py test``, and return what it printed. Any failure is one of the caller's."""
        return self._run("django", "test", *arguments, settings=settings, **environment)

    def manage(self, *arguments: str, settings: str = "settings") -> str:
        """Run a command of ``manage.py``; what it printed."""
        return self._run("django", *arguments, settings=settings)

    def python(self, *arguments: str, settings: str = "settings") -> str:
        """Run a module; what it printed."""
        return self._run(*arguments, settings=settings)

    def pytest(
        self, *arguments: str, settings: str = "settings", plugins: Sequence[str] = PLUGINS, **environment: str
    ) -> str:
        """Run pytest with the plugin, or with others, and return what it printed."""
        named = [part for plugin in plugins for part in ("-p", plugin)]
        fixed = ("-q", "--noconftest", *named, f"--ds={_module(settings)}")
        only = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
        return self._run("pytest", *fixed, *arguments, settings=settings, **only, **environment)

    def _run(self, program: str, *arguments: str, settings: str, **environment: str) -> str:
        inherited = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST_", "DYNAMO_"))}
        child = children.run(
            ["-m", program, *arguments],
            env={
                **inherited,
                "DJANGO_SETTINGS_MODULE": _module(settings),
                "DYNAMO_TEST_URL": self.url,
                "PYTHONPATH": str(ROOT),
                children.SERVER: children.address(),
                **environment,
            },
            together=True,
            timeout=SECONDS,
        )
        return f"{child.stdout}\nended with {child.returncode}"


def _module(settings: str) -> str:
    return f"tests.isolated_project.{settings}"


@contextmanager
def development() -> Iterator[Development]:
    """A running engine with a development table of one note."""
    with LocalEngine(find_engine(ROOT)) as engine:
        table = Table(TableSettings("development", "notes", endpoint_url=engine.endpoint_url))
        schema.apply(table)
        # The key that every test writes: it would refuse them if they reached it.
        keys = {"pk": {"S": "NOTE#same"}, "sk": {"S": "#METADATA"}}
        table.send(Request("PutItem", {"Item": {**keys, "itemType": {"S": "Note"}}}))
        yield Development(table)
