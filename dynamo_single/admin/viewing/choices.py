"""Hide objects in forms: the choices of references, except for chosen ones, and the rows of inlines."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from functools import partial
from itertools import islice
from typing import Any, ClassVar, Final

from django.contrib.admin.sites import AdminSite
from django.core.exceptions import ValidationError
from django.db import models
from django.forms import Field, ModelChoiceField
from django.forms.models import ModelChoiceIterator
from django.http import HttpRequest
from django.utils.text import capfirst

from dynamo_single.admin.viewing.rules import may_view, sees_all, visible_keys
from dynamo_single.backend.errors import is_stored_in_dynamodb

#: The most objects that a field examines. Above that, none is offered, and users enter a key.
MAX_OBJECTS: Final = 20_000


class VisibleObjects:
    """The objects that a field or column may name: those that the user may see, and those that are already chosen."""

    def __init__(self, site: AdminSite, request: HttpRequest, kept: Collection[str] = ()) -> None:
        self._asked = site, request
        self._kept = kept
        self._known: dict[Any, bool] = {}

    def learn(self, model: type[models.Model], keys: Collection[Any]) -> None:
        """Decide about several objects: one BatchGetItem for each hundred of a model, or one query in SQL."""
        visible = visible_keys(*self._asked, model, {str(key) for key in keys if key is not None})
        self._known.update(((model, key), str(key) in visible) for key in keys)

    def is_seen(self, obj: models.Model) -> bool:
        """Return whether the user may see an object; does not send a request for a model in DynamoDB."""
        key = type(obj), obj.pk
        if key not in self._known:
            self._known[key] = may_view(*self._asked, obj)
        return self._known[key]

    def may_be_chosen(self, obj: models.Model) -> bool:
        """Return whether a form may refer to an object."""
        return str(obj.pk) in self._kept or self.is_seen(obj)

    def label(self, shown: Callable[[Any], str], obj: models.Model) -> str:
        """Return an object's name, or its kind if the user may not see it."""
        return shown(obj) if self.is_seen(obj) else self.kind(obj)

    @staticmethod
    def kind(obj: models.Model) -> str:
        """Return the text that a page shows instead of the name of a hidden object."""
        return capfirst(str(obj._meta.verbose_name))


class _VisibleChoices(ModelChoiceIterator):  # type: ignore[type-arg]  # not generic at run time
    """The choices of a field that the user may see."""

    def __init__(self, seen: VisibleObjects, made: Callable[[Any], Any], field: Any) -> None:
        super().__init__(field)
        self._seen = seen
        self._made = made(field)
        #: Whether there are more objects than the field has examined.
        self.is_cut = False

    def __iter__(self) -> Iterator[Any]:
        for number, choice in enumerate(self._made):
            if number > MAX_OBJECTS:
                self.is_cut = True
                return
            # The empty choice has no object.
            obj = getattr(choice[0], "instance", None)
            if obj is None or self._seen.may_be_chosen(obj):
                yield choice


def current_keys(form: Any, name: str, field: Field) -> set[str]:
    """Return the keys of the objects that a stored object already refers to by a field."""
    if form.instance._state.adding:
        return set()
    value = field.prepare_value(form.get_initial_for_field(field, name))
    values = value if isinstance(value, list | tuple | set) else [value]
    return {str(each) for each in values if each not in (None, "")}


def hide_choices(form: Any, name: str, field: Any, site: AdminSite, request: HttpRequest) -> VisibleObjects | None:
    """Let a field of a form offer and name only visible objects; return ``None`` if the user sees every object."""
    if not isinstance(field, ModelChoiceField) or field.queryset is None:
        return None
    if sees_all(site, request, field.queryset.model):
        return None
    seen = VisibleObjects(site, request, current_keys(form, name, field))
    field.label_from_instance = partial(seen.label, field.label_from_instance)  # type: ignore[method-assign]
    field.iterator = partial(_VisibleChoices, seen, field.iterator)  # type: ignore[assignment]  # of this form's field
    field.widget.choices = field.choices
    return seen


def refuse_hidden(form: Any, name: str, seen: VisibleObjects) -> None:
    """Add Django's error of an invalid choice to a field that refers to a hidden object."""
    value = form.cleaned_data.get(name)
    if value is None:
        return
    for obj in [value] if isinstance(value, models.Model) else [*value]:
        if not seen.may_be_chosen(obj):
            message = form.fields[name].error_messages["invalid_choice"]
            form.add_error(name, ValidationError(message, code="invalid_choice", params={"value": obj.pk}))
            return


# Leave hidden objects out of the rows of an inline, so that they are neither shown nor counted nor saved.

#: The most children that a form examines for its visible rows. Further children are treated as hidden.
MAX_ROWS: Final = 20_000


class VisibleRows:
    """A formset, before a project's class, that contains only the rows that the ``viewer`` may see.

    ``max_num``, ``min_num`` and ``extra`` count these rows. A form that is submitted with the key of another row is
    treated as if that row were gone. Sends only the requests of the formset.
    """

    #: The site and the request that the formset is for.
    viewer: ClassVar[tuple[AdminSite, HttpRequest]]
    _all_rows: object = None

    def all_rows(self) -> Any:
        """Return the rows as the formset reads them, with hidden ones; does not read them."""
        formset: Any = super()
        return formset.get_queryset()

    def visible(self, rows: Iterable[Any]) -> Iterator[Any]:
        """Yield the visible ones of the first ``MAX_ROWS`` rows."""
        return (row for row in islice(rows, MAX_ROWS) if may_view(*self.viewer, row))

    def get_queryset(self) -> list[Any]:
        """Return the rows, read once."""
        found = self.all_rows()
        if found is not self._all_rows:
            self._all_rows, self._visible_rows = found, [*self.visible(found)]
        return self._visible_rows


def only_visible(formset: type[Any], site: AdminSite, request: HttpRequest) -> type[Any]:
    """Return a class of formsets that leaves out the rows that the registered admin of their model hides.

    Returns the class itself if the user sees every object, or if the model has no registered admin: then the inline
    decides by its ``get_queryset()`` and ``has_view_permission()``. Does not send a request.
    """
    model = formset.model
    if not is_stored_in_dynamodb(model) or not site.is_registered(model) or sees_all(site, request, model):
        return formset
    members = {"__module__": formset.__module__, "__doc__": formset.__doc__, "viewer": (site, request)}
    return type(formset.__name__, (VisibleRows, formset), members)


def all_rows(formset: Any) -> Any:
    """Return the queryset of a formset's rows, with hidden ones; a list if the rows have been read."""
    return formset.all_rows() if isinstance(formset, VisibleRows) else formset.get_queryset()
