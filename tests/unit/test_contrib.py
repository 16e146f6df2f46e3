"""The core reaches each folder of ``contrib`` at one place."""

from __future__ import annotations

import re
from importlib import import_module
from importlib.util import find_spec

import pytest

from dynamo_single.exceptions import ConfigurationError
from tests.unit import foreign_names

#: The modules of the core that name a folder of ``contrib``.
PLACES = {
    "doctor": ["verification"],
    "document_forms": ["admin/editing/merging"],
    "logbook": ["admin/sites"],
    "table_admin": ["admin/sites"],
}
#: The folders that only a command names.
OF_COMMANDS = {"inspection", "sql_import"}
#: Folders that a project names in its settings or its own code.
CHOSEN = {"accounts", "celery", "hypothesis", "model_bakery", "ninja", "observability", "rest_framework", "tasks"}
#: Folders that are above the core, or in ``contrib`` themselves.
OTHERS = ("contrib/", "management/commands/")


def test_the_core_names_each_folder_at_one_place() -> None:
    """The admin imports it at first use, since imports only go down; ``verification`` is above ``contrib``."""
    found: dict[str, list[str]] = {}
    for module, text in foreign_names.sources().items():
        if not module.startswith(OTHERS):
            for name in {*re.findall(r"dynamo_single\.contrib\.(\w+)", text)} - CHOSEN:
                found.setdefault(name, []).append(module)
    assert found == PLACES


def test_every_folder_is_reached() -> None:
    """A folder that settings do not turn on, and that the core does not reach, would never run."""
    folders = {module.split("/")[1] for module in foreign_names.sources() if module.startswith("contrib/")}
    assert folders - {"__init__"} - CHOSEN == set(PLACES) | OF_COMMANDS
    commands = "".join(text for module, text in foreign_names.sources().items() if module.startswith(OTHERS[1]))
    assert all(f"dynamo_single.contrib.{name}" in commands for name in OF_COMMANDS)


@pytest.mark.skipif(find_spec("django.tasks") is not None, reason="this Django has tasks")
def test_tasks_name_the_django_that_they_need() -> None:
    with pytest.raises(ConfigurationError, match=r"Install Django 6\.1"):
        import_module("dynamo_single.contrib.tasks")
