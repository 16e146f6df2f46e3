"""Load upstream's models with our attributes: an import hook for ``models.py`` of the apps that are run.

The hook compiles the unchanged source, but imports ``converted`` instead of Django's fields, models and managers. All
other modules are loaded unchanged.
"""

from __future__ import annotations

import ast
import importlib.abc
import importlib.machinery
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

#: Replaced imports of a converted module: ``{module: replacement}``.
REPLACED = {
    "django.db.models": "tests.upstream.converted",
    "django.contrib.auth.models": "tests.upstream.stock.users",
    "django.contrib.auth.base_user": "tests.upstream.stock.users",
}


#: The same for the other modules of an app that tests the admin.
REPLACED_IN_ADMINS = dict.fromkeys(
    (
        *("django.contrib.admin", "django.contrib.admin.options", "django.contrib.admin.sites"),
        *("django.contrib.admin.models", "django.contrib.auth.admin", "django.contrib.auth.models"),
        "django.contrib.contenttypes.models",
    ),
    "tests.upstream.stock.admins",
)


class ModelsLoader(importlib.abc.FileLoader, importlib.abc.SourceLoader):
    """Loads one module from its source, with the imports replaced; nothing compiled is kept."""

    def __init__(self, fullname: str, path: str, table: Mapping[str, str]) -> None:
        super().__init__(fullname, path)
        self.table = table

    def source_to_code(self, data: Any, path: Any, **options: Any) -> CodeType:  # type: ignore[override]  # wider
        """The code of the module with its imports replaced."""
        tree = ast.parse(data, path)
        code: CodeType = compile(ast.fix_missing_locations(Imports(self.table).visit(tree)), path, "exec")
        return code


class Imports(ast.NodeTransformer):
    """Replaces what a module imports."""

    def __init__(self, table: Mapping[str, str] = REPLACED) -> None:
        self.table = table

    def visit_ImportFrom(self, node: ast.ImportFrom) -> Any:
        """``from django.db import models`` and the like, name by name."""
        if node.module in self.table:
            node.module = self.table[node.module]
            return node
        kept, replaced = [], []
        for alias in node.names:
            name = self.table.get(f"{node.module}.{alias.name}")
            if node.level or name is None:
                kept.append(alias)
            else:
                package, _, module = name.rpartition(".")
                as_name = ast.alias(name=module, asname=alias.asname or alias.name)
                replaced.append(ast.copy_location(ast.ImportFrom(module=package, names=[as_name], level=0), node))
        node.names = kept
        return [*([node] if kept else []), *replaced]


class Finder(importlib.abc.MetaPathFinder):
    """Find the models of some packages, and all modules of the packages that test the admin."""

    def __init__(self, packages: Sequence[str], admins: Sequence[str]) -> None:
        self.models = tuple(f"{package}.models" for package in packages)
        self.admins = admins

    def find_spec(self, fullname: str, path: Any, target: ModuleType | None = None) -> Any:
        """Find ``<package>.models`` with its submodules, and the submodules of a package that tests the admin."""
        if any(fullname == models or fullname.startswith(f"{models}.") for models in self.models):
            table = REPLACED
        elif any(fullname.startswith(f"{package}.") for package in self.admins):
            table = REPLACED_IN_ADMINS
        else:
            return None
        spec = importlib.machinery.PathFinder.find_spec(fullname, path)
        if spec is not None and isinstance(spec.loader, importlib.machinery.SourceFileLoader):
            spec.loader = ModelsLoader(fullname, spec.loader.path, table)
        return spec


def install(folder: Path, packages: Sequence[str], admins: Sequence[str] = ()) -> None:
    """Make the packages in a folder importable; convert the models of some, and the admins of others."""
    sys.path.insert(0, str(folder))
    sys.meta_path.insert(0, Finder(packages, admins))
