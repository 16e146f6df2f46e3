"""Find the private names of Django and PynamoDB that the code uses.

This finds imported underscore names, underscore names that our classes define or set although a base class of theirs
has them, and underscore attributes that our code does not define. It does not find undocumented public names, classes
created inside a function, or an attribute of theirs with the name of one of ours.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("dynamo_single", "accounts")
LIBRARIES = ("django", "pynamodb")

#: Underscore names that their libraries document: Django's of models, and Python's of named tuples.
DOCUMENTED = {"_meta", "_state", "_base_manager", "_default_manager", "_make", "_asdict", "_fields", "_replace"}
#: Their modules whose imported names are all documented.
DOCUMENTED_MODULES = {
    *("django", "django.apps", "django.conf", "django.contrib", "django.contrib.admin", "django.contrib.admin.apps"),
    *("django.contrib.admin.decorators", "django.contrib.admin.forms", "django.contrib.auth"),
    *("django.contrib.auth.backends", "django.contrib.auth.decorators", "django.contrib.auth.mixins"),
    *(
        "django.contrib.auth.signals",
        "django.contrib.auth.tokens",
        "django.dispatch",
        "django.contrib.auth.validators",
        "django.contrib.contenttypes.fields",
        "django.contrib.contenttypes.models",
    ),
    *("django.core", "django.core.cache", "django.core.checks"),
    *(
        "django.core.exceptions",
        "django.core.files",
        "django.core.files.storage",
        "django.core.mail",
        "django.core.management.base",
    ),
    *("django.core.paginator", "django.core.signals", "django.db", "django.db.models"),
    *("django.db.models.functions", "django.db.transaction", "django.forms", "django.http", "django.shortcuts"),
    *("django.template.loader", "django.template.response", "django.test", "django.urls", "django.utils"),
    *("django.utils.dateparse", "django.utils.deconstruct", "django.utils.decorators", "django.utils.encoding"),
    *("django.utils.html", "django.utils.http", "django.utils.module_loading", "django.utils.safestring"),
    *("django.utils.timezone", "django.utils.translation", "django.views.decorators.cache"),
    *("django.views.decorators.debug", "django.views.generic"),
    *("django.tasks", "django.tasks.backends.base", "django.tasks.exceptions", "django.tasks.signals"),
    *("pynamodb.attributes", "pynamodb.connection", "pynamodb.exceptions", "pynamodb.pagination"),
}
#: The documented names of their other modules.
DOCUMENTED_IMPORTS = {
    *("django.contrib.admin.models.LogEntry", "django.contrib.admin.options.InlineModelAdmin"),
    *("django.contrib.admin.options.StackedInline", "django.contrib.admin.options.TabularInline"),
    *("django.db.models.signals.m2m_changed", "django.template.TemplateDoesNotExist"),
    *("django.contrib.admin.sites.AdminSite", "django.contrib.sessions.backends.base.SessionBase"),
    *("django.core.cache.backends.base.BaseCache", "django.db.models.expressions.Expression"),
    *("django.db.models.expressions.Value", "django.db.models.fields.json.KeyTransform"),
    *("django.http.response.HttpResponseBase", "django.http.response.StreamingHttpResponse"),
    *("django.utils.functional.cached_property", "pynamodb.models.Model"),
    *("django.contrib.auth.models.PermissionsMixin", "django.core.management.execute_from_command_line"),
    *("django.contrib.auth.base_user.AbstractBaseUser", "django.contrib.auth.models.AbstractUser"),
    *("django.contrib.auth.models.Group", "django.test.utils.isolate_apps"),
    "django.core.serializers.json.DjangoJSONEncoder",
    *("django.contrib.auth.hashers.check_password", "django.contrib.auth.hashers.make_password"),
    *("django.core.validators.MaxLengthValidator", "django.core.validators.MinLengthValidator"),
    *("django.db.models.fields.files.FieldFile", "django.tasks.base.TaskError"),
    *("django.core.files.base.ContentFile", "django.core.validators.RegexValidator"),
    *(f"django.db.models.signals.{when}_{what}" for when in ("pre", "post") for what in ("delete", "init", "save")),
    *("django.db.models.signals.class_prepared", "django.db.models.signals.post_migrate"),
}
PRIVATE = re.compile(r"\b_[a-zA-Z]\w*")
NAMING = (
    *(ast.ImportFrom, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef, ast.arg),
    *(ast.Assign, ast.AnnAssign, ast.Attribute, ast.Call),
)
BY_NAME = {"getattr", "hasattr", "setattr", "delattr"}


@cache
def sources() -> dict[str, str]:
    """The text of each file, by its path without ``.py`` and, for the app's, without the app's name."""
    paths = sorted(path for package in PACKAGES for path in (ROOT / package).rglob("*.py"))
    return {
        str(path.relative_to(ROOT).with_suffix("")).removeprefix("dynamo_single/"): path.read_text() for path in paths
    }


@cache
def tree(file: str) -> ast.Module:
    """The code of a file."""
    return ast.parse(sources()[file])


@cache
def nodes() -> dict[str, list[ast.AST]]:
    """The nodes of the code of each file that can have a name in them: a third of all."""
    return {file: [node for node in ast.walk(tree(file)) if isinstance(node, NAMING)] for file in sources()}


def is_private(name: str) -> bool:
    """Return whether a name begins with one underscore."""
    return name.startswith("_") and not name.startswith("__") and len(name) > 1


def is_foreign(module: str | None) -> bool:
    """Return whether a module belongs to Django or PynamoDB."""
    return (module or "").split(".")[0] in LIBRARIES


def is_theirs(cls: type, name: str) -> bool:
    """Return whether one of their classes defines a method with this name."""
    return is_foreign(cls.__module__) and not name.startswith("__") and inspect.isfunction(vars(cls).get(name))


def found() -> dict[str, set[str]]:
    """Return each of their private names, with the files that use it."""
    names: dict[str, set[str]] = defaultdict(set)
    for name, file in (*_imported(), *_known_to_bases(), *_defined_nowhere()):
        if name not in DOCUMENTED:
            names[name].add(file)
    return names


def _imported() -> Iterator[tuple[str, str]]:
    for file, found in nodes().items():
        for node in found:
            if isinstance(node, ast.ImportFrom) and is_foreign(node.module):
                parts = [*(node.module or "").split("."), *(alias.name for alias in node.names)]
                yield from ((part, file) for part in parts if is_private(part))


def undocumented_imports() -> dict[str, set[str]]:
    """Return each of their names that is imported from an undocumented place, with the files that do so."""
    names: dict[str, set[str]] = defaultdict(set)
    for file, found in nodes().items():
        for node in found:
            if isinstance(node, ast.ImportFrom) and is_foreign(node.module) and node.module not in DOCUMENTED_MODULES:
                for alias in node.names:
                    if f"{node.module}.{alias.name}" not in DOCUMENTED_IMPORTS:
                        names[alias.name].add(file)
    return names


def _known_to_bases() -> Iterator[tuple[str, str]]:
    for cls in classes():
        for place, each in enumerate(cls.__mro__):
            file = _file_of(each)
            names = _named_in(file).get(each.__name__, frozenset()) if file in sources() else frozenset()
            for base in cls.__mro__[place:] if names else ():
                if is_foreign(base.__module__):
                    known = _known_in(base.__module__).get(base.__name__, frozenset())
                    yield from ((name, file) for name in names & known)


def _file_of(cls: type) -> str:
    return cls.__module__.replace(".", "/").removeprefix("dynamo_single/")


@cache
def classes() -> list[type]:
    """The classes at the top of our modules."""
    modules = [
        importlib.import_module(".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"))
        for package in PACKAGES
        for path in sorted((ROOT / package).rglob("*.py"))
        # One project has one set of the models of ``accounts``. A project installs the apps of ``celery``,
        # ``rest_framework`` and ``tasks``, and the packages of ``ninja`` and ``observability``.
        if not {"commands", "ready", "celery", "ninja", "observability", "rest_framework", "tasks"} & {*path.parts}
    ]
    return [
        each
        for module in modules
        for each in vars(module).values()
        if inspect.isclass(each) and each.__module__ == module.__name__
    ]


@cache
def _known_in(module: str) -> dict[str, frozenset[str]]:
    """The private names in the source of each class of a module of theirs; ``inspect`` would parse it for each."""
    text = Path(importlib.import_module(module).__file__ or "").read_text(encoding="utf-8")
    lines = text.splitlines()
    classes = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.ClassDef)]
    return {
        node.name: frozenset(PRIVATE.findall("\n".join(lines[node.lineno - 1 : node.end_lineno]))) for node in classes
    }


@cache
def _known_to_libraries() -> frozenset[str]:
    """The private names anywhere in the source of theirs."""
    folders = [Path(importlib.import_module(name).__file__ or "").parent for name in LIBRARIES]
    files = [path for folder in folders for path in folder.rglob("*.py") if "locale" not in path.parts]
    return frozenset().union(*(PRIVATE.findall(path.read_text(encoding="utf-8")) for path in files))


@cache
def _named_in(file: str) -> dict[str, frozenset[str]]:
    """The private names that each class of a file defines, declares, or sets on itself."""
    bodies = [node for node in nodes()[file] if isinstance(node, ast.ClassDef)]
    return {body.name: frozenset(_defined(ast.walk(body), declared=True)) for body in bodies}


def _defined_nowhere() -> Iterator[tuple[str, str]]:
    ours = {name for found in nodes().values() for name in _defined(found, declared=False)}
    for found in nodes().values():
        ours |= {name for body in _values(found) for name in _defined(ast.walk(body), declared=True)}
    for file, found in nodes().items():
        used = {name for node in found for name in _used(node)}
        yield from ((name, file) for name in (used - ours) & _known_to_libraries())


def _values(found: Iterable[ast.AST]) -> Iterator[ast.ClassDef]:
    """The classes whose annotations are fields."""
    for node in found:
        if isinstance(node, ast.ClassDef):
            made_by = [ast.unparse(each) for each in (*node.decorator_list, *node.bases)]
            if any("dataclass" in each or each == "Struct" for each in made_by):
                yield node


def _used(node: ast.AST) -> Iterator[str]:
    """The private name that a node takes from an object, by a dot or by ``getattr()`` and the like."""
    if isinstance(node, ast.Attribute) and is_private(node.attr):
        yield node.attr
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in BY_NAME:
        name = node.args[1]
        if isinstance(name, ast.Constant) and isinstance(name.value, str) and is_private(name.value):
            yield name.value


def _defined(found: Iterable[ast.AST], *, declared: bool) -> Iterator[str]:
    """Return the private names that nodes define; with ``declared``, include annotations."""
    for node in found:
        name = None
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            name = node.name
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = (
                node.targets if isinstance(node, ast.Assign) else [node.target] * (declared or node.value is not None)
            )
            single = (each for target in targets for each in getattr(target, "elts", [target]))
            yield from filter(is_private, map(_target, single))
        elif isinstance(node, ast.arg):
            name = node.arg
        if name and is_private(name):
            yield name


def _target(node: ast.expr) -> str:
    if isinstance(node, ast.Name):
        return node.id
    on_self = isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in {"self", "cls"}
    return node.attr if isinstance(node, ast.Attribute) and on_self else ""
