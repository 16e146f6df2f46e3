"""Write and show the admin's log, which is stored with the users, in DynamoDB or in SQL.

A log entry refers to its user, so that the user model decides for every model of the site. Changes of objects in SQL
are logged in DynamoDB if their user is stored there, and vice versa.
"""

from __future__ import annotations

import copy
from collections.abc import Container, Iterable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, TypeVar

from django.contrib.admin import ModelAdmin
from django.contrib.admin.utils import unquote
from django.contrib.auth import get_user_model
from django.core.exceptions import PermissionDenied
from django.core.paginator import Paginator
from django.db import models, router, transaction
from django.http import HttpRequest
from django.template.response import TemplateResponse
from django.utils.encoding import force_str
from django.utils.text import capfirst
from django.utils.translation import gettext as _

from dynamo_single.admin.lists.stepwise import KeyPaginator
from dynamo_single.admin.secrets import Masks, site_secrets
from dynamo_single.backend.errors import is_stored_in_dynamodb
from dynamo_single.forms import in_words
from dynamo_single.orm.schema.keys.secret_values import MASK
from dynamo_single.orm.schema.types import DynamoModel

if TYPE_CHECKING:
    from typing_extensions import TypeVar as TypeVarWithDefault  # Python's own since 3.13

    M = TypeVarWithDefault("M", bound=models.Model, default=Any)

    class _Base(ModelAdmin[M]): ...

else:
    M = TypeVar("M")

    class _Base(ModelAdmin):
        def __class_getitem__(cls, model: type[models.Model]) -> type:
            """Return the class itself. The parameter is for type checkers; Django's class has none at run time."""
            return cls


ENTRIES_PER_PAGE = 100
#: The most characters of a value, and fields of one change, that the log stores.
MAX_LENGTH: Final = 100
MAX_FIELDS: Final = 50
_PRECISION = timedelta(milliseconds=1)
#: The key of the delayed entries in a request's ``__dict__``.
_DEFERRED = "_dynamo_single_deferred"
#: As in ``django.contrib.admin.models``, which cannot be imported before apps are ready.
ADDITION, CHANGE, DELETION = 1, 2, 3


def is_in_dynamodb() -> bool:
    """Return whether the log is stored in DynamoDB, because the users are."""
    return is_stored_in_dynamodb(get_user_model())


def is_in_same_table(model: type[DynamoModel]) -> bool:
    """Return whether the log is stored in the table of a model, so that one transaction can write both."""
    if not is_in_dynamodb() or not is_stored_in_dynamodb(model):
        return False
    from dynamo_single.admin.log import LogEntry

    return bool(LogEntry._options.alias == model._options.alias)


def lists_by_time() -> bool:
    """Return whether a key lists the entries of all users by their time."""
    from dynamo_single.admin import log

    return is_in_dynamodb() and log.TIME_INDEX is not None


def log_entries() -> Any:
    """Return the log's queryset, newest first."""
    from dynamo_single.admin.log import LogEntry

    return LogEntry.objects.all()


def deletion_entry(model: type[models.Model], pk: str, moment: datetime) -> Any:
    """Return the entry for the deletion of an object in the trash, or ``None`` if the admin did not delete it.

    Sends one Query of the ten latest entries. An entry before ``moment`` belongs to a deletion that was reverted. Also
    returns ``None`` if the log is in SQL.
    """
    if not is_in_dynamodb():
        return None
    found = log_entries().filter(object_type=model._meta.label_lower, object_id=pk).order_by("-action_time")
    return next((entry for entry in found[:10] if entry.is_deletion() and entry.action_time >= moment), None)


def keys_of_user(request: HttpRequest, model: type[models.Model], flag: int, since: datetime) -> set[str]:
    """Return the keys of a model's objects in the user's log entries of one kind since a datetime.

    Sends a strongly consistent Query of all entries of the user since then.
    """
    if not is_in_dynamodb():
        return {str(each.object_id) for each in _entries_in_sql(model, flag, since).filter(user_id=request.user.pk)}
    # Times are stored in milliseconds.
    found = log_entries().consistent().filter(user_id=request.user.pk, action_time__gte=since - _PRECISION)
    label = model._meta.label_lower
    return {each.object_id for each in found if each.object_type == label and each.action_flag == flag}


def keys_of_others(
    request: HttpRequest, model: type[models.Model], keys: Iterable[str], flag: int, since: datetime
) -> set[str]:
    """Return the keys of objects that, according to the log, another user has deleted or restored since a datetime.

    Sends a Query of the ten latest entries for each key. Changes by forms, whose messages are lists, are omitted.
    """
    if not is_in_dynamodb():
        found = list(_entries_in_sql(model, flag, since).filter(object_id__in=[*keys]))
    else:
        label = model._meta.label_lower
        every = (log_entries().filter(object_type=label, object_id=key).order_by("-action_time")[:10] for key in keys)
        found = [each for some in every for each in some if each.action_flag == flag]
        found = [each for each in found if each.action_time >= since - _PRECISION]
    own = str(request.user.pk)
    by_others = (each for each in found if str(each.user_id) != own)
    return {str(each.object_id) for each in by_others if not (each.change_message or "").startswith("[")}


def _entries_in_sql(model: type[models.Model], flag: int, since: datetime) -> Any:
    from django.contrib.admin.models import LogEntry
    from django.contrib.contenttypes.models import ContentType

    kind = ContentType.objects.get_for_model(model, for_concrete_model=False)
    return LogEntry.objects.filter(content_type=kind, action_flag=flag, action_time__gte=since)


def with_values(message: list[dict[str, Any]], form: Any, formsets: Iterable[Any], masks: Masks) -> list[Any]:
    """Return Django's message of a change with the known old and new values of each field.

    Django names the changed rows of an inline in the order in which it saved them.
    """
    rows = [*_changed_rows(formsets or ())]
    found: list[Any] = []
    left = MAX_FIELDS
    for entry in message:
        changed = entry.get("changed")
        if changed is None:
            found.append(entry)
            continue
        source = (rows.pop(0) if rows else None) if "object" in changed else form
        values = {} if source is None else dict(islice(_values(source, masks), left))
        left -= len(values)
        found.append({"changed": {**changed, "values": values}} if values else entry)
    return found


def _changed_rows(formsets: Iterable[Any]) -> Iterator[Any]:
    for formset in formsets:
        by_object = {id(form.instance): form for form in formset.initial_forms}
        for changed, _fields in formset.changed_objects:
            yield by_object.get(id(changed))


def _values(form: Any, masks: Masks) -> Iterator[tuple[str, tuple[str, str]]]:
    for name in form.changed_data:
        field = form.fields.get(name)
        if field is None:
            continue
        label, model = force_str(field.label or name), type(form.instance)
        if masks.hides(model, "", name):
            yield label, (MASK, MASK)
            continue
        shown = (masks.inside(model, name, each) for each in (form[name].initial, form.cleaned_data.get(name)))
        before, after = (_shortened(in_words(field, each)) for each in shown)
        yield label, (before, after)


def _shortened(text: str) -> str:
    return text if len(text) <= MAX_LENGTH else f"{text[: MAX_LENGTH - 1]}…"


class DeferredEntries:
    """The entries of deletions that have not happened yet: Django logs them before it deletes."""

    def __init__(self) -> None:
        self._held: list[tuple[LoggedModelAdmin[Any], Any, str]] = []

    def hold(self, modeladmin: LoggedModelAdmin[Any], instances: Iterable[Any]) -> None:
        """Store a copy of each object, because a deletion changes it."""
        self._held += [(modeladmin, copy.copy(obj), modeladmin.deletion_message(obj)) for obj in instances]

    def keys_of(self, model: type[models.Model]) -> list[str]:
        """Return the keys of the objects of a model."""
        return [str(obj.pk) for _admin, obj, _message in self._held if isinstance(obj, model)]

    def write(self, request: HttpRequest, left: Container[tuple[type[models.Model], str]] = ()) -> None:
        """Write the entries, except for objects that are ``left``: one PutItem each."""
        held, self._held = self._held, []
        for modeladmin, obj, message in held:
            if (type(obj), str(obj.pk)) not in left:
                modeladmin._write_deletion(request, obj, message)


@contextmanager
def defer_entries(request: HttpRequest) -> Iterator[DeferredEntries]:
    """Delay the entries of ``log_deletions()`` until ``DeferredEntries.write()`` is called."""
    before, held = request.__dict__.get(_DEFERRED), DeferredEntries()
    request.__dict__[_DEFERRED] = held
    try:
        yield held
    finally:
        request.__dict__[_DEFERRED] = before


def write_entry(request: HttpRequest, obj: models.Model, action_flag: int, message: object = "") -> Any:
    """Write one entry: one PutItem. ``message`` is a text, or a list as ``ModelAdmin`` constructs it."""
    from dynamo_single.admin.log import LogEntry

    return LogEntry.objects.log_actions(request.user.pk, [obj], action_flag, message, single_object=True)


def write_deletion(request: HttpRequest, model: type[models.Model], key: str, name: str, message: str) -> None:
    """Write the entry for the deletion of an object that may already be gone."""
    values = {"user_id": request.user.pk, "object_id": key, "object_repr": name[:200], "action_flag": DELETION}
    if is_in_dynamodb():
        from dynamo_single.admin.log import LogEntry

        LogEntry.objects.create(**values, object_type=model._meta.label_lower, change_message=message)
        return
    from django.contrib.admin.models import LogEntry as DjangoLogEntry
    from django.contrib.contenttypes.models import ContentType

    kind = ContentType.objects.get_for_model(model, for_concrete_model=False)
    DjangoLogEntry.objects.create(**values, content_type=kind)


class LoggedModelAdmin(_Base[M]):
    """A ``ModelAdmin`` of any model that writes its log where the users are stored."""

    def construct_change_message(self, request: HttpRequest, form: Any, formsets: Any, add: bool = False) -> Any:
        """Return Django's message with the old and new values of each changed field."""
        message: Any = super().construct_change_message(request, form, formsets, add)
        if add or not isinstance(message, list):
            return message
        return with_values(message, form, formsets, Masks(site_secrets(self)))

    def log_addition(self, request: HttpRequest, obj: Any, message: object) -> Any:
        """Log that an object was added: one PutItem."""
        if not is_in_dynamodb():
            return super().log_addition(request, obj, message)
        return write_entry(request, obj, ADDITION, message)

    def log_change(self, request: HttpRequest, obj: Any, message: object) -> Any:
        """Log that an object was changed: one PutItem."""
        if not is_in_dynamodb():
            return super().log_change(request, obj, message)
        return write_entry(request, obj, CHANGE, message)

    def log_deletions(self, request: HttpRequest, queryset: Iterable[Any]) -> Any:
        """Log that objects will be deleted: one PutItem each, sent after the deletion has succeeded.

        Django calls this before it deletes, and its rollback removes the entry if that fails. DynamoDB does not roll
        back, so that the entries wait for the end of the view's ``atomic()`` block.
        """
        if hasattr(ModelAdmin, "log_deletion") and type(self).log_deletion is not LoggedModelAdmin.log_deletion:
            return [self.log_deletion(request, obj, str(obj)) for obj in queryset]
        return self._log_deletions(request, queryset)

    def log_deletion(self, request: HttpRequest, obj: Any, object_repr: str) -> Any:
        """Log that an object will be deleted. Before Django 6.0, ``log_deletions()`` calls an override of this."""
        return self._log_deletions(request, [obj])

    def _log_deletions(self, request: HttpRequest, objects: Iterable[Any]) -> Any:
        held: DeferredEntries | None = request.__dict__.get(_DEFERRED)
        if held is not None:
            return held.hold(self, objects)
        if not is_in_dynamodb():
            return self._write_deletions_in_sql(request, objects)
        for obj in objects:
            # A deletion changes the object, so that a copy is needed.
            entry = partial(self._write_deletion, request, copy.copy(obj), self.deletion_message(obj))
            transaction.on_commit(entry, using=router.db_for_write(self.model))
        return None

    def _write_deletion(self, request: HttpRequest, obj: Any, message: str) -> None:
        if is_in_dynamodb():
            write_entry(request, obj, DELETION, message)
        else:
            self._write_deletions_in_sql(request, [obj])

    def _write_deletions_in_sql(self, request: HttpRequest, objects: Any) -> Any:
        from django.contrib.admin.models import LogEntry

        # As in Django, whose own method warns about log_deletion() before 6.0.
        user: Any = request.user
        return LogEntry.objects.log_actions(user_id=user.pk, queryset=objects, action_flag=DELETION)

    def deletion_message(self, obj: models.Model) -> str:
        """Return the log message of a deletion."""
        return ""

    def history_view(self, request: HttpRequest, object_id: str, extra_context: dict[str, object] | None = None) -> Any:
        """Show an object's log: one Query on the log's index, and one BatchGetItem for the users."""
        if not is_in_dynamodb():
            return super().history_view(request, object_id, extra_context)
        obj = self.get_object(request, unquote(object_id))
        if obj is None:
            return self._get_obj_does_not_exist_redirect(  # type: ignore[attr-defined]  # private to Django
                request, self.opts, object_id
            )
        if not self.has_view_or_change_permission(request, obj):
            raise PermissionDenied
        request.current_app = self.admin_site.name
        return TemplateResponse(
            request,
            self.object_history_template
            or [
                f"admin/{self.opts.app_label}/{self.opts.model_name}/object_history.html",
                f"admin/{self.opts.app_label}/object_history.html",
                "admin/object_history.html",
            ],
            {**self._history_context(request, obj), **(extra_context or {})},
        )

    def _history_context(self, request: HttpRequest, obj: Any) -> dict[str, object]:
        found = log_entries().filter(object_type=self.opts.label_lower, object_id=str(obj.pk)).select_related("user")
        paginator: Paginator[Any] = KeyPaginator(found.order_by("action_time"), ENTRIES_PER_PAGE)
        page = paginator.get_page(request.GET.get("p", 1))
        return {
            **self.admin_site.each_context(request),
            "title": _("Change history: %s") % obj,
            "subtitle": None,
            "action_list": page,
            "page_range": paginator.get_elided_page_range(page.number),
            "page_var": "p",
            "pagination_required": paginator.count > ENTRIES_PER_PAGE,
            "module_name": str(capfirst(self.opts.verbose_name_plural)),
            "object": obj,
            "opts": self.opts,
            "preserved_filters": self.get_preserved_filters(request),
        }
