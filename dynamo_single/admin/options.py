"""``DynamoModelAdmin``: Django's ``ModelAdmin`` for a model that is stored in DynamoDB."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from django import forms
from django.conf import settings
from django.contrib import messages
from django.contrib.admin.options import IS_POPUP_VAR
from django.contrib.admin.utils import flatten_fieldsets
from django.contrib.auth import get_permission_codename
from django.core.exceptions import ValidationError
from django.db import NotSupportedError, models
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.http.response import HttpResponseBase
from django.urls import NoReverseMatch, URLPattern, path
from django.utils.html import format_html
from django.utils.text import capfirst

from dynamo_single.admin import trash, trash_page, types
from dynamo_single.admin.batch_actions.actions import BatchActionsMixin, batched_action
from dynamo_single.admin.batch_actions.deletion_log import log_deletions
from dynamo_single.admin.editing import saving
from dynamo_single.admin.editing.merging import MergingMixin, RowFieldsMixin, ShowsMerging
from dynamo_single.admin.editing.saving import AtomicSaveMixin, LeadsToItem, RedirectMixin, UnknownAttributesMixin
from dynamo_single.admin.errors import REFUSALS, user_message, with_error_page
from dynamo_single.admin.forms import PermissionsFilter, ShowsBinary, in_lists_order, with_members
from dynamo_single.admin.history import LoggedModelAdmin
from dynamo_single.admin.inlines import InlinesMixin, children_of
from dynamo_single.admin.lists import downloads, in_memory, related, search, unsupported_page
from dynamo_single.admin.lists.autocomplete import AutocompleteMixin
from dynamo_single.admin.lists.changelist import KeyChangeList
from dynamo_single.admin.lists.filters import shows_trash
from dynamo_single.admin.lists.stepwise import KeyPaginator
from dynamo_single.admin.references import ReferencesMixin
from dynamo_single.admin.secrets import SecretsMixin, replaced, site_secrets, without_secrets
from dynamo_single.admin.trash_page import TrashPageMixin
from dynamo_single.admin.types import M
from dynamo_single.admin.viewing.display import hide_in_form
from dynamo_single.exceptions import InvalidCursor, TooManyMatches, UnknownField, UnreadableItem
from dynamo_single.orm.schema.fields.base import IdentityField
from dynamo_single.orm.schema.registry import layout_of
from dynamo_single.orm.schema.types import DynamoModel, ModelField
from dynamo_single.permission_fields import PermissionsField

if TYPE_CHECKING:
    from django.forms import Field as FormField

    from dynamo_single.orm.query.queryset import QuerySet

    class _Base(types.DynamoModelAdmin[M], LoggedModelAdmin[M]): ...

else:
    _Base = LoggedModelAdmin


#: The errors of an unsupported list: before a request is sent, or because there are too many matches to read.
REFUSED_LISTS = (NotSupportedError, UnknownField)


class DynamoModelAdmin(
    BatchActionsMixin,
    TrashPageMixin,
    SecretsMixin,
    AtomicSaveMixin,
    RedirectMixin,
    ShowsBinary,
    MergingMixin,
    UnknownAttributesMixin,
    LeadsToItem,
    InlinesMixin,
    ShowsMerging,
    RowFieldsMixin,
    ReferencesMixin,
    AutocompleteMixin,
    _Base[M],
):
    """The admin of a model that is stored in DynamoDB, with the options of Django's ``ModelAdmin``.

    Without ``ordering``, a list has the order of the key that serves it. Up to ``list_max_bytes``, and up to
    ``list_max_in_memory`` rows if it is set, are read for features that no key supports: any order, ``search_fields``
    as in Django, filters, facets and dates. A page of a larger list shows what keys support. Identifiers and automatic
    timestamps are shown, and the attributes of the primary key can only be set when an object is added.
    """

    paginator = KeyPaginator
    #: The most bytes that a list reads into memory for features that no key supports; ``0`` for the default of
    #: ``allow_in_memory()``.
    list_max_bytes = 1024 * 1024
    #: The most rows that it reads for them; ``None`` if only the bytes are bounded, ``0`` to read none.
    list_max_in_memory: int | None = None
    #: The most items that a scan of a larger list may read; ``0`` disables scans.
    list_scan_budget = 100_000
    #: The page sizes that users can choose, in addition to ``list_per_page``.
    list_page_sizes: Sequence[int] = (25, 100, 200)
    show_full_result_count = False
    #: Whether a form is rejected if its object has changed since it was shown; the model needs a ``VersionAttribute``.
    check_version = False

    if TYPE_CHECKING:

        def get_queryset(self, request: HttpRequest) -> QuerySet[M]: ...

    else:

        def get_queryset(self, request: HttpRequest) -> Any:
            """Return Django's queryset. While a list is shown, it can use the rows in memory."""
            return in_memory.with_cache(request, self, super().get_queryset(request))

    def __init__(self, model: Any, admin_site: Any) -> None:
        super().__init__(model, admin_site)
        if self.check_version:
            self.form = saving.versioned_form(self.form, model)
        if trash.has_trash(model) and self.delete_selected_confirmation_template is None:
            name = "dynamo_single/admin/delete_selected.html"
            self.delete_selected_confirmation_template = name  # type: ignore[misc]  # a class variable in the stubs

    def get_changelist(self, request: HttpRequest, **kwargs: object) -> type[KeyChangeList]:
        """Return the class of the list page."""
        return KeyChangeList

    def get_actions(self, request: HttpRequest, action_location: object = None) -> Any:
        """Return the actions: restore and delete permanently in the list of the trash, otherwise the declared ones.

        Since 6.1, Django passes the location of the actions: the list or an object's own page.
        """
        actions: dict[str, Any] = super().get_actions(request, **_placed(action_location))
        if not trash.has_trash(self.model) or not shows_trash(request):
            return actions
        if self.actions is None or IS_POPUP_VAR in request.GET:
            return {}
        in_trash: dict[str, Any] = {}
        if self.has_restore_permission(request):
            in_trash["restore_selected"] = batched_action(self.get_action(trash.restore_selected), "restore")
        delete = self.get_action("delete_selected")
        if delete is not None and self.has_hard_delete_permission(request):
            in_trash["delete_selected"] = batched_action(trash.permanent_deletion(delete), "purge")
        return in_trash

    def response_action(
        self, request: HttpRequest, queryset: Any, action_location: object = None
    ) -> HttpResponse | None:
        """Run an action. A rejection is a message, on the list and on an object's own page (since Django 6.1)."""
        is_for_good = trash.has_trash(self.model) and shows_trash(request)
        try:
            chosen = in_memory.action_rows(request, self, queryset)
            with log_deletions(request, self, "purge" if is_for_good else "delete"):
                return super().response_action(request, chosen, **_placed(action_location))
        except TooManyMatches:
            self.message_user(request, unsupported_page.too_many_rows(self, request), messages.ERROR)
            return HttpResponseRedirect(request.get_full_path())
        except UnreadableItem:
            raise
        except REFUSALS as refusal:
            self.message_user(request, user_message(request, refusal), messages.ERROR)
            return HttpResponseRedirect(request.get_full_path())

    def get_search_results(self, request: HttpRequest, queryset: Any, search_term: str) -> tuple[Any, bool]:
        """Return the rows with every word in one of ``search_fields``; above the bound, what keys find by the text."""
        fields = [str(name) for name in without_secrets(self, self.get_search_fields(request))]
        fields = related.search_fields(request, self.model, fields)
        text = search_term.strip()
        if not fields or not text:
            return queryset, False
        if in_memory.cache_of(queryset) is None:
            queryset = in_memory.read_for_search(request, self, queryset)
        if in_memory.cache_of(queryset):
            return search.contains_words(queryset, fields, text), False
        return search.search_by_keys(queryset, fields, text)[0], False

    def formfield_for_dbfield(self, db_field: ModelField, request: HttpRequest, **kwargs: object) -> FormField | None:
        """Return Django's form field. Permissions are chosen from two searchable lists."""
        if isinstance(db_field, PermissionsField):
            kwargs = {"widget": PermissionsFilter(db_field.verbose_name), **kwargs}
        return super().formfield_for_dbfield(db_field, request, **kwargs)

    def get_changelist_formset(self, request: HttpRequest, **kwargs: object) -> Any:
        """Return the formset of ``list_editable``, which keeps the order of the rows."""
        given: Any = kwargs.get("formset")
        return super().get_changelist_formset(request, **{**kwargs, "formset": in_lists_order(given)})

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, object] | None = None) -> Any:
        """Show the list, or a page with the reason if no key supports it. ``?_csv=`` is its rows as a file."""
        if (response := unsupported_page.early_response(self, request)) is not None:
            return response
        in_memory.share_rows(request)
        is_download = downloads.begin(request)
        try:
            if is_download:
                return downloads.response(self, request)
            response = super().changelist_view(request, extra_context)
            unsupported_page.use_list_template(response)
            # A query that the template sends while it is rendered can be rejected too.
            return with_error_page(
                response, REFUSED_LISTS, functools.partial(unsupported_page.refused_page, self, request)
            )
        except UnreadableItem:
            raise
        except REFUSED_LISTS as error:
            return unsupported_page.refused_page(self, request, error)
        except InvalidCursor:
            return unsupported_page.back_to_beginning(request)
        except REFUSALS as refusal:
            if request.method != "POST":
                return unsupported_page.refused_page(self, request, refusal)
            self.message_user(request, user_message(request, refusal), messages.ERROR)
            return HttpResponseRedirect(request.get_full_path())

    def get_object(self, request: HttpRequest, object_id: str, from_field: str | None = None) -> M | None:
        """Return the object, even from the trash: one strongly consistent GetItem by its ``pk``."""
        queryset: Any = self.get_queryset(request)
        if trash.has_trash(self.model):
            queryset = queryset.with_visibility("all")
        field: Any = self.opts.pk if not from_field else self.opts.get_field(from_field)
        if field.primary_key:
            queryset = queryset.consistent()
        try:
            found: M = queryset.get(**{field.name: field.to_python(object_id)})
        except UnreadableItem:
            raise
        except (self.model.DoesNotExist, ValidationError, ValueError):
            return None
        return found

    def has_change_permission(self, request: HttpRequest, obj: M | None = None) -> bool:
        """Return what Django does, and False in the trash: objects there can only be viewed, restored or deleted."""
        return not trash.is_deleted(obj) and super().has_change_permission(request, obj)

    def has_delete_permission(self, request: HttpRequest, obj: M | None = None) -> bool:
        """Return what Django does; for objects in the trash, the permission to delete permanently."""
        if trash.is_deleted(obj):
            return self.has_hard_delete_permission(request, obj)
        return super().has_delete_permission(request, obj)

    def has_restore_permission(self, request: HttpRequest, obj: M | None = None) -> bool:
        """Return whether the user may restore objects from the trash."""
        return self._has_permission(request, "restore")

    def has_hard_delete_permission(self, request: HttpRequest, obj: M | None = None) -> bool:
        """Return whether the user may permanently delete objects in the trash."""
        return self._has_permission(request, "hard_delete")

    def _has_permission(self, request: HttpRequest, action: str) -> bool:
        user: Any = request.user
        return bool(user.has_perm(f"{self.opts.app_label}.{get_permission_codename(action, self.opts)}"))

    def get_readonly_fields(self, request: HttpRequest, obj: M | None = None) -> tuple[Any, ...]:
        """Return the declared fields, those that the app sets, and for an existing object those of its primary key."""
        declared = super().get_readonly_fields(request, obj)
        automatic = self._automatic(obj)
        if obj is None:
            named = self._named_fields()
            automatic = [name for name in automatic if name in named]
        more: list[Any] = [name for name in automatic if name not in declared]
        shown = more if self._named_fields() else trash_page.named_columns(more)
        return tuple(replaced((*declared, *shown), self._binary))

    def _automatic(self, obj: object) -> list[str]:
        in_key = set() if obj is None else self._key()
        names = []
        for field in self.opts.concrete_fields:
            is_set = not field.editable and not isinstance(field, IdentityField)
            if field.name in trash.TRASH_ATTRIBUTES and getattr(obj, field.name, None) is None:
                continue
            if is_set or field.attname in in_key:
                names.append(field.name)
        return names

    def _key(self) -> set[str]:
        model: Any = self.model
        return {*layout_of(model).identity}

    def _named_fields(self) -> set[str]:
        if self.fieldsets:
            return {*map(str, flatten_fieldsets(self.fieldsets))}
        return {*map(str, flatten_fieldsets([(None, {"fields": self.fields})]))} if self.fields else set()

    def get_fields(self, request: HttpRequest, obj: M | None = None) -> Any:
        """Return the declared fields, or all: for an existing object those of its key first, automatic ones last."""
        names = list(super().get_fields(request, obj))
        if self.fields or obj is None:
            return names
        chosen = [field.name for field in self.opts.concrete_fields if field.editable and field.attname in self._key()]
        return [*(name for name in chosen if name in names), *(name for name in names if name not in chosen)]

    def get_fieldsets(self, request: HttpRequest, obj: M | None = None) -> Any:
        """Return the declared fieldsets. Users who may only view see sets as their members."""
        declared = super().get_fieldsets(request, obj)
        if obj is None:
            return declared
        if self.has_change_permission(request, obj):
            return saving.with_hidden_field(declared) if self.check_version else declared
        return with_members(self.opts, saving.without_hidden_field(declared), site_secrets(self))

    def get_formset_kwargs(self, request: HttpRequest, obj: M, inline: Any, prefix: str) -> dict[str, object]:
        """Return Django's arguments without a query for a new object; in the trash, with the deleted children."""
        parameters: dict[str, Any] = super().get_formset_kwargs(request, obj, inline, prefix)
        if obj._state.adding:
            parameters["queryset"] = parameters["queryset"].none()
        else:
            parameters["queryset"] = children_of(parameters["queryset"], obj)
        return parameters

    def get_changeform_initial_data(self, request: HttpRequest) -> dict[str, Any]:
        """Return the initial values in the address, with datetimes parsed: Django's widget does not accept text."""
        found: dict[str, Any] = super().get_changeform_initial_data(request)
        for field in self.opts.concrete_fields:
            if isinstance(field, models.DateTimeField) and isinstance(found.get(field.name), str):
                try:
                    found[field.name] = forms.DateTimeField().to_python(found[field.name])
                except ValidationError:
                    del found[field.name]
        return found

    def _prepare_form(self, request: HttpRequest, context: dict[str, Any], obj: DynamoModel | None) -> None:
        super()._prepare_form(request, context, obj)
        shown = (self.model, *(each.formset.model for each in context.get("inline_admin_formsets", ())))
        context["dynamo_has_times"] = settings.USE_TZ and any(_has_times(each) for each in shown)
        hide_in_form(self, request, context)

    def _finish_form(self, request: HttpRequest, response: Any, obj: DynamoModel | None) -> None:
        super()._finish_form(request, response, obj)
        if obj is not None and trash.is_deleted(obj) and self.change_form_template is None:
            trash_page.show_trash_page(self, request, obj, response)

    def get_urls(self) -> list[URLPattern]:
        """Return Django's addresses and the restore view's."""
        if not trash.has_trash(self.model):
            return super().get_urls()
        name = f"{self.opts.app_label}_{self.opts.model_name}_restore"
        view = self.admin_site.admin_view(self.restore_view)
        return [path("<path:object_id>/restore/", view, name=name), *super().get_urls()]

    def restore_view(self, request: HttpRequest, object_id: str) -> HttpResponseBase:
        """Restore an object from the trash (POST only)."""
        return trash.restore_view(self, request, object_id)

    def get_deleted_objects(
        self, objs: Any, request: HttpRequest
    ) -> tuple[list[Any], dict[str, int], set[str], list[Any]]:
        """Return the objects and their cascading children, with the permissions that are missing."""
        return trash.deleted_objects(self, request, objs)

    def shown_in_list(self, obj: M) -> str:
        """Return the object's kind and name, with a link to its page."""
        name = capfirst(self.opts.verbose_name)
        try:
            return format_html('{}: <a href="{}">{}</a>', name, trash.change_url(self, obj), obj)
        except NoReverseMatch:
            return format_html("{}: {}", name, obj)

    def deletion_message(self, obj: Any) -> str:
        """Return the log message of a deletion."""
        if not trash.has_trash(self.model):
            return ""
        return str(trash.DELETED if trash.is_deleted(obj) else trash.MOVED)

    def delete_model(self, request: HttpRequest, obj: M) -> None:
        """Delete an object: move it to the trash, or delete it permanently from there."""
        trash.delete(request, obj)

    def delete_queryset(self, request: HttpRequest, queryset: Any) -> None:
        """Delete each object: one request or transaction each."""
        trash.delete_all(self, request, queryset)

    def message_user(
        self,
        request: HttpRequest,
        message: Any,
        level: int | str = messages.INFO,
        extra_tags: str = "",
        fail_silently: bool = False,
    ) -> None:
        """Add a message. After a move to the trash, it replaces Django's message about a deletion."""
        message = trash.trash_message(request, message, level)
        super().message_user(request, message, level, extra_tags, fail_silently)

    def delete_view(
        self, request: HttpRequest, object_id: str, extra_context: dict[str, object] | None = None
    ) -> HttpResponse:
        """Show the confirmation page, then delete; report a concurrent change."""
        try:
            return super().delete_view(request, object_id, extra_context)
        except UnreadableItem:
            raise
        except REFUSALS as refusal:
            self.message_user(request, user_message(request, refusal), messages.ERROR)
            return HttpResponseRedirect(request.get_full_path())

    def render_delete_form(self, request: HttpRequest, context: dict[str, object]) -> Any:
        """Return the confirmation page, which says whether the object goes to the trash or is deleted permanently."""
        response: Any = super().render_delete_form(request, context)
        if trash.has_trash(self.model) and self.delete_confirmation_template is None:
            response.template_name = "dynamo_single/admin/delete.html"
            response.context_data["for_good"] = trash.is_deleted(context["object"])
        return response


def _has_times(model: type[DynamoModel]) -> bool:
    return any(isinstance(field, models.DateTimeField) for field in model._meta.concrete_fields)


def _placed(action_location: object) -> dict[str, Any]:
    """Return the location of actions as an argument of Django's methods, which accept none before 6.1."""
    return {} if action_location is None else {"action_location": action_location}
