"""What model admins and inlines share: fields for references, and the addresses that objects have on the site."""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from itertools import islice
from typing import TYPE_CHECKING, Any

from django.contrib.admin.widgets import FilteredSelectMultiple
from django.forms import Select, SelectMultiple, TextInput, Widget
from django.http import HttpRequest
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from dynamo_single.admin.choices import read_once
from dynamo_single.admin.referred import ReferringForm, shared
from dynamo_single.backend.errors import is_stored_in_dynamodb
from dynamo_single.exceptions import NotSupported, UnknownField
from dynamo_single.orm.query.queryset import QuerySet
from dynamo_single.orm.query.state import state_of
from dynamo_single.orm.results import held, objects
from dynamo_single.orm.schema.kinds import DynamoModel, SentData, SentFiles

if TYPE_CHECKING:
    from django.forms.renderers import BaseRenderer


#: How many objects a select offers at most.
MAX_CHOICES = 2000


def is_answered(queryset: QuerySet[DynamoModel]) -> bool:
    """Whether keys answer a queryset, in its order too; sends nothing."""
    try:
        objects.plan(state_of(queryset))
    except (NotSupported, UnknownField):
        return False
    return True


def as_listed(queryset: QuerySet[DynamoModel]) -> tuple[QuerySet[DynamoModel], bool]:
    """A queryset in its order if a key serves it, else in that of the key that lists it, and whether there is one."""
    if is_answered(queryset):
        return queryset, True
    unordered = queryset.order_by()
    return unordered, is_answered(unordered)


def is_exact(queryset: QuerySet[DynamoModel]) -> bool:
    """Whether keys express all that a queryset asks, so that nothing is read but what it gives; sends nothing."""
    try:
        return held.is_exact(objects.plan(state_of(queryset)))
    except (NotSupported, UnknownField):
        return False


def _key_input() -> TextInput:
    return TextInput({"class": "vTextField"})


class BoundedSelect(Select):
    """A select of at most ``MAX_CHOICES`` objects; of more, nobody could choose, and the key of one is typed."""

    def render(
        self, name: str, value: object, attrs: dict[str, object] | None = None, renderer: BaseRenderer | None = None
    ) -> SafeString:
        """One Query for each megabyte of what there is to choose from, up to the bound."""
        choices = list(islice(iter(self.choices), MAX_CHOICES + 2))
        if len(choices) <= MAX_CHOICES + 1 and not getattr(self.choices, "is_cut", False):
            # Read once: Django's own would read them again.
            shown = copy(self)
            shown.choices = choices
            return Select.render(shown, name, value, attrs, renderer)
        return _key_input().render(name, value, {**self.attrs, **(attrs or {})}, renderer)


class KeysInput(TextInput):
    """Keys of several objects that are typed, separated by commas."""

    def value_from_datadict(self, data: SentData, files: SentFiles, name: str) -> list[str]:
        """The keys."""
        return [key.strip() for key in (data.get(name) or "").split(",") if key.strip()]

    def format_value(self, value: Any) -> str:
        """The keys in a row."""
        return ",".join(str(key) for key in value or ())


class BoundedSelectMultiple(SelectMultiple):
    """A select of several of at most ``MAX_CHOICES`` objects; of more, nobody could choose, and keys are typed."""

    def render(
        self, name: str, value: Any, attrs: dict[str, object] | None = None, renderer: BaseRenderer | None = None
    ) -> SafeString:
        """One Query for each megabyte of what there is to choose from, up to the bound."""
        choices = list(islice(iter(self.choices), MAX_CHOICES + 1))
        if len(choices) > MAX_CHOICES or getattr(self.choices, "is_cut", False):
            return _keys_input().render(_typed(name), value, attrs, renderer)
        # Read once: Django's own would read them again.
        shown = copy(self)
        shown.choices = choices
        return super(BoundedSelectMultiple, shown).render(name, value, attrs, renderer)

    def value_from_datadict(self, data: SentData, files: SentFiles, name: str) -> Any:
        """The keys that were chosen, or typed."""
        if _typed(name) in data:
            return _keys_input().value_from_datadict(data, files, _typed(name))
        return super().value_from_datadict(data, files, name)


class BoundedFilteredSelect(BoundedSelectMultiple, FilteredSelectMultiple):
    """The same as two lists with a search."""


#: What takes the place of Django's widgets.
_BOUNDED: dict[type[Widget], type[Widget]] = {
    SelectMultiple: BoundedSelectMultiple,
    FilteredSelectMultiple: BoundedFilteredSelect,
}


def _typed(name: str) -> str:
    """The name of a field's keys as they are typed, which may themselves have commas where they are chosen."""
    return f"{name}_keys"


def _keys_input() -> KeysInput:
    return KeysInput({"class": "vTextField"})


class KnowsReferences:
    """What a ``ModelAdmin`` or an inline of a model that lives in DynamoDB is, in front of Django's class."""

    view_on_site: Any
    get_field_queryset: Any
    admin_site: Any

    def formfield_for_foreignkey(self, db_field: Any, request: HttpRequest, **kwargs: object) -> Any:
        """Django's; where no key lists the objects to choose from, their key is typed, and looked up when it is sent.

        Objects come in the order of their own admin if a key serves it, else in that of the key that lists them.
        """
        django: Any = super()
        name = {"name": db_field.remote_field.model._meta.verbose_name}
        typed = {
            "widget": _key_input(),
            "error_messages": {"invalid_choice": _("There is no %(name)s with this key.") % name},
            **({} if db_field.help_text else {"help_text": _("The key of the %(name)s.") % name}),
        }
        offered = self._offered(db_field, request, kwargs, typed)
        field = django.formfield_for_foreignkey(db_field, request, **(offered or kwargs))
        if offered and type(getattr(field, "widget", None)) is Select:
            # Choices are read when they are shown, so that a form that is sent reads none.
            chosen = BoundedSelect(field.widget.attrs)
            chosen.is_required, chosen.choices = field.widget.is_required, field.widget.choices
            field.widget = chosen
        return shared(read_once(field, request), request)

    def formfield_for_manytomany(self, db_field: Any, request: HttpRequest, **kwargs: object) -> Any:
        """Django's; in the order of the other objects' admin if a key serves it, and typed where no key lists them.

        What is typed is looked up when it is sent; keys are separated by commas.
        """
        django: Any = super()
        offered = self._offered(db_field, request, kwargs, {"widget": _keys_input()})
        field = django.formfield_for_manytomany(db_field, request, **(offered or kwargs))
        widget: Any = getattr(field, "widget", None)
        bounded = _BOUNDED.get(type(widget))
        if offered and bounded is not None:
            # With what Django has told it; the two have nothing else.
            field.widget = copy(widget)
            field.widget.__class__ = bounded
        return read_once(field, request)

    def get_changelist_form(self, request: HttpRequest, **kwargs: object) -> Any:
        """Django's, of a row of ``list_editable``; rows share what their references lead to."""
        django: Any = super()
        form = django.get_changelist_form(request, **{"form": ReferringForm, **kwargs})
        if issubclass(form, ReferringForm):
            form.viewer = self.admin_site, request
        return form

    def _offered(
        self, db_field: Any, request: HttpRequest, given: Mapping[str, object], typed: Mapping[str, object]
    ) -> dict[str, Any]:
        """What a field of a relation is made with: the objects to choose from, and what is ``typed`` where no key lists
        them. Nothing where the objects are given, or are in SQL. Sends nothing.

        In the order of their own admin if a key serves it, else in that of the key that lists them.
        """
        model: Any = db_field.remote_field.model
        if "queryset" in given or not is_stored_in_dynamodb(model):
            return {}
        queryset: Any = self.get_field_queryset(given.get("using"), db_field, request)
        listed, is_listed = as_listed(model._default_manager.all() if queryset is None else queryset)
        instead = {} if is_listed or "widget" in given else typed
        return {**instead, **given, "queryset": listed}

    def get_view_on_site_url(self, obj: Any = None) -> str | None:
        """The object's own address, without the detour over content types."""
        if obj is None or not self.view_on_site:
            return None
        if callable(self.view_on_site):
            address: str | None = self.view_on_site(obj)
            return address
        return str(obj.get_absolute_url()) if hasattr(obj, "get_absolute_url") else None
