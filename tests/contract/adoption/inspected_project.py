"""A project that ``dynamo_inspect`` writes: one app per table, checked and listed by a child process."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from io import StringIO
from pathlib import Path
from typing import Any

from django.core.management import call_command

from tests import children
from tests.contract.adoption.other_programs import OtherTable

ROOT = Path(__file__).resolve().parents[3]
SETTINGS = '''"""Written by the tests."""

SECRET_KEY = "tests-only"
USE_TZ = True
INSTALLED_APPS = ["django.contrib.contenttypes", "django.contrib.auth", "dynamo_single", {apps}]
DATABASES = {{"default": {{"ENGINE": "dynamo_single.backend"}}}}
DEFAULT = {default!r}
DYNAMO_SINGLE = {{"default": DEFAULT}}
'''
#: The child's output: the check's messages by app, and the objects of each table, written again.
SCRIPT = """
import json, sys
import django
django.setup()
from django.apps import apps
from django.core.checks import run_checks
from dynamo_single.table import get_table

messages = {}
for message in run_checks():
    if not message.is_silenced():
        label = getattr(getattr(message.obj, "_meta", None), "app_label", "")
        messages.setdefault(label, []).append(str(message))
found = {}
for config in apps.get_app_configs():
    if not config.name.startswith("adopted_"):
        continue
    listed, failed = {}, ""
    try:
        for model in config.get_models():
            objects = [*model.objects.allow_scan()]
            listed[model.__name__] = len(objects)
            fields = [each for each in model._meta.concrete_fields if getattr(each, "attribute", None) is not None]
            names = [each.attname for each in fields if type(each.attribute).__name__ != "VersionAttribute"]
            for each in objects:
                each.save()
            if "--write" in sys.argv:
                for each in objects:
                    values = {name: getattr(each, name) for name in names}
                    each.delete()
                    model.objects.create(**values)
    except Exception as error:
        import traceback
        failed = traceback.format_exc()
    found[config.name.removeprefix("adopted_")] = {"listed": listed, "failed": failed}
print("RESULT " + json.dumps({"messages": messages, "found": found}))
"""


class InspectedProject:
    """The project in a folder."""

    def __init__(self, folder: Path, endpoint: str) -> None:
        self.folder = folder
        default = {"TABLE_NAME": "single-table", "REGION": "us-east-1", "ENDPOINT_URL": endpoint}
        self._default = default
        self._apps: dict[str, str] = {}

    def add(self, table: OtherTable, **options: Any) -> str:
        """Write the app of a table by the command, and return the source of its models."""
        text = inspected(table.name, **options)
        return self.write(table.name, text)

    def write(self, name: str, text: str) -> str:
        """Write the app for a source of the command."""
        alias = name.replace("-", "_")
        settings, _, models = text.partition("# models.py\n")
        app = self.folder / f"adopted_{alias}"
        app.mkdir()
        (app / "__init__.py").write_text("")
        (app / "models.py").write_text(models)
        self._apps[f"adopted_{alias}"] = settings
        return models

    def run(self, *arguments: str) -> Mapping[str, Any]:
        """Check the project and list all objects in a child process; with ``--write``, write them again."""
        head = SETTINGS.format(apps=", ".join(map(repr, self._apps)), default=self._default)
        parts = [f"{text}\nALIASES = DYNAMO_SINGLE\nFOUND.update(ALIASES)" for text in self._apps.values()]
        body = "\n".join(("FOUND = dict(DYNAMO_SINGLE)", *parts, "DYNAMO_SINGLE = FOUND"))
        (self.folder / "adopting_settings.py").write_text(f"{head}\n{body}\n")
        (self.folder / "adopting.py").write_text(SCRIPT)
        environment = {**os.environ, "DJANGO_SETTINGS_MODULE": "adopting_settings"}
        environment["PYTHONPATH"] = os.pathsep.join((str(self.folder), str(ROOT)))
        ended = children.run(["adopting.py", *arguments], cwd=self.folder, env=environment)
        assert ended.returncode == 0, ended.stderr
        (line,) = (each for each in ended.stdout.splitlines() if each.startswith("RESULT "))
        result: Mapping[str, Any] = json.loads(line.removeprefix("RESULT "))
        return result


def inspected(*arguments: str, **options: Any) -> str:
    """Return what the command prints."""
    out = StringIO()
    call_command("dynamo_inspect", *arguments, stdout=out, **options)
    return out.getvalue()


def without(items: Iterable[Mapping[str, Any]], names: Iterable[str]) -> list[dict[str, Any]]:
    """Return items without some attributes."""
    left_out = set(names)
    return [{name: value for name, value in item.items() if name not in left_out} for item in items]
