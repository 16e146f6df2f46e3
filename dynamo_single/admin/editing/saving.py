"""The change form: save it in one transaction, choose the page after it, and show unknown attributes and the version.

It collects the writes of a form in a block of ``transactions``, and sends the block with the log entry. If DynamoDB
rejects any write, it does not write anything.

Django redirects to the list after a save. If no key lists the model, that page would report an error although the save
succeeded, so that ``RedirectMixin`` redirects to the object. The form shows and keeps attributes that the model does
not declare. ``check_version`` of a ``DynamoModelAdmin`` adds the version that the form showed.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import partial
from typing import Any, Final

from django.contrib import messages
from django.contrib.admin.utils import flatten_fieldsets, unquote
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils.translation import gettext as _
from msgspec import Struct, field

from dynamo_single import transactions
from dynamo_single.admin import history, trash
from dynamo_single.admin.errors import (
    REFUSALS,
    RelatedRefused,
    TooMuchWithFiles,
    add_row_errors,
    refused_form,
    user_message,
)
from dynamo_single.admin.lists.scanning import without_place
from dynamo_single.admin.references import in_key_order
from dynamo_single.admin.secrets import Masks, site_secrets
from dynamo_single.admin.types import AdminMixin
from dynamo_single.exceptions import NotSupported, PendingWrite, UnreadableItem
from dynamo_single.forms import READ_VERSION, VersionedModelForm, version_name
from dynamo_single.orm.items.form import form_of
from dynamo_single.orm.schema.fields.documents import document_text
from dynamo_single.orm.schema.keys import values
from dynamo_single.orm.schema.types import DynamoModel
from dynamo_single.table import names

logger = logging.getLogger("dynamo_single.admin")


class AtomicSaveMixin(AdminMixin):
    """A ``ModelAdmin`` that saves a form in one transaction: up to 100 actions, 4 MB and one table.

    It saves a larger form in parts, one request or transaction for each object, and a message reports this. The same
    happens if the project's code reads items that it has written in the form. It then calls the hooks of the first
    attempt again. https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_TransactWriteItems.html
    """

    #: Whether to save a form in one transaction. Otherwise the app writes and logs each object separately.
    save_at_once = True

    def changeform_view(
        self,
        request: HttpRequest,
        object_id: str | None = None,
        form_url: str = "",
        extra_context: dict[str, object] | None = None,
    ) -> Any:
        """Show the form to add or change an object. The form shows the error of a rejected save."""
        shown = partial(super().changeform_view, request, object_id, form_url, extra_context)
        try:
            return self._at_once(request, shown)
        except UnreadableItem:
            raise
        except RelatedRefused as refused:
            text = _("The admin saved the %(name)s “%(obj)s”. It did not save some related objects: %(reason)s")
            found = {
                "name": self.opts.verbose_name,
                "obj": refused.obj,
                "reason": user_message(request, refused.refusal),
            }
            self.message_user(request, text % found, messages.ERROR)
            return HttpResponseRedirect(trash.change_url(self, refused.obj))
        except PermissionDenied:
            obj = self.get_object(request, unquote(object_id)) if object_id and request.method == "POST" else None
            if not trash.is_deleted(obj) or not self.has_change_permission(request):
                raise
            text = _("Another user moved the %(name)s “%(obj)s” to the trash in the meantime. Nothing was saved.")
            self.message_user(request, text % {"name": self.opts.verbose_name, "obj": obj}, messages.ERROR)
            return HttpResponseRedirect(trash.change_url(self, obj))
        except (*REFUSALS, TooMuchWithFiles) as refusal:
            # get_form() reads it.
            request._refused_save = refusal, user_message(request, refusal)  # type: ignore[attr-defined]
            return shown()

    def _at_once(self, request: Any, shown: Callable[[], object]) -> Any:
        if request.method != "POST" or not self.save_at_once:
            return shown()
        try:
            with ExitStack() as block:
                block.enter_context(transactions.atomic())
                request._saved_at_once = _AtomicForm(block)
                # The first callback after the block: an error before it means that no write happened.
                transactions.on_commit(partial(setattr, request, "_saved_at_once", None))
                return shown()
        except REFUSALS:
            raise
        except (NotSupported, PendingWrite) as error:
            if _form_of(request) is None:
                raise
            if request.FILES:
                raise TooMuchWithFiles from error
            logger.warning(
                "Saving a form of %s in parts, because it does not fit into one transaction: %s", self, error
            )
            request._saved_in_parts = True
        finally:
            request._saved_at_once = None
        return shown()

    def get_form(self, request: HttpRequest, obj: Any = None, change: bool = False, **kwargs: object) -> Any:
        """Return the form, which has the reason as its error after a rejected save."""
        form_class = super().get_form(request, obj, change=change, **kwargs)
        refused = getattr(request, "_refused_save", None)
        return form_class if refused is None else refused_form(form_class, *refused)

    def _create_formsets(self, request: HttpRequest, obj: object, change: bool) -> tuple[list[object], list[object]]:
        django: Any = super()
        formsets, inlines = django._create_formsets(request, obj, change)
        refused = getattr(request, "_refused_save", None)
        if refused is not None:
            add_row_errors(formsets, refused[0])
        return formsets, inlines

    def save_related(self, request: HttpRequest, form: Any, formsets: object, change: bool) -> None:
        """Save the inlines. Save many-to-many relations last, because this reads their edges."""
        saved = _form_of(request)
        if saved is None:
            _with_refusal(form, partial(super().save_related, request, form, formsets, change))
            return
        if self.opts.many_to_many:
            saved.afterwards.append(partial(_with_refusal, form, form.save_m2m))
            form.save_m2m = _nothing
        super().save_related(request, form, formsets, change)

    def log_addition(self, request: HttpRequest, obj: Any, message: object) -> Any:
        """Log the addition of an object in the same transaction."""
        return self._logged(request, partial(super().log_addition, request, obj, message))

    def log_change(self, request: HttpRequest, obj: Any, message: object) -> Any:
        """Log the change of an object in the same transaction."""
        return self._logged(request, partial(super().log_change, request, obj, message))

    def response_add(self, request: HttpRequest, obj: Any, post_url_continue: str | None = None) -> HttpResponse:
        """Return Django's response after everything is written."""
        self._finish(request)
        return super().response_add(request, obj, post_url_continue)

    def response_change(self, request: HttpRequest, obj: Any) -> HttpResponse:
        """Return Django's response after everything is written."""
        self._finish(request)
        return super().response_change(request, obj)

    def _logged(self, request: HttpRequest, log: Callable[[], object]) -> Any:
        if history.is_in_dynamodb() and not history.is_in_same_table(self.model):
            self._finish(request)
        # In SQL, write the log first: Django rolls its transaction back if this one fails.
        entry = log()
        self._finish(request)
        return entry

    def _finish(self, request: Any) -> None:
        """Send the collected writes of the form, and report a form in parts."""
        saved = _form_of(request)
        if saved is not None:
            saved.block.close()
            request._saved_at_once = None
            for each in saved.afterwards:
                each()
        if request.__dict__.pop("_saved_in_parts", False):
            text = _("The changes were too large for one transaction, so the admin saved them in several steps.")
            self.message_user(request, text, messages.WARNING)


class _AtomicForm(Struct, frozen=True):
    """A form in one transaction: its block, and the writes after the block."""

    block: ExitStack
    afterwards: list[Callable[[], None]] = field(default_factory=list)


def _form_of(request: HttpRequest) -> _AtomicForm | None:
    """Return the form of a request, or ``None`` if the app writes objects separately or has sent all writes."""
    return getattr(request, "_saved_at_once", None)


def _nothing() -> None:
    return


def _with_refusal(form: Any, save: Callable[[], None]) -> None:
    """Save the parts after the object, which is already in the table and stays there if one of them fails."""
    try:
        save()
    except REFUSALS as refusal:
        raise RelatedRefused(form.instance, refusal) from refusal


class RedirectMixin(AdminMixin):
    """A ``ModelAdmin`` that redirects to the object, or to its app after a deletion, if no key lists the model.

    A user who came from a filtered list that a key supports returns to it. Does not send a request, except a GetItem
    for an object in the trash.
    """

    def get_preserved_filters(self, request: HttpRequest) -> str:
        """Return the parameters of the list that Django returns to, without the position of a scan."""
        return without_place(super().get_preserved_filters(request))

    def response_post_save_add(self, request: HttpRequest, obj: Any) -> HttpResponseRedirect:
        """Return Django's redirect, or one to the object's page."""
        found = super().response_post_save_add(request, obj)
        return HttpResponseRedirect(trash.change_url(self, obj)) if self._leads_nowhere(request, found) else found

    def response_post_save_change(self, request: HttpRequest, obj: Any) -> HttpResponseRedirect:
        """Return Django's redirect, or one to the object's page."""
        found = super().response_post_save_change(request, obj)
        return HttpResponseRedirect(trash.change_url(self, obj)) if self._leads_nowhere(request, found) else found

    def response_delete(self, request: HttpRequest, obj_display: str, obj_id: Any) -> HttpResponse:
        """Return Django's redirect, or one to the object in the trash or to the app."""
        found = super().response_delete(request, obj_display, obj_id)
        if not self._leads_nowhere(request, found):
            return found
        is_kept = trash.has_trash(self.model) and not trash.is_deleted_for_good(request)
        obj = self.get_object(request, str(obj_id)) if is_kept else None
        if obj is not None:
            return HttpResponseRedirect(trash.change_url(self, obj))
        place = {"app_label": self.opts.app_label}
        return HttpResponseRedirect(reverse("admin:app_list", kwargs=place, current_app=self.admin_site.name))

    def _leads_nowhere(self, request: HttpRequest, response: HttpResponse) -> bool:
        """Return whether a response redirects to the list of all objects although no key supports it."""
        name = f"admin:{self.opts.app_label}_{self.opts.model_name}_changelist"
        if not isinstance(response, HttpResponseRedirect) or self.get_preserved_filters(request):
            return False
        is_list = response.url.partition("?")[0] == reverse(name, current_app=self.admin_site.name)
        queryset: Any = self.get_queryset(request)
        return is_list and not in_key_order(queryset)[1]


class FormContextMixin(AdminMixin):
    """Lets each base class extend the context of the form's page. A custom ``render_change_form()`` still works."""

    def _prepare_form(self, request: HttpRequest, context: dict[str, Any], obj: DynamoModel | None) -> None:
        """Extend the page's context before Django renders it; ``obj`` is ``None`` on an add page."""

    def _finish_form(self, request: HttpRequest, response: Any, obj: DynamoModel | None) -> None:
        """Change the rendered page."""

    def render_change_form(
        self,
        request: HttpRequest,
        context: dict[str, Any],
        add: bool = False,
        change: bool = False,
        form_url: str = "",
        obj: Any = None,
    ) -> Any:
        """Return Django's page with the extensions of the base classes."""
        self._prepare_form(request, context, obj)
        response = super().render_change_form(request, context, add, change, form_url, obj)
        self._finish_form(request, response, obj)
        return response


#: The permission for undeclared attributes: that for the whole table, as no declaration says who may see them.
_PERMISSION: Final = "dynamo_single.view_table"
#: The most characters of a value, and attributes, on a page; an item has up to 400 KB.
MAX_LENGTH: Final = 10_000
MAX_ATTRIBUTES: Final = 100
#: The attributes of this app in items, in addition to those of the model.
_APP_NAMES: Final = frozenset(
    {
        names.PARTITION_KEY,
        names.SORT_KEY,
        names.ITEM_TYPE,
        names.SCHEMA_VERSION,
        names.COPIES_DUE,
        names.MOVED_FROM,
        names.COUNTING,
        names.DELETED_ALONG,
    }
)


_STOCK: Final = "admin/change_form.html"
_OURS: Final = "dynamo_single/admin/change_form.html"


class LeadsToItem(FormContextMixin):
    """Adds "Show in table" to an object's page for users who may see the table, unless its template is custom."""

    def _prepare_form(self, request: HttpRequest, context: dict[str, Any], obj: DynamoModel | None) -> None:
        super()._prepare_form(request, context, obj)
        site: Any = self.admin_site
        is_linked = obj is not None and hasattr(site, "_item_url")
        context["dynamo_item_url"] = site._item_url(request, obj) if is_linked else ""

    def _finish_form(self, request: HttpRequest, response: Any, obj: DynamoModel | None) -> None:
        super()._finish_form(request, response, obj)
        templates = getattr(response, "template_name", None)
        if isinstance(templates, Sequence) and not isinstance(templates, str):
            response.template_name = [_OURS if name == _STOCK else name for name in templates]


class UnknownAttributesMixin(FormContextMixin):
    """Adds the undeclared attributes of an object to its page for users who may view the table."""

    def _prepare_form(self, request: HttpRequest, context: dict[str, Any], obj: DynamoModel | None) -> None:
        super()._prepare_form(request, context, obj)
        user: Any = request.user
        is_shown = obj is not None and user.has_perm(_PERMISSION)
        context["dynamo_unknown"] = unknown_attributes(obj, Masks(site_secrets(self))) if is_shown else ()


def unknown_attributes(obj: Any, masks: Masks) -> list[tuple[str, str]]:
    """Return the names and values, as strings, of undeclared attributes, with masked secrets and without a request."""
    if obj._stored is None:
        return []
    model = type(obj)._meta.concrete_model
    form = form_of(model)
    item = obj._stored
    found = sorted(name for name in item if name not in form.known and not _is_own(name))
    kind = item.get(names.ITEM_TYPE, {}).get("S", "")
    visible = masks.masked(model, kind, {name: item[name] for name in found[:MAX_ATTRIBUTES]})
    return [(name, value_text(values.from_attribute_value(dict(value)))) for name, value in visible.items()]


def _is_own(name: str) -> bool:
    return name in _APP_NAMES or name.startswith(names.REFERRED_PREFIX)


def value_text(value: object) -> str:
    """Return a stored value for display: text as it is, anything else as indented JSON."""
    text = value if isinstance(value, str) else document_text(value)
    return text if len(text) <= MAX_LENGTH else f"{text[:MAX_LENGTH]}…"


def versioned_form(form: Any, model: type[DynamoModel]) -> Any:
    """Return the form class with the hidden field; raise ``ConfigurationError`` if the model has no version."""
    version_name(model)
    return form if issubclass(form, VersionedModelForm) else type(form.__name__, (VersionedModelForm, form), {})


def with_hidden_field(fieldsets: Any, hidden_field: str = READ_VERSION) -> Any:
    """Return the fieldsets with a hidden field in the last one, unless they contain it."""
    if not fieldsets or hidden_field in flatten_fieldsets(fieldsets):
        return fieldsets
    *others, (title, described) = fieldsets
    return [*others, (title, {**described, "fields": [*described["fields"], hidden_field]})]


def without_hidden_field(fieldsets: Any, hidden_field: str = READ_VERSION) -> list[tuple[object, dict[str, object]]]:
    """Return the fieldsets without the hidden field, for users who may only view."""
    return [
        (title, {**described, "fields": [name for name in described["fields"] if name != hidden_field]})
        for title, described in fieldsets
    ]
