"""``ContentType`` and ``Permission`` without SQL: computed from the models, and queried without a request."""

from __future__ import annotations

from hashlib import sha256
from typing import Any

import pytest
from django.contrib.auth.models import Permission
from django.contrib.contenttypes.models import ContentType
from django.db.models import Count, F, Q
from django.db.models.functions import Length

from dynamo_single.backend import computed_models
from dynamo_single.checks.settings import check_computed_identifiers
from dynamo_single.exceptions import NotSupported
from dynamo_single.testing import assert_requests
from project.directory.models import Company
from tests.contract.sqlite import ALIAS, sqlite

TYPES, PERMISSIONS = ContentType.objects, Permission.objects


@pytest.fixture(autouse=True)
def without_requests() -> Any:
    """Nothing here sends a request."""
    ContentType.objects.clear_cache()
    with assert_requests([]):
        yield


@pytest.fixture
def rows(django_db_blocker: Any) -> Any:
    """A database of SQLite with the same rows, which has Django's own results."""
    with django_db_blocker.unblock(), sqlite() as connection:
        for model in (ContentType, Permission):
            with connection.schema_editor() as editor:
                editor.create_model(model)
            model._base_manager.using(ALIAS).bulk_create(model._base_manager.all())
        yield ALIAS


def test_id_is_computed_from_label() -> None:
    """Every process has the same one."""
    label = Company._meta.label_lower
    expected = int.from_bytes(sha256(label.encode()).digest(), "big") >> (256 - 31)
    assert TYPES.get_for_model(Company).pk == expected


def test_get_methods_return_one_object() -> None:
    """By its model, its natural key and its identifier."""
    kind = TYPES.get_for_model(Company)
    assert TYPES.get_by_natural_key(*kind.natural_key()) is kind is TYPES.get_for_id(kind.pk)
    assert kind.model_class() is Company


def test_subquery_is_executed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its rows are computed once, and not for each row of the outer query."""
    computed: list[str] = []

    def rows() -> Any:
        computed.append("permissions")
        return computed_models.permissions()

    monkeypatch.setitem(computed_models.TABLES, "auth_permission", rows)
    assert PERMISSIONS.filter(pk__in=PERMISSIONS.filter(codename="add_company").values("pk")).count() == 1
    assert len(computed) == 2


def test_unknown_model_does_not_exist() -> None:
    """Django raises the same error."""
    with pytest.raises(ContentType.DoesNotExist):
        TYPES.get(app_label="directory", model="nothing")


QUERIES = {
    "all": lambda using: PERMISSIONS.using(using).values_list("pk", "name", "codename", "content_type"),
    "order": lambda using: TYPES.using(using).order_by("-model", "app_label").values_list("app_label", "model"),
    "slice": lambda using: TYPES.using(using).order_by("pk")[2:5].values_list("pk"),
    "text": lambda using: (
        PERMISSIONS.using(using).filter(codename__startswith="add", name__icontains="COMP").values_list("pk")
    ),
    "join": lambda using: (
        PERMISSIONS.using(using).filter(content_type__app_label="directory").values_list("content_type__model", "pk")
    ),
    "reverse": lambda using: (
        TYPES.using(using).filter(permission__codename="add_company").order_by("pk").values_list("pk")
    ),
    "or": lambda using: (
        PERMISSIONS.using(using)
        .filter(Q(codename="add_company") | Q(content_type__model__in=["user"]))
        .values_list("pk")
    ),
    "xor": lambda using: (
        TYPES.using(using).filter(Q(app_label="directory") ^ Q(model="company")).order_by("pk").values_list("pk")
    ),
    "exclude": lambda using: PERMISSIONS.using(using).exclude(content_type__app_label="directory").values_list("pk"),
    "subquery": lambda using: (
        PERMISSIONS.using(using).filter(content_type__in=TYPES.using(using).filter(model="company")).values_list("pk")
    ),
    "distinct": lambda using: TYPES.using(using).order_by("app_label").values_list("app_label").distinct(),
    "outer join": lambda using: TYPES.using(using).filter(permission__isnull=True).order_by("pk").values_list("pk"),
    "regex": lambda using: TYPES.using(using).filter(model__regex="^c.*y$").order_by("pk").values_list("pk"),
    "range": lambda using: (
        TYPES.using(using).filter(model__range=("a", "d"), pk__gt=5).order_by("pk").values_list("pk")
    ),
    "column": lambda using: TYPES.using(using).filter(model__gt=F("app_label")).order_by("pk").values_list("pk"),
}


@pytest.mark.parametrize("name", QUERIES)
def test_rows_are_those_of_sqlite(rows: str, name: str) -> None:
    """In the same order."""
    found = [*QUERIES[name]("default")]
    assert found and found == [*QUERIES[name](rows)]


def test_counts_are_those_of_the_rows() -> None:
    """With and without a slice and ``distinct()``."""
    every = [*TYPES.all()]
    assert (TYPES.count(), TYPES.all()[1:3].count(), TYPES.exists()) == (len(every), 2, True)
    assert TYPES.values("app_label").distinct().count() == len({each.app_label for each in every})
    assert TYPES.aggregate(n=Count("app_label", distinct=True)) == {"n": len({each.app_label for each in every})}


def test_relations_read_both_ways() -> None:
    """A permission's content type, and a content type's permissions."""
    kind = TYPES.get_for_model(Company)
    permission = PERMISSIONS.select_related("content_type").get(codename="add_company", content_type=kind)
    assert permission.content_type == kind
    assert permission in kind.permission_set.all()
    assert PERMISSIONS.get_by_natural_key("add_company", *kind.natural_key()) == permission


@pytest.mark.parametrize(
    "query",
    [
        lambda: PERMISSIONS.filter(group__name="editors").exists(),
        lambda: TYPES.annotate(length=Length("model")).first(),
        lambda: [*TYPES.values("app_label").annotate(n=Count("pk"))],
    ],
)
def test_other_queries_name_the_alternative(query: Any) -> None:
    """Joins with stored models, expressions and groups."""
    with pytest.raises(NotSupported, match=r"computed from the installed models.*use Python for the rest"):
        query()


@pytest.mark.parametrize(
    "write",
    [
        lambda: TYPES.create(app_label="directory", model="nothing"),
        lambda: PERMISSIONS.filter(codename="add_company").update(name="Other"),
    ],
)
def test_writes_name_the_models_options(write: Any) -> None:
    """No object is stored."""
    with pytest.raises(NotSupported, match=r"Nothing was written\. Declare .* Meta\.permissions"):
        write()


def test_check_refuses_names_with_one_identifier(monkeypatch: pytest.MonkeyPatch) -> None:
    """E048 names them."""
    assert check_computed_identifiers() == []
    monkeypatch.setattr(
        computed_models, "identifier", lambda name: 7 if name.endswith(("company", "user")) else id(name)
    )
    (message,) = [each for each in check_computed_identifiers() if "directory.company " in each.msg]
    assert message.id == "dynamo_single.E048"
