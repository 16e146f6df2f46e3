"""Django's own admin classes on a site of ours: they mask the same secrets, and hide the same objects."""

from __future__ import annotations

import re
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import pytest
from django.contrib import admin
from django.contrib.admin.sites import all_sites
from django.contrib.auth.models import Group
from django.contrib.contenttypes.admin import GenericTabularInline
from django.db import connections, router
from django.db import models as django_models
from django.urls import clear_url_caches, path

from dynamo_single import models
from dynamo_single.admin import DynamoAdminSite, DynamoModelAdmin, DynamoTabularInline
from dynamo_single.checks.admin import check_inlines
from tests.catalog.safes import INSIDE, VALUES, Lock, Safe, told
from tests.catalog.tags import Animal, Emblem
from tests.contract.conftest import Pages
from tests.contract.sqlite import ALIAS, sqlite
from tests.unit.declaring import declare, forgotten


@pytest.fixture
def stock(pages: Pages, settings: Any) -> Iterator[Any]:
    """Registers models with Django's ``ModelAdmin``, each with options, and returns the site."""
    site = DynamoAdminSite()
    all_sites.discard(site)  # the checks look at all of them

    def register(**models_of: Any) -> DynamoAdminSite:
        for options in models_of.values():
            site.register(options.pop("model"), type("OwnAdmin", (options.pop("base", admin.ModelAdmin),), options))
        urls: Any = ModuleType("urls")
        urls.urlpatterns = [path("admin/", site.urls)]
        settings.ROOT_URLCONF = urls
        return site

    yield register
    clear_url_caches()


def open_safes(self: Any, request: Any) -> Any:
    """Hide safes by their names."""
    return DynamoModelAdmin.get_queryset(self, request).filter(name__startswith="Open")


READ_ONLY = ("text", "pin", "map", "papers", "remark")


def test_stock_admin_masks_secrets(pages: Pages, stock: Any) -> None:
    """The check E011 rejects this registration, but can be silenced."""
    Safe.objects.create(safe_id="s1", name="Front", **VALUES, **INSIDE)
    stock(safe={"model": Safe, "readonly_fields": READ_ONLY, "fields": READ_ONLY})
    page = pages.get("catalog/safe/s1/change/")
    assert (page.status_code, told(page.content.decode())) == (200, [])


@pytest.fixture
def team(pages: Pages, django_db_blocker: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A model whose objects have secrets, are children of a row in SQL, and refer to safes."""
    with forgotten(), django_db_blocker.unblock(), sqlite() as connection:
        in_sql = ("Group", "SqlNote")
        route = lambda model, **hints: ALIAS if model.__name__ in in_sql else "default"  # noqa: E731 - as a method
        monkeypatch.setattr(router, "db_for_read", route)
        with connection.schema_editor() as editor:
            editor.create_model(Group)
        Group.objects.using(ALIAS).create(pk=1, name="Editors")
        yield declare(
            "Badge",
            ("BADGE#{team_id}", "{number}"),
            team=models.ReferenceAttribute(Group, on_delete=models.DO_NOTHING),
            number=models.IntegerAttribute(),
            code=models.UnicodeAttribute(secret=True),
            safe=models.ReferenceAttribute(Safe, on_delete=models.DO_NOTHING, null=True),
        )


@pytest.mark.parametrize("base", [DynamoTabularInline, admin.TabularInline])
def test_inline_of_sql_parent_masks_secrets_and_hides_objects(pages: Pages, stock: Any, team: Any, base: Any) -> None:
    for key, name in (("s1", "Hidden safe"), ("s2", "Open safe")):
        safe = Safe.objects.create(safe_id=key, name=name)
        team.objects.create(team_id=1, number=int(key[1]), code="swordfish", safe=safe)
    read_only = {"readonly_fields": ("code", "safe"), "fields": ("number", "code", "safe")}
    stock(
        group={"model": Group, "fields": ("name",), "inlines": [type("Badges", (base,), {"model": team, **read_only})]},
        safe={"model": Safe, "base": DynamoModelAdmin, "get_queryset": open_safes},
    )
    page = pages.get("auth/group/1/change/").content.decode()
    assert (page.count("•••"), "swordfish" in page) == (2, False)
    assert ("Open safe" in page, "Hidden safe" in page) == (True, False)


def test_column_of_sql_model_names_hidden_object_by_kind(pages: Pages, stock: Any, team: Any) -> None:
    """In the list of a model in SQL that refers to a model in DynamoDB."""
    meta = type("Meta", (), {"app_label": "catalog"})
    fields = {"safe": django_models.ForeignKey(Safe, django_models.DO_NOTHING), "Meta": meta, "__module__": __name__}
    sqlnote: Any = type("SqlNote", (django_models.Model,), fields)
    with connections[ALIAS].schema_editor() as editor:
        editor.create_model(sqlnote)
    for number, name in enumerate(("Hidden safe", "Open safe")):
        safe = Safe.objects.create(safe_id=f"s{number}", name=name)
        sqlnote.objects.using(ALIAS).create(safe=safe)
    stock(
        sqlnote={
            "model": sqlnote,
            "list_display": ("id", "safe"),
            "get_queryset": lambda self, request: sqlnote.objects.using(ALIAS),
        },
        safe={"model": Safe, "base": DynamoModelAdmin, "get_queryset": open_safes},
    )
    page = pages.get("catalog/sqlnote/").content.decode()
    assert (page.count(">Safe</td>"), page.count(">Open safe</td>"), "Hidden safe" in page) == (1, 1, False)


def test_rows_of_sql_parent_are_hidden(pages: Pages, stock: Any, team: Any) -> None:
    """Only the rows that their model's admin returns are shown."""
    for number in (1, 2, 3):
        team.objects.create(team_id=1, number=number, code="swordfish")
    own = lambda self, request: DynamoModelAdmin.get_queryset(self, request).filter(number__lt=3)  # noqa: E731
    stock(
        group={
            "model": Group,
            "fields": ("name",),
            "inlines": [type("Badges", (DynamoTabularInline,), {"model": team})],
        },
        badge={"model": team, "base": DynamoModelAdmin, "get_queryset": own},
    )
    page = pages.get("auth/group/1/change/").content.decode()
    assert re.findall(r'-TOTAL_FORMS" value="(\d)"', page) == ["2"]


class Tags(GenericTabularInline):
    """Some tags of an animal, as the admin of tags shows them."""

    model = Emblem
    fields = ("word",)
    extra = 1

    def get_queryset(self, request: Any) -> Any:
        return Emblem.objects.exclude(word="hidden")


def test_generic_inline_shows_and_saves_rows(pages: Pages, stock: Any) -> None:
    """Django's class works: the objects of the relation are read by its key, and written one by one."""
    lion = Animal.objects.create(animal_id="a", name="Lion")
    kept = [lion.tags.create(word=word) for word in ("hidden", "shown")]
    stock(animal={"model": Animal, "base": DynamoModelAdmin, "inlines": [Tags]})
    page = pages.get("catalog/animal/a/change/")
    prefix = "catalog-emblem-content_type-object_id"
    assert re.findall(rf'name="{prefix}-\d-word" value="(\w+)"', page.content.decode()) == ["shown"]
    data = {
        "name": "Lion",
        f"{prefix}-TOTAL_FORMS": "2",
        f"{prefix}-INITIAL_FORMS": "1",
        f"{prefix}-0-tag_id": kept[1].pk,
        f"{prefix}-0-word": "changed",
        f"{prefix}-1-word": "new",
    }
    response = pages.post("catalog/animal/a/change/", data)
    assert (response.status_code, sorted(each.word for each in lion.tags.all())) == (302, ["changed", "hidden", "new"])


@pytest.mark.parametrize(("attributes", "count"), [({}, 1), ({"get_queryset": Tags.get_queryset}, 0)])
def test_check_reports_generic_inline(attributes: dict[str, Any], count: int) -> None:
    checked = DynamoAdminSite("checked")
    inline = type("Tags", (GenericTabularInline,), {"model": Emblem, **attributes})
    checked.register(Animal, type("Checked", (DynamoModelAdmin,), {"inlines": [inline]}))
    try:
        found = [each for each in check_inlines() if "Tags shows catalog.Emblem as a generic inline" in each.msg]
    finally:
        all_sites.discard(checked)
    assert len(found) == count


@pytest.mark.parametrize(
    ("site", "base", "hint"),
    [
        (DynamoAdminSite, DynamoTabularInline, None),
        (DynamoAdminSite, admin.TabularInline, "Derive it from dynamo_single.admin.DynamoTabularInline."),
        (DynamoAdminSite, admin.StackedInline, "Derive it from dynamo_single.admin.DynamoStackedInline."),
        (admin.AdminSite, DynamoTabularInline, "derive the site from dynamo_single.admin.DynamoAdminSite."),
    ],
)
def test_check_reports_inlines_that_hide_nothing(site: Any, base: Any, hint: str | None) -> None:
    checked = site("checked")
    inline = type("Locks", (base,), {"model": Lock})
    checked.register(Group, type("Checked", (admin.ModelAdmin,), {"inlines": [inline]}))
    try:
        found = [each for each in check_inlines() if each.msg.startswith("Locks shows catalog.Lock")]
    finally:
        all_sites.discard(checked)
    assert [(each.id, str(each.hint).endswith(str(hint))) for each in found] == [("dynamo_single.W920", True)] * bool(
        hint
    )
