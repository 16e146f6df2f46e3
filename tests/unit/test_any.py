"""Each ``Any`` in the signature of something public has a reason: Django's own signature, or one of the table below."""

from __future__ import annotations

import ast
import importlib
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import ModuleType

import pytest
from django.contrib.admin import AdminSite, ModelAdmin
from django.contrib.admin.options import InlineModelAdmin
from django.contrib.auth.backends import ModelBackend
from django.forms.widgets import ChoiceWidget

ROOT = Path(__file__).resolve().parents[2]
#: Modules with names that a project calls or subclasses, or objects that it gets.
PUBLIC = (
    "dynamo_single/*.py",
    "dynamo_single/contrib/accounts/*.py",
    "dynamo_single/contrib/accounts/l*/*.py",
    "dynamo_single/contrib/accounts/proofs/*.py",
    "dynamo_single/admin/*.py",
    "dynamo_single/auth/*.py",
    "dynamo_single/cache/*.py",
    "dynamo_single/orm/query/*.py",
    "dynamo_single/orm/model/*.py",
    "dynamo_single/orm/schema/attributes/*.py",
    "dynamo_single/orm/schema/references.py",
    "dynamo_single/evolution/operations/*.py",
)
#: Classes that are mixed into a class without being among its bases.
MIXED_INTO = {
    "dynamo_single.admin": (ModelAdmin, InlineModelAdmin, AdminSite),
    "dynamo_single.permissions": (ModelBackend,),
    "dynamo_single.permission_fields": (ChoiceWidget,),
}
#: Classes whose signatures bind their subclasses.
THEIRS = ("django.", "pynamodb.", "asgiref.")
#: The other allowed ``Any`` and their reasons, as ``Class.method(name: annotation)`` or ``(-> ...)``.
REASONS = {
    r"^(Related|RelatedManager|GroupsManager|MembersManager|End|EdgesManager|\w+Descriptor|Children|InKeyOrder)\.": (
        "the objects, managers and querysets of a model that is known at run time only"
    ),
    r"^(KeptManyToMany|Groups|\w*Permissions?|Kept|Keys|Holders\w*|Granted\w*)(Manager|Descriptor)?\.": (
        "the objects, managers and querysets of a model that is known at run time only"
    ),
    r"^\.(name_of|change_kept)": ("the objects, managers and querysets of a model that is known at run time only"),
    r"\((obj|instance|user|self|model_instance|near|pk): ": "an object of a model that is known at run time only",
    r"\((model|cls|base|owner|shape|app_config|apps): ": "a class that is known at run time only",
    r"\((modeladmin|model_admin|changelist|form|formsets?|form_class|inline|fieldsets|extra_context|options): ": (
        "the admin's own, which django-stubs has generic over the model, or as anything"
    ),
    r"\((message|response): ": ("the admin's own, which django-stubs has generic over the model, or as anything"),
    r"\((field|deletion|queryset|from_queryset|instances|unique_checks|view|get_response|defaults|create_defaults): ": (
        "Django's own, generic over a model that is known at run time only, or of any type"
    ),
    r"\((value|values|inner|version|item|reasons|failed|declared|called|claims|params|condition|convert|function): ": (
        "a value of whatever type an attribute, an answer or a setting has"
    ),
    r"\((choices|validators|upload_to): ": "values, and functions of values, of any type, as Django's fields take them",
    r"\(\*\*?(args|kwargs|options|changes|more|identifiers|answer|objs|querysets): ": (
        "handed on to what checks it, by name"
    ),
    r"\.(prepare|encode|decode|clean|current|value_at|from_text|missing_value)\(-> ": "a value of an attribute",
    r"\.(attribute_values|content_type|id|reference_field)\(-> ": "what an attribute of that name holds",
    r"^\.(references|referenced_models|cascading_parents|references_to|field_at|field_of|end_of)\(-> ": (
        "fields of models that are known at run time only"
    ),
    r"^\.admin_of\(-> ": "the admin of a model that is known at run time only",
    r"\.make_field\(-> ": "a field of Django's, whatever it takes and gives",
    r"\.(read|aread_related|aggregate|by_pk|check|a?total|current_author)\(-> ": "rows or objects that are read",
    r"\.(read_values|signed|items|values|subquery_values|get_decoded)\(-> ": "values by name, of any type",
    r"\.(refused_form|hide_values|with_values|log_entries|(write|deletion)_entry|permanent_\w+|children_of)\(-> ": (
        "classes and lists that are made for one page of the admin"
    ),
    r"(^\.(without_secrets|list_arguments|mask_column)|\.log_deletion)\(-> ": (
        "classes and lists that are made for one page of the admin"
    ),
    r"^\.with_subqueries_replaced\(-> ": "several types, of which the caller knows which one it is given",
    r"^\.(atomic|identifier_label|(deleted_)?objects|save_options|deleted_with)\(-> ": (
        "several types, of which the caller knows which one it is given"
    ),
    r"^(LazyModule|Extract|UserChangeForm|CursorListMixin|LogEntry|LogEntryManager|CopiedAttribute|PynamoDBHooks)\.": (
        "a module, a form, a document or a library that is known at run time only"
    ),
    r": .*(Page|Paginator|ModelAdmin|Field|BaseModelForm)\[Any|Paginator\[Any\]\)$": (
        "a generic class of Django's, whatever it is of"
    ),
}


@cache
def signatures(path: Path) -> list[tuple[str, str, str]]:
    """Return the classes and functions of a file with an ``Any``: class, function and annotation."""

    def within(node: ast.AST, classes: str) -> Iterator[tuple[str, str, str]]:
        for each in ast.iter_child_nodes(node):
            if isinstance(each, ast.ClassDef) and not each.name.startswith("_"):
                yield from within(each, f"{classes}.{each.name}".lstrip("."))
            elif isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef) and not re.match(r"_(?!_)", each.name):
                yield from ((classes, each.name, said) for said in _said(each))

    return list(within(ast.parse(path.read_text()), ""))


def _said(function: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[str]:
    given = function.args
    stars = {given.vararg: "*", given.kwarg: "**"}
    for each in [*given.posonlyargs, *given.args, *given.kwonlyargs, *filter(None, stars)]:
        if each.annotation is not None and "Any" in (text := ast.unparse(each.annotation)):
            yield f"{stars.get(each, '')}{each.arg}: {text}"
    if function.returns is not None and "Any" in (text := ast.unparse(function.returns)):
        yield f"-> {text}"


def is_theirs(module: ModuleType, classes: str, function: str) -> bool:
    """Return whether a method overrides a library's, which determines its signature."""
    found: object = module
    for name in filter(None, classes.split(".")):
        found = getattr(found, name)
    bases = found.__mro__ if isinstance(found, type) else ()
    theirs = [base for base in bases if base.__module__.startswith(THEIRS)]
    into = [each for name, classes_of in MIXED_INTO.items() if module.__name__.startswith(name) for each in classes_of]
    return any(function in vars(base) for base in theirs) or any(hasattr(each, function) for each in into if classes)


def without_reason(path: Path) -> list[str]:
    """Return the signatures of a file with an ``Any`` without a known reason."""
    module = importlib.import_module(".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"))
    return [
        f"{classes}.{function}({said})"
        for classes, function, said in signatures(path)
        if not is_theirs(module, classes, function)
        and not any(re.search(reason, f"{classes}.{function}({said})") for reason in REASONS)
    ]


@pytest.mark.parametrize("pattern", PUBLIC)
def test_each_any_of_a_public_signature_has_a_reason(pattern: str) -> None:
    """A project's calls have types, unless Django or the model at run time determines them."""
    paths = sorted(ROOT.glob(pattern))
    assert paths
    assert {str(path.relative_to(ROOT)): found for path in paths if (found := without_reason(path))} == {}


def test_each_reason_is_one_of_some_signature() -> None:
    """An unused reason is removed."""
    paths = (path for pattern in PUBLIC for path in ROOT.glob(pattern))
    found = [f"{classes}.{function}({said})" for path in paths for classes, function, said in signatures(path)]
    assert [reason for reason in REASONS if not any(re.search(reason, each) for each in found)] == []
