"""A small project with old and new code in two folders, and its processes, which are stopped and killed."""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from dynamo_single.table import Request, Table
from tests import children
from tests.strict import MOST_SKEW, Strict, strict

ROOT = Path(__file__).resolve().parents[3]
#: The lead of the server's clock in seconds: a lease at a local endpoint plus more than the margin.
LEAP = 4
MOST_AHEAD = MOST_SKEW - 60
SETTINGS = """
import os
SECRET_KEY = "only for tests"
DATABASES = {"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": os.environ["SQL"]}}
DYNAMO_SINGLE = {"default": os.environ["DYNAMO_TEST_URL"]}
INSTALLED_APPS = ["dynamo_single", "shop"]
USE_TZ = True
"""
MODELS = """
from dynamo_single import models

class Note(models.Model):
    note_id = models.UnicodeAttribute()
    BODY = models.UnicodeAttribute()
    board = models.UnicodeAttribute()
    title = models.UnicodeAttribute()
    code = models.UnicodeAttribute(UNIQUE)
    rank = models.IntegerAttribute(default=0)
    MORE

    class Keys:
        primary = models.Key("NOTE#{note_id}", "#METADATA")
        by_board = models.IndexKey("gs1", BOARD)
        KEY
"""
MIGRATION = """
from django.db import migrations as django
from dynamo_single import migrations, models

class Migration(django.Migration):
    initial = INITIAL
    dependencies = [DEPENDENCIES]
    operations = [OPERATIONS]
"""
INITIAL = """
    migrations.AddModel(
        name="Note", item_type="Note", primary=models.Key("NOTE#{note_id}", "#METADATA"),
        attributes={
            **{
                name: migrations.StoredAttribute("UnicodeAttribute", name)
                for name in ("note_id", "body", "board", "title", "code")
            },
            "rank": migrations.StoredAttribute("IntegerAttribute", "rank", absent={"N": "0"}),
        },
        keys={"by_board": models.IndexKey("gs1", "BOARD#{board}", "{note_id}")},
    ),
"""
OLD = {
    "BODY": "body",
    "UNIQUE": "",
    "MORE": "",
    "BOARD": '"BOARD#{board}", "{note_id}"',
    "KEY": "",
}
#: Changes by name: the new declaration and the operation. The last two reject old code.
CHANGES: dict[str, tuple[dict[str, str], str]] = {
    "rename": ({"BODY": "text"}, 'migrations.RenameAttribute("Note", "body", "text", stored="text")'),
    "key": (
        {"KEY": 'by_title = models.IndexKey("gs2", "TITLE#{title}", "{note_id}")'},
        'migrations.AddKey("Note", "by_title", models.IndexKey("gs2", "TITLE#{title}", "{note_id}"))',
    ),
    "alter": (
        {"BOARD": '"BOARD", "{board}#{note_id}"'},
        'migrations.AlterKey("Note", "by_board", models.IndexKey("gs1", "BOARD", "{board}#{note_id}"))',
    ),
    "unique": ({"UNIQUE": "unique=True"}, 'migrations.AddUnique("Note", rule=migrations.UniqueRule(("code",)))'),
    "default": (
        {"MORE": 'colour = models.UnicodeAttribute(default="red")'},
        'migrations.AddAttribute("Note", "colour", '
        'migrations.StoredAttribute("UnicodeAttribute", "colour", absent={"S": "red"}))',
    ),
}
REFUSED = {"unique", "default"}
SECOND = "shop.0002_second"


class Project:
    """Old and new code of one project on disk, and the processes that run it in front of a strict server."""

    def __init__(self, folder: Path, table: Table, server: Strict, changes: Sequence[str], transport: str) -> None:
        self.folder, self.table, self.server, self.changes = folder, table, server, changes
        self.url = f"{server.url.replace('http', 'dynamodb')}/{table.name}?region=us-east-1&indexes=gs1,gs2"
        self.url += f"&transport={transport}"
        self.workers: list[Worker] = []
        self.runs: list[Migrate] = []
        self._turn = threading.Lock()
        new = {**OLD, **{name: text for each in changes for name, text in CHANGES[each][0].items()}}
        for code, parts in (("old", OLD), ("new", new)):
            migrations = folder / code / "shop" / "migrations"
            migrations.mkdir(parents=True)
            (migrations / "__init__.py").touch()
            (folder / code / "shop" / "__init__.py").touch()
            (folder / code / "project_settings.py").write_text(SETTINGS)
            models = MODELS
            for name, text in parts.items():
                models = models.replace(name, text)
            (folder / code / "shop" / "models.py").write_text(models)
            self._write_migration(migrations / "0001_initial.py", "", INITIAL)
        operations = ",\n".join(CHANGES[each][1] for each in changes)
        self._write_migration(folder / "new/shop/migrations/0002_second.py", '("shop", "0001_initial")', operations)

    def _write_migration(self, path: Path, dependencies: str, operations: str) -> None:
        text = MIGRATION.replace("INITIAL", str(not dependencies)).replace("DEPENDENCIES", dependencies)
        path.write_text(text.replace("OPERATIONS", operations))

    def environment(self, code: str) -> dict[str, str]:
        """The environment of a process."""
        return os.environ | {
            "DJANGO_SETTINGS_MODULE": "project_settings",
            "PYTHONPATH": f"{self.folder / code}{os.pathsep}{ROOT}",
            "PYTHONDONTWRITEBYTECODE": "1",
            "DYNAMO_TEST_URL": self.url,
            "SQL": str(self.folder / "one.sqlite3"),
        }

    def migrate(self, code: str = "new", *options: str) -> Migrate:
        """Begin to run ``migrate``."""
        self.runs.append(Migrate(self, code, options))
        return self.runs[-1]

    def worker(self, code: str, name: str) -> Worker:
        """Begin a process that writes."""
        self.workers.append(Worker(self, code, name))
        return self.workers[-1]

    def leap(self) -> None:
        """Let more than a lease and its margin pass, by the server's clock.

        botocore does not correct its clock: new processes are rejected if the server is more than five minutes ahead.
        """
        with self._turn:
            if self.server.ahead + LEAP < MOST_AHEAD:
                self.server.ahead += LEAP

    def stored(self) -> list[dict[str, Any]]:
        """All items of the table."""
        return [item for page in self.table.pages(Request("Scan", {"ConsistentRead": True})) for item in page["Items"]]

    def presence(self, worker: Worker) -> list[dict[str, Any]]:
        """The keys of a process's presence items."""
        keys = [{"pk": item["pk"], "sk": item["sk"]} for item in self.stored()]
        return [
            key for key in keys if key["sk"]["S"].startswith("PROCESS#") and f"#{worker.process.pid}#" in key["sk"]["S"]
        ]

    def close(self) -> None:
        """End what still runs."""
        for each in (*self.runs, *self.workers):
            each.kill()


@contextmanager
def project_for(folder: Path, table: Table, changes: Sequence[str], transport: str = "direct") -> Iterator[Project]:
    """Return a project with an applied first migration."""
    host, _, port = str(table.settings.endpoint_url).removeprefix("http://").partition(":")
    with strict((host, int(port))) as server:
        project = Project(folder, table, server, changes, transport)
        try:
            assert project.migrate("old").result()[0] == 0
            project.worker("old", "seed").do("seed", 3)
            yield project
        finally:
            project.close()


class Migrate:
    """A run of ``migrate``."""

    def __init__(self, project: Project, code: str, options: Sequence[str]) -> None:
        self.project, self.said = project, list[str]()
        arguments = ["-m", "django", "migrate", *options]
        self.process = children.Dialogue(
            arguments, cwd=project.folder / code, env=project.environment(code), stderr=sys.__stderr__
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        while line := self.process.answer():
            self.said.append(line.rstrip())

    @property
    def is_running(self) -> bool:
        """Return whether the process is still running."""
        return self._reader.is_alive()

    def result(self, *, leaps: bool = False) -> tuple[int, str]:
        """Return the exit code and the output; with ``leaps``, the server's clock runs ahead."""
        while self._reader.is_alive():
            self._reader.join(0.2)
            if leaps:
                self.project.leap()
        return self.process.close(), "\n".join(self.said)

    def kill(self) -> None:
        """End it at once, by the system."""
        self.process.kill()
        self._reader.join()
        self.process.close()


class Worker:
    """A writing process: its commands, and its acknowledged writes."""

    def __init__(self, project: Project, code: str, name: str) -> None:
        self.project, self.code, self.name = project, code, name
        #: The possible stored values by identifier: ``None`` for a missing one, and two values for an unknown outcome.
        self.possible: dict[str, list[Any]] = {}
        self.acknowledged = 0
        self.refusals: list[str] = []
        self.faults: list[str] = []
        self.added = self.maybe_added = 0
        self.stopped = threading.Event()
        self.idle = threading.Event()
        arguments = ["-m", "tests.contract.item_migrations.stopped_worker", name]
        self.process = children.Dialogue(
            arguments, cwd=project.folder / code, env=project.environment(code), stderr=sys.__stderr__
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        while line := self.process.answer():
            what, *values = json.loads(line)
            getattr(self, f"_{what}")(*values)

    def _idle(self) -> None:
        self.idle.set()

    def _stops(self) -> None:
        self.stopped.set()

    def _fault(self, text: str) -> None:
        self.faults.append(text)
        self.idle.set()

    def _ok(self, changes: dict[str, Any], added: int) -> None:
        self.acknowledged += 1
        self.added += added
        for pk, values in changes.items():
            self.possible[pk] = [values]

    def _refused(self, text: str) -> None:
        self.refusals.append(text)

    def _unknown(self, changes: dict[str, Any], added: int) -> None:
        self.maybe_added += added
        for pk, values in changes.items():
            self.possible[pk] = [*self.possible.get(pk, [None]), values]

    def tell(self, *words: Any) -> None:
        """Let it do something; ``wait()`` until it has."""
        self.idle.clear()
        self.process.tell(json.dumps(words))

    def wait(self) -> None:
        """Wait until the process has completed its command."""
        assert self.idle.wait(60), f"{self.name} does not answer: {self.faults}"
        assert self.faults == [], "\n".join(self.faults)

    def do(self, *words: Any) -> None:
        """Let it do something, and wait."""
        self.tell(*words)
        self.wait()

    def wait_until_stopped(self) -> None:
        """Wait for the state that a signal has caused."""
        status = Path(f"/proc/{self.process.pid}/stat")
        while status.read_text().rpartition(")")[2].split()[0] != "T":
            time.sleep(0.001)

    def stop(self) -> None:
        """Stop it wherever it is."""
        self.process.send_signal(signal.SIGSTOP)
        self.wait_until_stopped()

    def go_on(self) -> None:
        """Let the process continue."""
        self.process.send_signal(signal.SIGCONT)

    def kill(self) -> None:
        """End it at once."""
        self.process.kill()
        self._reader.join()
        self.process.close()


def assert_whole(project: Project) -> None:
    """Assert that all acknowledged writes are stored, only in the new form, in each list, with exact claims."""
    workers = [each for each in project.workers if each.code in ("old", "new")]
    assert [each.faults for each in workers if each.faults] == []
    items = project.stored()
    notes = {item["note_id"]["S"]: item for item in items if item.get("itemType") == {"S": "Note"}}
    text = "text" if "rename" in project.changes else "body"
    possible = {pk: values for each in workers for pk, values in each.possible.items()}
    for pk, values in possible.items():
        item = notes.get(pk)
        found = None if item is None else found_in(item, text)
        assert found in values, f"{pk} is {found}, and not one of {values}"
    assert notes.keys() - possible.keys() <= {"sum"}
    if "sum" in notes:
        added, maybe = (sum(getattr(each, name) for each in workers) for name in ("added", "maybe_added"))
        assert added <= int(notes["sum"]["rank"]["N"]) <= added + maybe
    for pk, item in notes.items():
        assert index_keys(item) == wanted_keys(item, project.changes), pk
        assert ("body" in item) == (text == "body"), f"{pk} has the old name: {item}"
        assert ("colour" in item) == ("default" in project.changes), f"{pk}: {item}"
    claims = [item for item in items if item["pk"]["S"].startswith("UNIQUE#")]
    wanted = [item["code"]["S"] for item in notes.values()] if "unique" in project.changes else []
    assert sorted(item["pk"]["S"].rpartition("#")[2] for item in claims) == sorted(wanted)
    reader = project.worker("new", "reader")
    reader.do("check", sorted(notes))
    reader.kill()
    project.workers.remove(reader)


def found_in(item: dict[str, Any], text: str) -> dict[str, Any]:
    """The values of an item as workers name them."""
    names = {"body": text, "board": "board", "title": "title", "code": "code"}
    values = {name: item.get(stored, {}).get("S") for name, stored in names.items()}
    return {**values, "rank": int(item.get("rank", {"N": "0"})["N"])}


def index_keys(item: dict[str, Any]) -> dict[str, str]:
    """The keys on indexes that an item has."""
    return {name: value["S"] for name, value in item.items() if name.startswith("gs")}


def wanted_keys(item: dict[str, Any], changes: Sequence[str]) -> dict[str, str]:
    """The keys that it should have."""
    pk, board, title = (item[name]["S"] for name in ("note_id", "board", "title"))
    wanted = {"gs1pk": f"BOARD#{board}", "gs1sk": pk}
    if "alter" in changes:
        wanted = {"gs1pk": "BOARD", "gs1sk": f"{board}#{pk}"}
    return {**wanted, "gs2pk": f"TITLE#{title}", "gs2sk": pk} if "key" in changes else wanted
