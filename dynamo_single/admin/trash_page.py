"""Show how objects in the trash were deleted, how long they are kept, and what a restoration includes.

The list of the trash has additional columns. The page of an object shows all details.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any, cast

from django.contrib.admin import display
from django.contrib.admin.checks import ModelAdminChecks
from django.core.checks import CheckMessage, Error
from django.core.exceptions import ObjectDoesNotExist
from django.http import HttpRequest
from django.utils.text import capfirst
from django.utils.translation import gettext_lazy as _
from msgspec import Struct

from dynamo_single.admin import history, trash
from dynamo_single.admin.lists.filters import TrashFilter, shows_trash
from dynamo_single.admin.types import AdminMixin, DynamoModelAdmin
from dynamo_single.admin.viewing.rules import may_view
from dynamo_single.orm.schema.references import Children
from dynamo_single.orm.schema.registry import model_of_type
from dynamo_single.orm.schema.types import DynamoModel
from dynamo_single.orm.write.trash import restorable_dependents
from dynamo_single.table.flow import run

#: The most children that the page of an object in the trash names.
_NAMED = 100
#: The key, in an object's ``__dict__``, of the object that it went to the trash with, once it has been read.
_TAKEN_WITH = "_dynamo_taken_with"


class ListChecks(ModelAdminChecks):
    """Django's checks of a ``ModelAdmin``, extended to ``Children`` and to the additional columns of the trash."""

    def _check_list_display_item(self, obj: Any, item: object, label: str) -> list[CheckMessage]:
        if isinstance(item, str) and not hasattr(obj, item) and isinstance(getattr(obj.model, item, None), Children):
            # Django does not find a field with this name, and would call the manager for each row.
            said = f"The value of '{label}' must not be a many-to-many field or a reverse foreign key."
            return [Error(said, obj=type(obj), id="admin.E109")]
        return cast("list[CheckMessage]", cast("Any", super())._check_list_display_item(obj, item, label))

    def _check_list_display_links(self, obj: Any) -> list[CheckMessage]:
        links, django = obj.list_display_links, cast("Any", super())
        if type(obj).get_list_display is not TrashPageMixin.get_list_display or not isinstance(links, list | tuple):
            return cast("list[CheckMessage]", django._check_list_display_links(obj))
        # Django skips this check if get_list_display() is overridden. Ours only adds columns.
        return [
            error
            for place, name in enumerate(links)
            for error in django._check_list_display_links_item(obj, name, f"list_display_links[{place}]")
        ]


class TrashPageMixin(AdminMixin):
    """A ``ModelAdmin`` whose trash shows when and with which object each row was deleted, and how long it is kept."""

    checks_class = ListChecks

    def get_list_filter(self, request: HttpRequest) -> Any:
        """Return the declared filters, and the trash filter if the model has soft delete."""
        declared = super().get_list_filter(request)
        model: Any = self.model
        return (*declared, TrashFilter) if trash.has_trash(model) else declared

    def get_list_display(self, request: HttpRequest) -> Any:
        """Return the declared columns; in the trash, add the columns of deleted objects."""
        declared = super().get_list_display(request)
        model: Any = self.model
        if not trash.has_trash(model) or not shows_trash(request):
            return declared
        return (*declared, *trash_columns(model, without=declared))

    def get_changelist_instance(self, request: HttpRequest) -> Any:
        """Return Django's list. In the trash, read the roots of the rows' deletions: one BatchGetItem per model."""
        changelist: Any = super().get_changelist_instance(request)
        if taken_with in changelist.list_display:
            read_roots(self, request, changelist.result_list)
        return changelist


def trash_columns(model: Any, *, without: Sequence[object] = ()) -> list[object]:
    """Return the trash columns that a model has: names of fields, and a callable for ``deleted_with``."""
    fields = {field.name for field in model._meta.concrete_fields}
    return named_columns([name for name in trash.TRASH_ATTRIBUTES if name in fields and name not in without])


def named_columns(fields: Iterable[str]) -> list[object]:
    """Return names of fields, and replace ``deleted_with`` by a callable that shows the name of the object."""
    return [taken_with if name == "deleted_with" else name for name in fields]


@display(description=_("deleted with"))
def taken_with(obj: DynamoModel) -> str | None:
    """Return the type and name of the object that ``obj`` was deleted with, or its key if it was not read."""
    if not getattr(obj, "deleted_with", None):
        return None
    return str(obj.__dict__.get(_TAKEN_WITH) or _by_key(obj))


def read_roots(modeladmin: Any, request: HttpRequest, objects: Iterable[DynamoModel]) -> None:
    """Read the objects that ``objects`` were deleted with, in one BatchGetItem per model, and store their names.

    For a hidden object, store only its type.
    """
    marked: list[Any] = [obj for obj in objects if getattr(obj, "deleted_with", None)]
    roots = _roots(marked)
    for obj in marked:
        root = roots.get(obj.deleted_with)
        if root is not None:
            obj.__dict__[_TAKEN_WITH] = trash.label_for(modeladmin, request, root)


def _roots(objects: Sequence[Any]) -> dict[str, Any]:
    """Return the root objects of the deletions by their markers, except permanently deleted ones."""
    wanted: dict[Any, dict[str, str]] = {}
    for obj in objects:
        model, pk = _marked_root(obj)
        if model is not None:
            wanted.setdefault(model, {})[pk] = obj.deleted_with
    return {
        marks[str(root.pk)]: root
        for model, marks in wanted.items()
        for root in getattr(model, "all_objects", model._default_manager).filter(pk__in=[*marks])
    }


def _marked_root(obj: Any) -> tuple[Any, str]:
    """Return the model and ``pk`` in an object's marker; the model is ``None`` if it is not installed."""
    mark, alias = obj.deleted_with, type(obj)._options.alias
    for position, letter in enumerate(mark):
        # An item type can contain the separator.
        if letter == "#" and (model := model_of_type(alias, mark[:position])) is not None:
            return model, mark[position + 1 :]
    return None, mark


def _by_key(obj: DynamoModel) -> str:
    model, pk = _marked_root(obj)
    return pk if model is None else f"{capfirst(model._meta.verbose_name)} {pk}"


class TrashContext(Struct, frozen=True):
    """The context of the page of an object in the trash; ``deleted_by`` is empty for deletions outside the admin."""

    returning: tuple[str, ...]
    unnamed: int
    deleted_at: datetime
    deleted_by: str
    taken_with: str | None
    purge_at: datetime | None


def show_trash_page(modeladmin: DynamoModelAdmin, request: HttpRequest, obj: DynamoModel, response: Any) -> None:
    """Turn the page of an object into the page of an object in the trash, with a restore button instead of a form."""
    response.template_name = "dynamo_single/admin/in_trash.html"
    # Django's actions apply to the objects of the list, which does not contain the trash.
    response.context_data.pop("action_form", None)
    response.context_data["may_restore"] = modeladmin.has_restore_permission(request, obj)
    response.context_data["in_trash"] = trash_context(modeladmin, request, obj)


def trash_context(modeladmin: DynamoModelAdmin, request: HttpRequest, obj: Any) -> TrashContext:
    """Return the page's context, without hidden children.

    Send a Query for each model of cascading children, a Query of the log, and a GetItem for the user. If the object was
    deleted with another object, send another GetItem to show its name and the user who deleted it.
    """
    found = run(restorable_dependents(obj))
    seen = [each for each in found if may_view(modeladmin.admin_site, request, each)]
    named = tuple(trash._label(modeladmin, each) for each in seen[:_NAMED])
    read_roots(modeladmin, request, [obj])
    return TrashContext(
        named,
        len(seen) - len(named),
        obj.deleted_at,
        _deleted_by(obj),
        taken_with(obj),
        getattr(obj, "purge_at", None),
    )


def _deleted_by(obj: Any) -> str:
    model, pk = _marked_root(obj) if obj.deleted_with else (type(obj), str(obj.pk))
    entry = None if model is None else history.deletion_entry(model, pk, obj.deleted_at)
    if entry is None:
        return ""
    try:
        return str(entry.user.get_username())
    except ObjectDoesNotExist:  # the user is gone
        return str(entry.user_id)
