"""What the admin says of objects in the trash: who deleted them, when, with what, until when, and what comes back.

A list of the trash has columns of its own for that; an object's page says all of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, cast

from django.contrib.admin import ModelAdmin, display
from django.contrib.admin.checks import ModelAdminChecks
from django.core.checks import CheckMessage
from django.core.exceptions import ObjectDoesNotExist
from django.http import HttpRequest
from django.utils.text import capfirst
from django.utils.translation import gettext_lazy as _
from msgspec import Struct

from dynamo_single.admin import history, trash
from dynamo_single.admin.kinds import DynamoModelAdmin
from dynamo_single.admin.lists.filters import TrashFilter, shows_trash
from dynamo_single.admin.viewing.rules import may_view
from dynamo_single.orm.schema.kinds import DynamoModel
from dynamo_single.orm.schema.registry import model_of_type
from dynamo_single.orm.write.trash import coming_back_with
from dynamo_single.table.flow import run

if TYPE_CHECKING:
    _Base = ModelAdmin[Any]
else:
    _Base = object

#: Objects that the page of one in the trash names.
_NAMED = 100
#: Where an object keeps the name of what it went to the trash with, once that is read.
_TAKEN_WITH = "_dynamo_taken_with"


class ChecksOfLists(ModelAdminChecks):
    """Django's checks of a ``ModelAdmin``, with that of ``list_display_links``, although the trash has more columns."""

    def _check_list_display_links(self, obj: Any) -> list[CheckMessage]:
        links, django = obj.list_display_links, cast("Any", super())
        if type(obj).get_list_display is not ShowsTrash.get_list_display or not isinstance(links, list | tuple):
            return cast("list[CheckMessage]", django._check_list_display_links(obj))
        # Django leaves this out where get_list_display() is another one, which may give anything. Ours adds columns.
        return [
            error
            for place, name in enumerate(links)
            for error in django._check_list_display_links_item(obj, name, f"list_display_links[{place}]")
        ]


class ShowsTrash(_Base):
    """A ``ModelAdmin`` whose list of the trash says when rows went there, with what, and until when it keeps them."""

    checks_class = ChecksOfLists

    def get_list_filter(self, request: HttpRequest) -> Any:
        """The declared filters, and the trash where the model has soft delete."""
        declared = super().get_list_filter(request)
        model: Any = self.model
        return (*declared, TrashFilter) if trash.has_trash(model) else declared

    def get_list_display(self, request: HttpRequest) -> Any:
        """The declared columns; in the trash those that only objects there have besides."""
        declared = super().get_list_display(request)
        model: Any = self.model
        if not trash.has_trash(model) or not shows_trash(request):
            return declared
        return (*declared, *marks_of(model, without=declared))

    def get_changelist_instance(self, request: HttpRequest) -> Any:
        """Django's; of the trash one BatchGetItem besides for what the rows went there with, if any did."""
        changelist: Any = super().get_changelist_instance(request)
        if taken_with in changelist.list_display:
            name_what_took(self, request, changelist.result_list)
        return changelist


def marks_of(model: Any, *, without: Sequence[object] = ()) -> list[object]:
    """What there is to show of a model's objects in the trash: names of fields, and what shows the object's name."""
    fields = {field.name for field in model._meta.concrete_fields}
    return named([name for name in trash.MARKS if name in fields and name not in without])


def named(fields: Iterable[str]) -> list[object]:
    """Names of fields; in the place of an object's mark what shows the name of what that stands for."""
    return [taken_with if name == "deleted_with" else name for name in fields]


@display(description=_("deleted with"))
def taken_with(obj: DynamoModel) -> str | None:
    """The object that another one went to the trash with, by its kind and name; by its key where it was not read."""
    if not getattr(obj, "deleted_with", None):
        return None
    return str(obj.__dict__.get(_TAKEN_WITH) or _by_key(obj))


def name_what_took(modeladmin: Any, request: HttpRequest, objects: Iterable[DynamoModel]) -> None:
    """Read what objects in the trash went there with, and keep its name: one BatchGetItem for each kind of it.

    Of what the user may not view only the kind is named.
    """
    marked: list[Any] = [obj for obj in objects if getattr(obj, "deleted_with", None)]
    roots = _roots(marked)
    for obj in marked:
        root = roots.get(obj.deleted_with)
        if root is not None:
            obj.__dict__[_TAKEN_WITH] = trash.shown_to(modeladmin, request, root)


def _roots(objects: Sequence[Any]) -> dict[str, Any]:
    """What deletions of these objects began with, by its mark; what is gone for good is left out."""
    wanted: dict[Any, dict[str, str]] = {}
    for obj in objects:
        model, pk = _marked(obj)
        if model is not None:
            wanted.setdefault(model, {})[pk] = obj.deleted_with
    return {
        marks[str(root.pk)]: root
        for model, marks in wanted.items()
        for root in getattr(model, "all_objects", model._default_manager).filter(pk__in=[*marks])
    }


def _marked(obj: Any) -> tuple[Any, str]:
    """The model and the ``pk`` that an object's mark names; no model if it is not installed any more."""
    mark, alias = obj.deleted_with, type(obj)._options.alias
    for position, letter in enumerate(mark):
        # An item type may have the sign in it, too.
        if letter == "#" and (model := model_of_type(alias, mark[:position])) is not None:
            return model, mark[position + 1 :]
    return None, mark


def _by_key(obj: DynamoModel) -> str:
    model, pk = _marked(obj)
    return pk if model is None else f"{capfirst(model._meta.verbose_name)} {pk}"


class InTrash(Struct, frozen=True):
    """What the page of an object in the trash says; who deleted it is only known of deletions in the admin."""

    returning: tuple[str, ...]
    unnamed: int
    deleted_at: datetime
    deleted_by: str
    taken_with: str | None
    purge_at: datetime | None


def show(modeladmin: DynamoModelAdmin, request: HttpRequest, obj: DynamoModel, response: Any) -> None:
    """Make the page of an object one of what is in the trash: with a button to restore it, and none to save it."""
    response.template_name = "dynamo_single/admin/in_trash.html"
    # Django's actions work on what a list shows, where an object in the trash is not.
    response.context_data.pop("action_form", None)
    response.context_data["may_restore"] = modeladmin.has_restore_permission(request, obj)
    response.context_data["in_trash"] = described(modeladmin, request, obj)


def described(modeladmin: DynamoModelAdmin, request: HttpRequest, obj: Any) -> InTrash:
    """A Query for each kind of children that go along with the object, one of the log, and a GetItem of the user.

    An object that went along with another one has the other's name, and who deleted that: one GetItem more. Children
    that the user may not view are left out.
    """
    found = run(coming_back_with(obj))
    seen = [each for each in found if may_view(modeladmin.admin_site, request, each)]
    named = tuple(trash.shown(modeladmin, each) for each in seen[:_NAMED])
    name_what_took(modeladmin, request, [obj])
    return InTrash(
        named,
        len(seen) - len(named),
        obj.deleted_at,
        _deleted_by(obj),
        taken_with(obj),
        getattr(obj, "purge_at", None),
    )


def _deleted_by(obj: Any) -> str:
    model, pk = _marked(obj) if obj.deleted_with else (type(obj), str(obj.pk))
    entry = None if model is None else history.deletion_of(model, pk, obj.deleted_at)
    if entry is None:
        return ""
    try:
        return str(entry.user.get_username())
    except ObjectDoesNotExist:  # the user is gone
        return str(entry.user_id)
