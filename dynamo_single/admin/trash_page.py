"""Show who deleted the objects in the trash, when, with which object, until when they are kept, and what returns.

The list of the trash has additional columns; the page of an object shows everything.
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
    """Django's checks of a ``ModelAdmin``, also of ``Children`` as a column, and despite additional columns."""

    def _check_list_display_item(self, obj: Any, item: object, label: str) -> list[CheckMessage]:
        if isinstance(item, str) and not hasattr(obj, item) and isinstance(getattr(obj.model, item, None), Children):
            # Django finds no field of this name, and would call the manager for each row.
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
    """A ``ModelAdmin`` whose trash shows when objects were deleted, with which object, and until when they are kept."""

    checks_class = ListChecks

    def get_list_filter(self, request: HttpRequest) -> Any:
        """Return the declared filters, and the trash filter if the model has soft delete."""
        declared = super().get_list_filter(request)
        model: Any = self.model
        return (*declared, TrashFilter) if trash.has_trash(model) else declared

    def get_list_display(self, request: HttpRequest) -> Any:
        """Return the declared columns; in the trash also those that only deleted objects have."""
        declared = super().get_list_display(request)
        model: Any = self.model
        if not trash.has_trash(model) or not shows_trash(request):
            return declared
        return (*declared, *trash_columns(model, without=declared))

    def get_changelist_instance(self, request: HttpRequest) -> Any:
        """Return Django's list; in the trash, name what the rows were deleted with: a BatchGetItem for each model."""
        changelist: Any = super().get_changelist_instance(request)
        if taken_with in changelist.list_display:
            read_roots(self, request, changelist.result_list)
        return changelist


def trash_columns(model: Any, *, without: Sequence[object] = ()) -> list[object]:
    """Return the columns of the trash that a model has: names of fields, and a callable for ``deleted_with``."""
    fields = {field.name for field in model._meta.concrete_fields}
    return named_columns([name for name in trash.TRASH_ATTRIBUTES if name in fields and name not in without])


def named_columns(fields: Iterable[str]) -> list[object]:
    """Return names of fields, with a callable that shows the object's name instead of ``deleted_with``."""
    return [taken_with if name == "deleted_with" else name for name in fields]


@display(description=_("deleted with"))
def taken_with(obj: DynamoModel) -> str | None:
    """Return the kind and name of the object that this one was deleted with; its key if it was not read."""
    if not getattr(obj, "deleted_with", None):
        return None
    return str(obj.__dict__.get(_TAKEN_WITH) or _by_key(obj))


def read_roots(modeladmin: Any, request: HttpRequest, objects: Iterable[DynamoModel]) -> None:
    """Read and name the objects that others went to the trash with: one BatchGetItem for each model.

    A hidden object is named by its kind.
    """
    marked: list[Any] = [obj for obj in objects if getattr(obj, "deleted_with", None)]
    roots = _roots(marked)
    for obj in marked:
        root = roots.get(obj.deleted_with)
        if root is not None:
            obj.__dict__[_TAKEN_WITH] = trash.label_for(modeladmin, request, root)


def _roots(objects: Sequence[Any]) -> dict[str, Any]:
    """Return the objects that the deletions began with, by their markers, without those that are gone permanently."""
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
    """Return the model and the ``pk`` that an object's marker names; ``None`` for a model that is not installed."""
    mark, alias = obj.deleted_with, type(obj)._options.alias
    for position, letter in enumerate(mark):
        # An item type may contain the separator too.
        if letter == "#" and (model := model_of_type(alias, mark[:position])) is not None:
            return model, mark[position + 1 :]
    return None, mark


def _by_key(obj: DynamoModel) -> str:
    model, pk = _marked_root(obj)
    return pk if model is None else f"{capfirst(model._meta.verbose_name)} {pk}"


class TrashContext(Struct, frozen=True):
    """What the page of an object in the trash shows; ``deleted_by`` is only known for deletions in the admin."""

    returning: tuple[str, ...]
    unnamed: int
    deleted_at: datetime
    deleted_by: str
    taken_with: str | None
    purge_at: datetime | None


def show_trash_page(modeladmin: DynamoModelAdmin, request: HttpRequest, obj: DynamoModel, response: Any) -> None:
    """Turn the page of an object into the page of an object in the trash: it can be restored, and cannot be saved."""
    response.template_name = "dynamo_single/admin/in_trash.html"
    # Django's actions work on the objects of a list, which does not contain those in the trash.
    response.context_data.pop("action_form", None)
    response.context_data["may_restore"] = modeladmin.has_restore_permission(request, obj)
    response.context_data["in_trash"] = trash_context(modeladmin, request, obj)


def trash_context(modeladmin: DynamoModelAdmin, request: HttpRequest, obj: Any) -> TrashContext:
    """Return what the page shows, without hidden children.

    Sends a Query for each model of cascading children, a Query of the log and a GetItem of the user. If the object was
    deleted with another one, sends a GetItem for that one, which the page names with the user who deleted it.
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
