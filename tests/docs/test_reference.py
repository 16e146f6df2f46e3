"""The tables of the reference pages contain all names, and no others."""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from typing import Any

import pytest
from django.core.management import load_command_class
from django.core.management.base import BaseCommand
from django.db.migrations.operations.base import Operation
from msgspec.structs import fields

from dynamo_single import conf, exceptions, migrations, models
from dynamo_single.conf import shapes
from dynamo_single.orm.model import metaclass
from dynamo_single.orm.query.queryset import REFUSED
from dynamo_single.table import names as physical
from tests.docs import lookup_table
from tests.docs.pages import ROOT, code, table
from tests.packages import page as packages

REFERENCE = ROOT / "docs/reference"
COMMON_OPTIONS = {"verbosity", "settings", "pythonpath", "traceback", "no_color", "force_color", "skip_checks"}


def names(page: str, heading: str, column: int = 0) -> list[str]:
    """The names that a column of a table sets in code, without parentheses."""
    found = [name for row in table(REFERENCE / page, heading) for name in code(row[column])]
    return [name.removesuffix("()") for name in found]


def test_every_method_of_a_queryset_is_listed_once() -> None:
    """The tables of the querysets page have each public name of ``QuerySet``, Django's included."""
    headings = (
        "Choosing objects",
        "Reading",
        "Writing",
        "Asynchronous methods",
        "Unsupported methods",
        "Methods for Django",
    )
    listed = [name for heading in headings for name in names("querysets.md", heading)]
    assert sorted(listed) == sorted(name for name in dir(models.QuerySet) if not name.startswith("_"))


def test_the_refused_methods_are_listed_as_such() -> None:
    """The page lists exactly the unsupported methods, with the words of the error."""
    rows = table(REFERENCE / "querysets.md", "Unsupported methods")
    said = {name.removesuffix("()"): row[1] for row in rows for name in code(row[0])}
    assert {name: REFUSED[name] for name in said} == {name: text.rstrip(".") for name, text in said.items()}
    assert set(said) == {*REFUSED}


def test_the_lookups_are_as_the_planner_answers_them() -> None:
    """Each cell of the page is the planner's result for the lookup and the type."""
    assert lookup_table.shown() == lookup_table.rows()


def errors() -> dict[str, type[Exception]]:
    """The error classes, by name, in the order of the module."""
    found = inspect.getmembers(exceptions, inspect.isclass)
    return {name: each for name, each in found if each.__module__ == exceptions.__name__}


def test_every_error_is_listed_with_what_it_derives_from() -> None:
    """The errors page has each class, and the classes that ``except`` may name instead."""
    rows = {code(row[0])[0]: code(row[1]) for row in table(REFERENCE / "errors.md", "All errors")}
    assert set(rows) == set(errors())
    for name, bases in rows.items():
        ours = exceptions.DynamoSingleError
        found = [base for base in errors()[name].__bases__ if base not in (ours, Exception)]
        # A name that only Django 6.1 has is described by its base class.
        expected = [base.__base__ if base.__name__ == "FieldFetchBlocked" else base for base in found]
        assert bases == [base.__name__ for base in expected], name


def test_every_check_is_listed() -> None:
    """The checks page has each identifier that the code gives out."""
    sources = (ROOT / "dynamo_single").rglob("*.py")
    given = {found for path in sources for found in re.findall(r'"(?:dynamo_single\.)?([EW]\d{3})"', path.read_text())}
    assert sorted(names("checks.md", "All checks")) == sorted(f"dynamo_single.{each}" for each in given)


def test_every_setting_is_listed_with_its_default() -> None:
    """The settings page has each key of ``DYNAMO_SINGLE``, its default, and whether a URL can give it."""
    rows = {code(row[0])[0]: row for row in table(REFERENCE / "settings.md", "Keys")}
    assert set(rows) == set(conf._READERS)
    defaults = {field.name.upper(): field.default for field in fields(conf.TableSettings)}
    del defaults["ALIAS"], defaults["SHAPE"]
    own = shapes.OWN
    defaults |= {"PARTITION_KEY": "pk", "SORT_KEY": "sk", "INDEXES": list(conf.DEFAULT_INDEXES), "KEY": "pk"}
    defaults |= {"TYPE_ATTRIBUTE": own.type_attribute, "TTL_ATTRIBUTE": own.ttl_attribute}
    defaults |= {"RAW_KEYS": own.raw_keys, "FOREIGN": own.foreign}
    for name, default in defaults.items():
        row = rows.pop(name)
        assert code(row[1]) == ([name.lower()] if name in conf._URL_OPTIONS else []), name
        if name in {"TABLE_NAME", "REGION"}:
            assert "required" in row[2]
        else:
            assert code(row[2]) == [repr(default).replace("'", '"')], name
    assert rows == {}


def test_every_threshold_is_listed_with_its_default() -> None:
    """The settings page has each key of ``DYNAMO_SINGLE_COSTS`` with its default."""
    rows = {code(row[0])[0]: code(row[1])[0] for row in table(REFERENCE / "settings.md", "Costs")}
    names = {field.name.upper(): repr(field.default) for field in fields(conf.CostSettings)}
    assert rows == {name: default for name, default in names.items() if name in conf._COST_READERS}
    assert set(rows) == set(conf._COST_READERS)


def attribute_classes() -> dict[str, Any]:
    """The attributes that a model can declare, by class name."""
    return {
        name: getattr(models, name) for name in models.__all__ if name.endswith("Attribute") and name != "Attribute"
    }


def test_every_attribute_is_listed_with_its_type() -> None:
    """The attributes page has each class, DynamoDB's type, and whether a key can hold it."""
    rows = {code(row[0])[0]: row for row in table(REFERENCE / "attributes.md", "All attributes")}
    assert set(rows) == set(attribute_classes())
    for name, attribute in attribute_classes().items():
        if name in {
            "ReferenceAttribute",
            "OneToOneAttribute",
            "AuthorAttribute",
            "CopiedAttribute",
            "ExtractedAttribute",
        }:
            continue  # as the other model's, or as the stored form
        assert code(rows[name][2]) == [attribute.attr_type], name
        assert rows[name][3] == ("yes" if attribute.key_kind else "no"), name


def test_every_option_of_an_attribute_is_listed() -> None:
    """The attributes page has each option that all attributes take."""
    signature = inspect.signature(models.Attribute.__init__)
    assert names("attributes.md", "Options of every attribute") == list(signature.parameters)[1:]


def test_the_options_of_meta_are_listed() -> None:
    """The models page contains this app's options, and the supported ones of Django."""
    assert set(names("models.md", "Options of `Meta`")) == metaclass.OWN_OPTIONS
    assert set(names("models.md", "Fixed options")) == set(metaclass.DECIDED)


def test_the_physical_names_are_listed() -> None:
    """The stored layout has each name that the app writes."""
    written = {value for name, value in vars(physical).items() if name.isupper() and not name.endswith("PREFIX")}
    unused = {physical.CREATED_BY, physical.VERSION, physical.CLAIM_ITEM_TYPE, physical.LOG_OF_OBJECT}
    # Values, and an attribute of the section about migrations.
    unused |= {physical.MIGRATIONS, physical.CHECKPOINT_ITEM_TYPE, physical.MIGRATION_ITEM_TYPE, physical.APPLIED_AT}
    listed = {*names("stored-layout.md", "Attributes of an item"), *names("stored-layout.md", "Unique claims")}
    assert written - unused <= listed


@pytest.mark.parametrize(
    "command",
    [
        *("dynamo_setup", "dynamo_local", "dynamo_status", "dynamo_verify", "dynamo_rebuild", "dynamo_shards"),
        "dynamo_import_sql",
    ],
)
def test_the_options_of_a_command_are_listed(command: str) -> None:
    """The commands page has each option of our commands."""
    loaded: BaseCommand = load_command_class("dynamo_single", command)
    actions = loaded.create_parser("manage.py", command)._actions
    options = {
        (a.option_strings or [a.dest])[-1] for a in actions if a.dest not in {*COMMON_OPTIONS, "help", "version"}
    }
    assert set(names("commands.md", command)) == options


def operations() -> dict[str, Any]:
    """The operations that a migration file can name."""
    public = {name: getattr(migrations, name) for name in migrations.__all__}
    return {name: each for name, each in public.items() if issubclass(each, Operation)}


def test_the_operations_are_listed_with_what_is_done_when() -> None:
    """Each of them in one row."""
    assert sorted(names("migrations.md", "Effects of each operation")) == sorted(operations())


def test_the_operations_are_listed_with_their_arguments() -> None:
    """The arguments are those of the signature, in order."""
    listed = {
        name: [argument.partition("=")[0] for argument in code(row[1])]
        for row in table(REFERENCE / "migrations.md", "Arguments")
        for name in code(row[0])
    }
    signatures = {name: [*inspect.signature(each.__init__).parameters][1:] for name, each in operations().items()}
    assert listed == signatures


def test_the_options_that_migrate_has_besides_are_listed() -> None:
    """And ``--fake-initial``, which means more than Django's."""
    parsers = (load_command_class(app, "migrate").create_parser("manage.py", "migrate") for app in _BOTH)
    ours, djangos = ({each for a in parser._actions for each in a.option_strings} for parser in parsers)
    assert set(names("migrations.md", "Commands")) == (ours - djangos) | {"--fake-initial"}


_BOTH = ("dynamo_single", "django.core")


@pytest.mark.parametrize("result", packages.TITLES)
def test_packages_of_each_table_are_its_cases(result: str) -> None:
    """The versions are those of ``make test-packages``, which installs the packages."""
    rows = table(REFERENCE / "packages.md", packages.TITLES[result][0])
    assert [row[0].split()[0] for row in rows] == [each.package for each in packages.cases() if each.result == result]


def test_every_page_of_the_reference_is_checked_here_or_runs() -> None:
    """A page without a compared table has at least one block that runs."""
    here = "".join(path.read_text() for path in Path(__file__).parent.glob("test_reference*.py"))
    pages = [page for page in REFERENCE.glob("*.md") if f'{page.name}"' not in here]
    assert [page.name for page in pages if "```python" not in page.read_text()] == []
