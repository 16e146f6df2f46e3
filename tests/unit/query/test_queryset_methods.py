"""Every public method of Django's QuerySet and Manager is ours, inherited on purpose, or refused by name."""

from __future__ import annotations

import inspect
from typing import Any

import django
import pytest
from django.db import models as django_models

from dynamo_single import models
from dynamo_single.exceptions import NotSupported
from dynamo_single.orm.query.queryset import REFUSED
from project.directory.models import Company, Person
from tests.versions import DJANGOS

#: Methods of Django's that work as they are, since all that they do is call ours.
INHERITED = {
    "aexplain",
    "all",
    "as_manager",
    "create",
    "db",
    "exclude",
    "filter",
    "get_or_create",
    "iterator",
    "none",
    "prefetch_related",
    "resolve_expression",
}

#: Methods of managers that the queryset lacks; none of them reads.
MANAGER_ONLY = {
    "auto_created",
    "check",
    "contribute_to_class",
    "creation_counter",
    "db",
    "db_manager",
    "deconstruct",
    "from_queryset",
    "get_queryset",
    "use_in_migrations",
}


def public(cls: type) -> set[str]:
    """The public names of a class."""
    return {name for name, _ in inspect.getmembers(cls) if not name.startswith("_")}


def ours(cls: type) -> set[str]:
    """Return the public names that our class and its own bases define."""
    own = [each for each in cls.__mro__ if each.__module__.startswith("dynamo_single.")]
    return {name for each in own for name in vars(each) if not name.startswith("_")}


def test_every_method_of_djangos_queryset_is_accounted_for() -> None:
    """A method of Django's queryset is available only after a decision."""
    decided = ours(models.QuerySet) | INHERITED
    assert public(django_models.QuerySet) - decided == set()


def test_the_list_of_inherited_methods_is_exact() -> None:
    """A removed or overridden name is deleted from the list."""
    assert INHERITED - public(django_models.QuerySet) == set()
    assert INHERITED & ours(models.QuerySet) == set()


def test_every_method_of_djangos_manager_is_accounted_for() -> None:
    """A manager has the queryset's methods, but does not inherit reading methods from Django."""
    assert public(django_models.Manager) - public(models.QuerySet) - MANAGER_ONLY == set()


@pytest.mark.parametrize("name", REFUSED)
@pytest.mark.parametrize("on", ["manager", "queryset"])
def test_refused_methods_raise_by_name(name: str, on: str) -> None:
    """Managers and querysets raise the error immediately, with the alternative."""
    owner = Company.objects if on == "manager" else Company.objects.all()
    with pytest.raises(NotSupported) as raised:
        getattr(owner, name)()
    assert str(raised.value) == f"{name}() is not supported: {REFUSED[name]}."


@pytest.mark.parametrize("name", ["_insert", "_update", "_raw_delete"])
def test_djangos_private_writers_are_refused(name: str) -> None:
    """Methods that Django's serializers and deletion collector call cannot reach SQL."""
    with pytest.raises(NotSupported):
        getattr(Company.objects.all(), name)([])


def test_a_queryset_is_never_compiled_to_sql() -> None:
    """A request for the query's SQL raises an error with its name."""
    with pytest.raises(NotSupported):
        str(Company.objects.all().query)


def test_a_queryset_is_totally_ordered() -> None:
    """Since 6.1, Django adds ``pk`` to the order of other querysets, and few keys have that order."""
    assert Company.objects.all().totally_ordered


def test_the_fetch_mode_is_djangos_default_or_refused() -> None:
    """Django's call with the only possible mode is accepted, and other modes raise an error."""
    if (default := getattr(django_models, "FETCH_ONE", None)) is not None:
        assert list(Company.objects.fetch_mode(default).none()) == []
    with pytest.raises(NotSupported, match=r"fetch_mode\('peers'\)"):
        Company.objects.fetch_mode("peers")


def test_the_decisions_were_made_for_this_django() -> None:
    """The lists above were compared with this version of Django."""
    assert ".".join(map(str, django.VERSION[:2])) in DJANGOS


@pytest.mark.parametrize("rows", [Person.objects.values("name"), Person.objects.values_list("name", flat=True)])
def test_rows_have_no_related_objects(rows: Any) -> None:
    """Django raises the error too: no object could have the related ones."""
    with pytest.raises(TypeError, match=r"after \.values\(\)"):
        rows.select_related("company")
