"""Secrets in the admin: URLs cannot filter, sort or search by one, and pages show one only in an input."""

from __future__ import annotations

import string
from collections.abc import Callable
from typing import Any

import pytest
from django.contrib import admin
from django.contrib.auth.hashers import make_password
from django.db import models as django_models
from django.http import QueryDict

from accounts.models import User
from dynamo_single import models
from dynamo_single.admin import DynamoAdminSite, DynamoTabularInline
from dynamo_single.orm.schema import registry, secrecy
from dynamo_single.table import Table
from tests.catalog.safes import FOLLOWING, INSIDE, VALUES, Lock, Safe, told
from tests.contract.conftest import Pages, Registering
from tests.contract.tables import everything
from tests.deep import IS_DEEP

VIEW = "accounts.view_user"
LIST = "catalog/safe/"

#: Every lookup of Django and of the app, with a value as an address has it.
LOOKUPS = sorted(
    {
        *django_models.Field.get_lookups(),
        *(lookup for field in Safe._meta.concrete_fields for lookup in type(field).get_lookups()),
        *("", "exact", "a", "a__gte", "0", "0__exact", "year__gte", "date__lt"),
    }
)
#: Every path to a secret of a safe.
PATHS = [
    *(*VALUES, "parent", *FOLLOWING),
    *("parent__name", "papers__apiKey", "papers__deep__0__password", "contents__place", "remark__password"),
]


class Locks(DynamoTabularInline):
    """The locks of a safe."""

    model = Lock


@pytest.fixture
def safe(table: Table) -> Safe:
    """A safe with every secret, and a lock with two."""
    found: Safe = Safe.objects.create(safe_id="s1", name="Front", **VALUES, **INSIDE)
    Lock.objects.create(safe=found, lock_id="l1", brand="Best", code="swordfish-code")
    Safe.objects.create(safe_id="s2", name="Back")
    return found


def test_every_secret_has_a_value() -> None:
    """Otherwise, a type of attribute would never be tested."""
    assert {*VALUES, *FOLLOWING} == secrecy.secrets_of(Safe)
    kinds = {type(each) for each in registry.attributes_of(Safe).values()}
    kept = {models.CounterAttribute, models.VersionAttribute, models.AuthorAttribute, models.TTLAttribute}
    others = {
        models.OneToOneAttribute,
        models.FileAttribute,
        models.ImageAttribute,
        models.IdAttribute,
        models.ContentTypeAttribute,
    }
    offered = {each for each in vars(models).values() if isinstance(each, type) and issubclass(each, models.Attribute)}
    assert offered - kinds - kept - others == {models.Attribute, models.CopiedAttribute}  # which a lock has


@pytest.mark.parametrize("path", PATHS)
def test_no_lookup_of_address_compares_with_secret(registered: Registering, safe: Safe, path: str) -> None:
    """This includes every lookup, in a GET and in the submission of an action."""
    pages = registered(Safe, list_display=("name", "text"), list_filter=("text", "pin", "day", "parent"))
    answers = {
        lookup: pages.get(f"{LIST}?{path}{'__' * bool(lookup)}{lookup}=1").status_code
        for lookup in (LOOKUPS if IS_DEEP else LOOKUPS[PATHS.index(path) % 8 :: 8])
        if path != "remark__password" or lookup
    }

    assert {lookup: status for lookup, status in answers.items() if status != 400} == {}


@pytest.fixture
def victim(table: Table) -> User:
    """Return a superuser with a PIN for the telephone number, and another user."""
    User.objects.create_user("Ann", "ann@example.com", "a-good-password", user_id="ann")
    return User.objects.create_superuser(
        "Root", "root@example.com", "a-good-password", user_id="root", phone_secret=make_password("471147")
    )


def test_staff_cannot_search_hash_letter_by_letter(staff: Callable[..., Pages], victim: User) -> None:
    """In the past, 541 requests found each letter by checking whether the user was listed."""
    pages = staff(VIEW)
    letters = sorted(string.ascii_letters + string.digits + "$_=+/")[:: 1 if IS_DEEP else 12]
    answers = [
        pages.get(f"accounts/user/?user_id=root&{name}__{lookup}={letter}").status_code
        for name in ("phone_secret", "username_secret", "password")
        for lookup in ("gte", "lt", "startswith")
        for letter in letters
    ]

    assert set(answers) == {400}


def test_staff_may_filter_by_what_is_no_secret(staff: Callable[..., Pages], victim: User) -> None:
    page = staff(VIEW).get("accounts/user/?user_id=root&username__gte=A")

    assert [user.pk for user in page.context["cl"].result_list] == ["root"]


def test_staff_cannot_order_by_hash(registered: Registering, staff: Callable[..., Pages], victim: User) -> None:
    """By a click on a column, by the order of a method, or by the admin's own order."""
    registered(
        User,
        list_display=("username", "phone_secret", "way"),
        ordering=("-phone_secret", "username"),
        way=admin.display(ordering="phone_secret")(lambda self, user: "way"),
        list_max_in_memory=100,
    )
    pages = staff(VIEW)
    orders = [
        [user.username for user in pages.get(f"accounts/user/{order}").context["cl"].result_list]
        for order in ("", "?o=2", "?o=-2", "?o=3", "?o=-3")
    ]

    assert orders == [["Ann", "Root", "admin", "staff"]] * 5


def test_staff_cannot_search_hash(registered: Registering, staff: Callable[..., Pages], victim: User) -> None:
    """The search of a list and of autocomplete uses only the other declared fields."""
    registered(User, search_fields=("=phone_secret", "phone_secret__gte", "password", "username"))
    pages = staff(VIEW)
    page = pages.get("accounts/user/?q=pbkdf2_sha256")

    assert list(page.context["cl"].result_list) == []
    assert [user.pk for user in pages.get("accounts/user/?q=Root").context["cl"].result_list] == ["root"]


@pytest.fixture
def hidden(staff: Callable[..., Pages], safe: Safe) -> Callable[..., list[str]]:
    """Return the secrets that a page shows to a user, who by default may only view."""

    def of(path: str, *permissions: str) -> list[str]:
        named = permissions or ("catalog.view_safe", "catalog.view_lock")
        response = staff(*named).get(path)
        assert response.status_code == 200
        return told(response.content.decode())

    return of


#: Every field of a safe, as a list's column and on its page.
FIELDS = [field.name for field in Safe._meta.concrete_fields]
#: Pages of the admin of a safe, and its options there.
SURFACES: dict[str, tuple[dict[str, Any], str]] = {
    "columns": ({"list_display": FIELDS}, ""),
    "links of columns": ({"list_display": ("text", "name"), "list_display_links": ("text", "name")}, ""),
    "inputs of rows": ({"list_display": ("name", "text"), "list_editable": ("text",)}, ""),
    "paths as columns": ({"list_display": ("name", "parent__text")}, ""),
    "filters": ({"list_filter": [name for name in VALUES if name not in ("parent_id", "blob", "blobs")]}, ""),
    "facets": ({"list_filter": ("name", "text", "day"), "show_facets": admin.ShowFacets.ALWAYS}, "?_facets=1"),
    "dates": ({"date_hierarchy": "day"}, ""),
    "dates of an address": ({"date_hierarchy": "day"}, "?p=1"),
    "search": ({"search_fields": ("name", "text", "pin")}, "?q=Front"),
    "order": ({"ordering": ("text",)}, ""),
    "page": ({}, "s1/change/"),
    "read-only fields": ({"readonly_fields": FIELDS}, "s1/change/"),
    "fieldsets": ({"fieldsets": [(None, {"fields": [("name", "text"), "pin", "map", "remark"]})]}, "s1/change/"),
    "inlines": ({"inlines": [Locks]}, "s1/change/"),
    "history": ({}, "s1/history/"),
    "delete": ({}, "s1/delete/"),
}


@pytest.mark.parametrize("surface", SURFACES)
def test_page_for_viewer_tells_no_secret(
    registered: Registering, hidden: Callable[..., list[str]], surface: str
) -> None:
    options, address = SURFACES[surface]
    registered(Safe, **options)
    permissions = ["catalog.view_safe", "catalog.view_lock", "catalog.delete_safe"]

    assert hidden(f"{LIST}{address}", *permissions) == []


def test_every_option_of_an_admin_is_a_surface() -> None:
    """An option of another release of Django's that names fields is to be thought of."""
    known = {
        *("list_display", "list_display_links", "list_filter", "list_select_related", "list_per_page"),
        *("list_max_show_all", "list_editable", "search_fields", "search_help_text", "date_hierarchy", "ordering"),
        *("sortable_by", "show_facets", "inlines", "readonly_fields", "fieldsets", "fields", "exclude"),
        *("raw_id_fields", "autocomplete_fields", "radio_fields", "prepopulated_fields", "filter_vertical"),
        *("filter_horizontal", "form", "formfield_overrides", "view_on_site", "show_full_result_count", "checks_class"),
        *("save_as", "save_as_continue", "save_on_top", "paginator", "preserve_filters", "add_form_template"),
        *("change_form_template", "change_list_template", "delete_confirmation_template", "popup_response_template"),
        *("delete_selected_confirmation_template", "object_history_template", "actions", "action_form"),
        *("actions_on_top", "actions_on_bottom", "actions_selection_counter", "delete_popup_response_template"),
        "delete_confirmation_max_display",
    }
    options = {
        name
        for owner in (admin.ModelAdmin, *admin.ModelAdmin.__mro__[1:-1])
        for name, each in vars(owner).items()
        if not name.startswith("_") and not callable(each) and not isinstance(each, property | classmethod)
    }

    assert options - known - {"media", "urls"} == set()


def test_read_only_field_is_masked_for_who_may_change(
    registered: Registering, hidden: Callable[..., list[str]]
) -> None:
    read_only = [name for name in FIELDS if name not in ("safe_id", "name")]
    registered(Safe, readonly_fields=read_only)

    assert hidden(f"{LIST}s1/change/", "catalog.view_safe", "catalog.change_safe") == []


def test_input_has_value(registered: Registering, safe: Safe) -> None:
    """A save would store the mask of an input."""
    page = registered(Safe, fields=("name", "text", "papers")).get(f"{LIST}s1/change/").content.decode()

    assert 'value="swordfish-text"' in page
    assert "swordfish-key" in page


def test_form_saves_no_mask(registered: Registering, safe: Safe) -> None:
    Safe.objects.create(safe_id=VALUES["parent_id"], name="Parent")
    pages = registered(Safe, list_display=("name", "text"), readonly_fields=("pin", "papers"))
    form = pages.get(f"{LIST}s1/change/").context["adminform"].form
    data = QueryDict(mutable=True)
    for name in form.fields:
        widget = form[name].field.widget
        value = form[name].value()
        if hasattr(widget, "decompress"):
            parts = widget.decompress(value)
            data.update({f"{name}_{number}": part for number, part in enumerate(parts) if part is not None})
        elif value is not None and name not in ("blob", "blobs"):
            text = widget.format_value(value)
            data[name] = "true" if value is True else text if isinstance(text, str) else str(value)
    answer = pages.post(f"{LIST}s1/change/", {**data.dict(), "name": "Renamed"})

    assert answer.status_code == 302, answer.context["adminform"].form.errors
    stored: Any = Safe.objects.get(pk="s1")
    assert {name: getattr(stored, name) for name in VALUES} == VALUES
    assert stored.name == "Renamed"


def test_download_has_no_secret(registered: Registering, safe: Safe) -> None:
    assert registered(Safe).get(f"{LIST}s1/binary/blob/").status_code != 200


def test_site_adds_secrets(registered: Registering, safe: Safe, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(DynamoAdminSite, "is_secret", lambda self, model, name: name == "name")
    pages = registered(Safe, list_display=("safe_id", "name"), search_fields=("name",), readonly_fields=("name",))
    listed = pages.get(LIST)

    assert pages.get(f"{LIST}?name__gte=A").status_code == 400
    assert listed.context["cl"].search_fields == []
    assert [name for name in ("Front", "Back") if f'field-name">{name}' in listed.content.decode()] == []


class Heavy(admin.SimpleListFilter):
    """A filter of a project's own, by a secret."""

    title = "weight"
    parameter_name = "token"

    def lookups(self, request: object, model_admin: object) -> list[tuple[str, str]]:
        """Two."""
        return [("yes", "Heavy"), ("no", "Light")]

    def queryset(self, request: object, queryset: Any) -> Any:
        """By code, which may compare with anything."""
        return queryset.filter(integer__gte=1000) if self.value() == "yes" else queryset


def test_code_filters_by_secret(registered: Registering, safe: Safe) -> None:
    page = registered(Safe, list_filter=(Heavy,)).get(f"{LIST}?token=yes")

    assert [found.pk for found in page.context["cl"].result_list] == ["s1"]
    assert Safe.objects.filter(pk="s1", text__startswith="sword", pin=VALUES["pin"]).exists()


@pytest.mark.parametrize(("permission", "shows"), [("catalog.change_safe", False), ("dynamo_single.view_table", True)])
def test_undeclared_attributes_take_permission_of_table(
    registered: Registering, staff: Callable[..., Pages], safe: Safe, table: Table, permission: str, shows: bool
) -> None:
    item = everything(table)["SAFE#s1", "#METADATA"] | {"weight": {"S": "12 tons"}, "api_key": {"S": "open-sesame"}}
    table.call("PutItem", {"TableName": table.name, "Item": item})
    registered(Safe)
    page = staff("catalog.view_safe", permission).get(f"{LIST}s1/change/").content.decode()

    assert ("12 tons" in page, "open-sesame" in page) == (shows, False)
