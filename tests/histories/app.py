"""The app's life in one test: models that come, change and go, and its migration files."""

from __future__ import annotations

import importlib
import io
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from functools import cache
from pathlib import Path
from typing import Any
from unittest import mock

from django.apps import apps
from django.core.management import (
    BaseCommand,
    CommandError,
    CommandParser,
    call_command,
    get_commands,
    load_command_class,
)
from django.test import override_settings

from dynamo_single import models
from dynamo_single.evolution import drive
from dynamo_single.orm.rollout import knowledge, own_migrations
from dynamo_single.orm.schema import registry
from dynamo_single.table import get_table
from dynamo_single.test_tables import contents
from tests.unit.declaring import declare, forgotten

#: The message of ``migrate`` if it stops before a change is reverted.
NOT_REVERTED = "is not reverted yet"
#: The other apps of a history. Django reads the migrations of every app several times per command.
BESIDE = ("tests.histories", "dynamo_single")

_numbers = iter(range(1_000_000))


@cache
def parser_of(name: str) -> CommandParser:
    """Return the parser of a command, cached per set of arguments."""
    return loaded(name).create_parser("manage.py", name)


def loaded(name: str) -> BaseCommand:
    """Return a command of the whole project in its initial state."""
    app: Any = get_commands()[name]
    return load_command_class(app, name)


def command_of(name: str) -> BaseCommand:
    """Return a command with a cached parser."""
    command: Any = loaded(name)
    command.create_parser = lambda *_, **__: parser_of(name)
    return command


class History:
    """The app ``histories`` with a folder of migrations."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def model(self, name: str = "Shop", /, keys: dict[str, Any] | None = None, **attributes: Any) -> Any:
        """Declare a model instead of one with this name; ``options`` is its ``Meta``."""
        options = {"app_label": "histories", **attributes.pop("options", {})}
        bases = attributes.pop("bases", (models.Model,))
        primary = attributes.pop("primary", (f"{name.upper()}#{{shop_id}}", "#METADATA"))
        self.forget(name)
        given = {"shop_id": models.IdAttribute(), **attributes}
        return declare(name, primary, keys, bases=bases, options=options, **given)

    def forget(self, name: str) -> None:
        """Let there be no model of this name."""
        registry._MODELS.pop(f"histories.{name.lower()}", None)
        apps.all_models["histories"].pop(name.lower(), None)
        registry.invalidate()
        apps.clear_cache()

    def run(self, command: str, *arguments: str, answers: Sequence[str] = (), **options: Any) -> str:
        """Run a command, reply to its prompts with ``answers``, and return its output."""
        out = io.StringIO()
        self._unload()
        given = iter(answers)
        with mock.patch("builtins.input", lambda *_: next(given)):
            call_command(command_of(command), *arguments, stdout=out, stderr=out, no_color=True, **options)
        self.start()
        assert list(given) == [], "questions that were not asked"
        return out.getvalue()

    def start(self) -> None:
        """Forget everything except the initial state of a process."""
        self._unload()
        for each in (own_migrations.has_migrations, own_migrations.migration_names, own_migrations.has_migration):
            each.cache_clear()
        knowledge.forget()

    def make(self, *arguments: str, answers: Sequence[str] = ()) -> str:
        """``makemigrations histories``."""
        return self.run("makemigrations", "histories", *arguments, answers=answers)

    def migrate(self, *arguments: str, until: int | None = None, passed: bool = False, **options: Any) -> str:
        """``migrate histories``, or as much of it as has happened when each change is in the phase ``until``.

        The passes of that phase have not run, or with ``passed`` they have, and no process uses an earlier revision.
        """
        with nullcontext() if until is None else _stopped_in(until, passed):
            try:
                return self.run("migrate", "histories", *arguments, **options)
            except CommandError as error:
                if until is None or NOT_REVERTED not in str(error):
                    raise
                self.start()
                return str(error)

    def finish(self) -> str:
        """Execute the open changes: run ``migrate`` again."""
        return self.migrate()

    @contextmanager
    def code_of(self, name: str) -> Iterator[None]:
        """In the block, this process has the code of a migration: it does not know those after it."""

        def known(app_label: str) -> tuple[str, ...]:
            return tuple(each for each in names(app_label) if app_label != "histories" or each[:4] <= name)

        names = own_migrations.migration_names
        self.start()
        with mock.patch.object(own_migrations, "migration_names", known):
            yield
        self.start()

    def phases(self) -> dict[str, int]:
        """The phases of the open changes, by their descriptions."""
        return {each.change.parameters["label"]: each.change.phase for each in drive.open_changes()}

    @property
    def files(self) -> list[str]:
        """The names of the migrations."""
        return sorted(path.stem for path in self.folder.glob("0*.py"))

    def operations(self, name: str = "") -> list[str]:
        """Return the operations of the last migration, or of one with this prefix, a line each."""
        found = [each for each in self.files if each.startswith(name)][-1]
        self._unload()
        module = importlib.import_module(f"{self.folder.name}.{found}")
        return [operation.describe() for operation in module.Migration.operations]

    def _unload(self) -> None:
        """Read the files again: another command is another process."""
        for folder in (self.folder, self.folder.parent):
            if (finder := sys.path_importer_cache.get(str(folder))) is not None:
                finder.invalidate_caches()
        for name in self.files:
            sys.modules.pop(f"{self.folder.name}.{name}", None)

    def text(self, name: str = "") -> str:
        """The last migration's file, from the class on."""
        found = [each for each in self.files if each.startswith(name)][-1]
        return re.sub(r"^.*?class Migration", "class Migration", (self.folder / f"{found}.py").read_text(), flags=re.S)


@contextmanager
def _stopped_in(phase: int, passed: bool) -> Iterator[None]:
    """In the block, ``drive()`` moves no change beyond a phase, in the direction in which it goes."""

    def is_there(each: Any) -> bool:
        number = each.change.phase
        return number <= phase if each.change.is_reverted else number >= phase

    def held_back(table: Any, ready: Any, state: Any, this: Any) -> list[Any]:
        return [*found(table, ready, state, this), *(each for each in ready if is_there(each))]

    def run_passes(each: Any, this: Any) -> None:
        if passed or not is_there(each):
            run(each, this)

    found, run = drive._held_back, drive._run_passes
    with mock.patch.object(drive, "_held_back", held_back), mock.patch.object(drive, "_run_passes", run_passes):
        yield


class Beginning:
    """The shared start of several histories: the first test runs the commands, and the others copy their result."""

    def __init__(self, begin: Callable[[History], object]) -> None:
        self._begin = begin
        self._files: dict[str, str] = {}
        self._items: contents.Contents = {}

    def __call__(self, app: History) -> None:
        """Start in an empty table; the test itself declares the models."""
        if self._files:
            for name, text in self._files.items():
                (app.folder / name).write_text(text)
            contents.restore(get_table(), self._items)
        else:
            self._begin(app)
            self._files = {path.name: path.read_text() for path in app.folder.glob("0*.py")}
            self._items = contents.read(get_table())
        app.start()  # the state of the first process would distinguish its test from the others


@contextmanager
def alone(beside: Sequence[str] = ()) -> Iterator[None]:
    """Hide most other apps, and other tests' models, in the block."""
    get_commands()  # Django caches the commands of all apps
    apps.set_available_apps((*BESIDE, *beside))
    try:
        with forgotten():
            registry._MODELS.clear()
            registry.invalidate()
            # Django renders every model of every app for each state of a migration.
            with mock.patch.dict(apps.all_models["dynamo_single"], clear=True):
                apps.clear_cache()
                yield
    finally:
        apps.unset_available_apps()


@contextmanager
def history(parent: Path, *, project: bool = False, beside: Sequence[str] = ()) -> Iterator[History]:
    """Run a history of the app alone, next to named apps, or in the whole project, and remove it afterwards."""
    folder = parent / f"histories_migrations_{next(_numbers)}"
    folder.mkdir()
    (folder / "__init__.py").touch()
    sys.path.insert(0, str(parent))
    try:
        with forgotten() if project else alone(beside), override_settings(MIGRATION_MODULES={"histories": folder.name}):
            yield History(folder)
    finally:
        sys.path.remove(str(parent))
        for name in [each for each in sys.modules if each.startswith(folder.name)]:
            del sys.modules[name]


Declare = Callable[..., Any]
