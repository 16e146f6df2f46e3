"""Every method of Django's ``ModelAdmin`` that a project may override, for few and for many objects."""

from __future__ import annotations

import functools
import inspect
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.contrib.admin import ModelAdmin
from django.contrib.admin.actions import delete_selected
from django.contrib.admin.sites import AdminSite
from django.core.exceptions import PermissionDenied, ValidationError
from django.db.models import QuerySet
from django.test import RequestFactory

from dynamo_single.admin import DynamoModelAdmin
from dynamo_single.admin.batch_actions import actions, jobs
from dynamo_single.admin.log import LogEntry
from project.directory.models import Company
from tests.contract.conftest import Pages, Registering, text_of
from tests.deep import IS_DEEP

HOOKS = sorted(name for name, _ in inspect.getmembers(ModelAdmin, inspect.isfunction) if not name.startswith("_"))
COMPANIES = "directory/company/"
FEW, MANY, BATCH = 2, 5, 2

Calls = list[tuple[str, Any]]


def told(argument: Any) -> Any:
    """Convert an argument for comparison: objects to keys, querysets to the keys of their rows."""
    if isinstance(argument, QuerySet | list) and all(hasattr(each, "pk") for each in argument):
        return sorted(each.pk for each in argument)
    return getattr(argument, "pk", argument)


def recorded(base: type, calls: Calls) -> dict[str, Callable[..., Any]]:
    """Return overrides of all hooks that record their calls."""

    def overriding(name: str) -> Callable[..., Any]:
        def hook(self: Any, *args: Any, **kwargs: Any) -> Any:
            calls.append((name, [told(each) for each in args if not hasattr(each, "META")]))
            return getattr(base, name)(self, *args, **kwargs)

        return functools.wraps(getattr(base, name))(hook)

    return {name: overriding(name) for name in HOOKS}


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Few objects are many."""
    monkeypatch.setattr(actions, "MAX_IMMEDIATE", FEW)
    monkeypatch.setattr(jobs, "BATCH_SIZE", BATCH)
    monkeypatch.setattr(jobs, "MAX_SECONDS", 1000.0)
    yield


def companies(count: int) -> list[str]:
    """The keys of as many."""
    return [Company.objects.create(company_id=f"c{number}", name=f"C {number}").pk for number in range(count)]


def acted(pages: Pages, keys: list[str], action: str = "delete_selected", query: str = "") -> str:
    """Run an action to its end; the path of the job that it became, or nothing."""
    data = {"action": action, "_selected_action": keys}
    answer = pages.post(f"{COMPANIES}{query}", data)
    if answer.status_code == 302 and "/jobs/" in answer["location"]:
        path = str(answer["location"]).removeprefix("/admin/")
        pages.post(path)
        return path
    pages.post(f"{COMPANIES}{query}", {**data, "post": "yes"})
    return ""


def edited(pages: Pages, keys: list[str]) -> None:
    """Change a field of each row in the list."""
    sent = {"form-TOTAL_FORMS": str(len(keys)), "form-INITIAL_FORMS": str(len(keys)), "_save": "Save"}
    for number, key in enumerate(keys):
        sent |= {f"form-{number}-company_id": key, f"form-{number}-stock": "B"}
    assert pages.post(COMPANIES, sent).status_code == 302


#: The calls of a hook: per batch, per object, once at the end, per edited row, for the list page (at least once), or
#: only on pages of one object.
ROWS = {
    "batch": "get_deleted_objects log_deletions delete_queryset",
    "object": "delete_model log_deletion",
    "end": "message_user",
    "edited": "save_form save_model save_related construct_change_message log_change",
    "list": """
        changelist_view get_action_choices get_actions get_changelist get_changelist_instance get_list_display
        get_list_display_links get_list_filter get_list_select_related get_ordering get_preserved_filters get_queryset
        get_search_fields get_search_results get_sortable_by has_change_permission has_delete_permission
        has_view_or_change_permission has_view_permission response_action
    """,
    "one": """
        action_checkbox add_view change_view changeform_view check delete_view formfield_for_choice_field
        formfield_for_dbfield formfield_for_foreignkey formfield_for_manytomany get_action get_autocomplete_fields
        get_changeform_initial_data get_changelist_form get_changelist_formset get_empty_value_display get_exclude
        get_field_queryset get_fields get_fieldsets get_form get_formset_kwargs get_formsets_with_inlines
        get_inline_formsets get_inline_instances get_inlines get_model_perms get_object get_paginator
        get_prepopulated_fields get_readonly_fields get_urls get_view_on_site_url has_add_permission
        has_module_permission history_view log_addition lookup_allowed render_change_form render_delete_form
        response_add response_change response_delete response_post_save_add response_post_save_change save_formset
        to_field_allowed
    """,
}
KINDS = {name: kind for kind, names in ROWS.items() for name in names.split()}
#: Hooks that later releases of Django do not have.
GONE = {"log_deletion"}


def test_every_hook_has_a_row() -> None:
    """A new hook of Django needs an entry here."""
    assert {*HOOKS} - KINDS.keys() == set()
    assert KINDS.keys() - {*HOOKS} <= GONE


@pytest.mark.parametrize(("count", "batches"), [(FEW, 1), (MANY, 3)])
@pytest.mark.parametrize("name", [name for name in HOOKS if KINDS.get(name) in ("batch", "object", "end")])
def test_action_calls_hook(registered: Registering, name: str, count: int, batches: int) -> None:
    """If a project overrides only this hook, few objects call it as in Django, and many call it once per batch."""
    calls: Calls = []
    own = recorded(DynamoModelAdmin, calls)
    keys = companies(count)
    # The confirmation page calls the same hook.
    acted(registered(Company, **{name: own[name]}), keys)
    called = [each for each in calls if each != ("get_deleted_objects", [keys])] or calls
    if count == FEW and name == "get_deleted_objects":
        called = calls[1:]
    assert len(called) == {"batch": batches, "object": count, "end": 1}[KINDS[name]]


def of_kind(kind: str) -> set[str]:
    """The hooks of a row that this release of Django has."""
    return {name for name in HOOKS if KINDS.get(name) == kind}


@pytest.mark.parametrize("count", [FEW, MANY])
def test_action_calls_hooks_of_list(registered: Registering, count: int) -> None:
    """The action calls all of them; it does not call the hooks of edited rows."""
    calls: Calls = []
    own = recorded(DynamoModelAdmin, calls)
    names = of_kind("list") | of_kind("edited")
    acted(registered(Company, **{name: own[name] for name in names}), companies(count))
    assert {name for name, _ in calls} == of_kind("list")


@pytest.mark.parametrize("count", [FEW, MANY])
def test_edited_rows_call_hooks(registered: Registering, count: int) -> None:
    """Each row that changed, as in Django."""
    calls: Calls = []
    own = recorded(DynamoModelAdmin, calls)
    options = {"list_display": ("name", "stock"), "list_editable": ("stock",)}
    edited(registered(Company, **options, **{name: own[name] for name in of_kind("edited")}), companies(count))
    assert Counter(name for name, _ in calls) == dict.fromkeys(of_kind("edited"), count)


BULK = ("get_deleted_objects", "log_deletions", "delete_queryset", "message_user")


def djangos_calls(keys: list[str]) -> Calls:
    """The bulk hooks that Django's own action calls, on Django's own class, with their arguments."""
    calls: Calls = []
    answers = {"get_deleted_objects": ([], {}, set(), [])}

    class Stock(ModelAdmin):  # type: ignore[type-arg]  # not generic at run time
        def __getattribute__(self, name: str) -> Any:
            if name not in BULK:
                return super().__getattribute__(name)

            def hook(*args: Any) -> Any:
                calls.append((name, [told(each) for each in args if not hasattr(each, "META")]))
                return answers.get(name)

            return hook

    request = RequestFactory().post("/", {"post": "yes"})
    delete_selected(Stock(Company, AdminSite()), request, Company.objects.filter(pk__in=keys))
    return calls


def test_few_objects_make_djangos_calls(registered: Registering) -> None:
    """The hooks, arguments and their order are the same."""
    calls: Calls = []
    own = recorded(DynamoModelAdmin, calls)
    keys = companies(FEW)
    wanted = djangos_calls(keys)
    pages = registered(Company, **{name: own[name] for name in BULK})
    data = {"action": "delete_selected", "_selected_action": keys, "post": "yes"}
    assert pages.post(COMPANIES, data).status_code == 302
    assert calls == wanted


def test_many_objects_make_djangos_calls_by_batch(registered: Registering) -> None:
    """Each batch has the calls for its objects, and the message comes last."""
    calls: Calls = []
    own = recorded(DynamoModelAdmin, calls)
    keys = companies(MANY)
    wanted = [
        call
        for first in range(0, MANY, BATCH)
        for call in djangos_calls(keys[first : first + BATCH])
        if len(call[1]) == 1
    ]
    acted(registered(Company, **{name: own[name] for name in BULK}), keys)
    assert calls == [*wanted, ("message_user", ["Moved 5 companies to the trash.", 25])]


@pytest.mark.parametrize("count", [FEW, MANY])
def test_restoration_is_logged_for_each_object(registered: Registering, count: int) -> None:
    """By the hook, once the object is back."""
    calls: Calls = []
    pages = registered(
        Company, **{name: recorded(DynamoModelAdmin, calls)[name] for name in ("log_change", "message_user")}
    )
    keys = companies(count)
    for company in Company.objects.all():
        company.delete()
    acted(pages, keys, "restore_selected", "?trash=yes")
    assert sorted(args[0] for name, args in calls if name == "log_change") == keys
    assert calls[-1] == ("message_user", [f"Restored {count} companies.", 25])


@pytest.mark.parametrize("count", [FEW, MANY])
def test_permanent_deletion_calls_the_hooks(registered: Registering, count: int) -> None:
    """The hooks are the same as for the trash."""
    calls: Calls = []
    pages = registered(Company, delete_queryset=recorded(DynamoModelAdmin, calls)["delete_queryset"])
    keys = companies(count)
    for company in Company.objects.all():
        company.delete()
    acted(pages, keys, query="?trash=yes")
    assert sorted(key for _name, args in calls for key in args[0]) == keys
    assert Company.all_objects.count() == 0


@pytest.mark.parametrize("query", ["", "?trash=yes"])
def test_own_deletion_of_many_is_left_alone(registered: Registering, query: str) -> None:
    """A project's action by Django's name runs as it is, in the list and in the trash."""
    ran = []

    def own_action(modeladmin: Any, request: Any, queryset: Any) -> None:
        ran.extend(each.pk for each in queryset)

    keys = companies(MANY)
    if query:
        for company in Company.objects.all():
            company.delete()
    pages = registered(Company, delete_selected=own_action, actions=["delete_selected"])
    pages.post(f"{COMPANIES}{query}", {"action": "delete_selected", "_selected_action": keys})
    assert sorted(ran) == keys


def archiving(archive: list[str]) -> Callable[..., None]:
    """A ``delete_queryset()`` that keeps a copy elsewhere first."""

    def delete_queryset(self: Any, request: Any, queryset: Any) -> None:
        archive.extend(company.name for company in queryset)
        DynamoModelAdmin.delete_queryset(self, request, queryset)

    return delete_queryset


def test_project_archives_every_object(registered: Registering) -> None:
    """This also applies to many objects, whose data the project would lose otherwise."""
    archive: list[str] = []
    acted(registered(Company, delete_queryset=archiving(archive)), companies(MANY))
    assert archive == [f"C {number}" for number in range(MANY)]


def refusing(error: Exception, after: int, done: list[str]) -> Callable[..., None]:
    """Return a ``delete_queryset()`` that fails once after a number of deletions."""

    def delete_queryset(self: Any, request: Any, queryset: Any) -> None:
        for company in queryset:
            if len(done) == after:
                done.append("")
                raise error
            done.append(company.pk)
            self.delete_model(request, company)

    return delete_queryset


ERRORS = {
    ValidationError("Ask the archive first."): "Ask the archive first.",
    PermissionDenied("Not on Sundays."): "Not on Sundays.",
    RuntimeError("No archive."): "RuntimeError: No archive.",
}
#: Each error after each number of objects; a normal run has each of both once.
STOPS = [(error, after) for error in ERRORS for after in (0, 1, 3)][:: 1 if IS_DEEP else 4]


@pytest.mark.parametrize(("error", "after"), STOPS)
def test_job_stops_at_error_and_resumes(registered: Registering, error: Exception, after: int) -> None:
    """The page shows the error and the numbers of done and remaining objects; each is deleted and logged once."""
    pages = registered(Company, delete_queryset=refusing(error, after, []))
    path = acted(pages, companies(MANY))
    shown = text_of(pages.get(path))
    assert ERRORS[error] in shown
    assert f"{after} done, {MANY - after} left" in shown
    assert Company.deleted_objects.count() == after
    assert LogEntry.objects.filter(user_id=pages.user.pk).count() == after
    pages.post(path)
    assert Company.objects.count() == 0
    assert logged(pages) == dict.fromkeys([f"c{number}" for number in range(MANY)], 1)
    assert ERRORS[error] not in text_of(pages.get(path))


def logged(pages: Pages) -> dict[str, int]:
    """Count the log entries of each object."""
    return dict(sorted(Counter(each.object_id for each in LogEntry.objects.filter(user_id=pages.user.pk)).items()))


def test_refused_deletion_of_few_is_not_logged(registered: Registering) -> None:
    """Django logs before it deletes; the log contains exactly the deleted objects."""
    pages = registered(Company, delete_queryset=refusing(ValidationError("No."), 1, []))
    data = {"action": "delete_selected", "_selected_action": companies(FEW), "post": "yes"}
    with pytest.raises(ValidationError):
        pages.post(COMPANIES, data)
    assert logged(pages) == {"c0": 1}


def test_own_messages_are_on_the_jobs_page(registered: Registering) -> None:
    """The messages of thousands of objects do not fit into a session."""

    def delete_model(self: Any, request: Any, obj: Any) -> None:
        self.message_user(request, f"Archived {obj.name}.")
        DynamoModelAdmin.delete_model(self, request, obj)

    pages = registered(Company, delete_model=delete_model)
    shown = text_of(pages.get(acted(pages, companies(MANY))))
    assert [f"Archived C {number}." in shown for number in range(MANY)] == [True] * MANY


def test_protected_object_does_not_stop_the_others(registered: Registering) -> None:
    """By ``get_deleted_objects()`` of the project."""

    def get_deleted_objects(self: Any, objs: Any, request: Any) -> Any:
        found = DynamoModelAdmin.get_deleted_objects(self, objs, request)
        return (*found[:3], [each for each in objs if each.pk == "c1"])

    pages = registered(Company, get_deleted_objects=get_deleted_objects)
    path = acted(pages, companies(MANY))
    assert [each.pk for each in Company.objects.all()] == ["c1"]
    assert "1 object was rejected" in text_of(pages.get(path))
