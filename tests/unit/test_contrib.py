"""The core reaches each folder of ``contrib`` at one place."""

from __future__ import annotations

import re

from tests.unit import foreign_names

#: The modules of the core that name a folder of ``contrib``.
PLACES = {"document_forms": ["admin/editing/merging"], "logbook": ["admin/sites"], "table_admin": ["admin/sites"]}


def test_the_core_names_each_folder_at_one_place() -> None:
    """As text that is imported at first use: an import would run upwards, which the import contract refuses."""
    found: dict[str, list[str]] = {}
    for module, text in foreign_names.sources().items():
        if not module.startswith("contrib/"):
            for name in re.findall(r"dynamo_single\.contrib\.(\w+)", text):
                found.setdefault(name, []).append(module)
    assert found == PLACES


def test_every_folder_is_reached() -> None:
    """Nothing in a project's settings turns one on, so that one without a place would never run."""
    folders = {module.split("/")[1] for module in foreign_names.sources() if module.startswith("contrib/")}
    assert folders - {"__init__"} == set(PLACES)
