"""Fields of references in the forms of model admins and inlines, and the addresses of objects on the site.

Django reads the object of each reference in each submitted form, and then checks that it exists. A field that shows the
object next to its key reads it for each form, and choices are read for each row of an inline or editable list. Here the
forms of a request share their reads: each form registers its references when it is created, and the first form that
needs an object reads all of them. Forms that need the same choices share those that the first one has read.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import copy
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from django.contrib.admin.sites import AdminSite
from django.contrib.admin.widgets import AutocompleteSelect, FilteredSelectMultiple, ForeignKeyRawIdWidget
from django.core.exceptions import ValidationError
from django.forms import ModelChoiceField, ModelForm, Select, SelectMultiple, TextInput, Widget
from django.forms.models import ModelChoiceIterator
from django.http import HttpRequest
from django.urls import NoReverseMatch, reverse
from django.utils.safestring import SafeString
from django.utils.text import Truncator
from django.utils.translation import gettext as _

from dynamo_single.admin.viewing.choices import VisibleObjects, hide_choices, refuse_hidden
from dynamo_single.backend.errors import is_stored_in_dynamodb
from dynamo_single.exceptions import NotSupported, UnknownField
from dynamo_single.orm.query.queryset import QuerySet
from dynamo_single.orm.query.state import query_identity, state_of
from dynamo_single.orm.results import cached_lists, objects
from dynamo_single.orm.schema.fields.fetching import IS_KNOWN
from dynamo_single.orm.schema.types import DynamoModel, SentData, SentFiles

if TYPE_CHECKING:
    from django.forms.renderers import BaseRenderer


F = TypeVar("F")

#: The key of the shared objects in a request's ``__dict__``: they end with the request, so that they never get stale.
_REFERRED = "_dynamo_single_referred"
#: The most keys of one call, which sends a BatchGetItem for each hundred; ``in_bulk()`` accepts 10,000.
_MAX_KEYS = 1000


class _KeyedObjects:
    """The objects of one queryset: the keys that forms contain, those that have been read, and the objects found."""

    def __init__(self) -> None:
        self.wanted: dict[str, None] = {}
        self.asked: set[str] = set()
        self.found: dict[str, DynamoModel] = {}

    def read(self, queryset: QuerySet[DynamoModel], keys: list[str]) -> None:
        """Read objects by their keys: one BatchGetItem for each hundred.

        A form itself reports a text that is not a key of the model. If any key cannot be read, each form reads its own.
        """
        self.asked.update(keys)
        values = []
        for key in keys:
            try:
                values.append(queryset.model._meta.pk.to_python(key))
            except (ValidationError, ValueError, TypeError):
                continue
        try:
            for first in range(0, len(values), _MAX_KEYS):
                found = queryset.in_bulk(values[first : first + _MAX_KEYS])
                self.found.update((str(obj.pk), obj) for obj in found.values())
        except (ValidationError, ValueError, TypeError, NotSupported, UnknownField):
            return


class ReferencedObjects:
    """The objects that the forms of one request refer to."""

    def __init__(self) -> None:
        self._answers: list[tuple[type[DynamoModel], object, _KeyedObjects]] = []

    def want(self, queryset: QuerySet[DynamoModel], key: object) -> None:
        """Register that a form refers to an object of a queryset, to be read together with others. Sends no request."""
        answers = None if key in (None, "") else self._answers_of(queryset)
        if answers is not None:
            answers.wanted[str(key)] = None

    def find(self, queryset: QuerySet[DynamoModel], key: object) -> DynamoModel | None:
        """Return the queryset's object with this key, read together with all others that forms refer to.

        Returns ``None`` if it was not in a batch: it does not exist, or no other object is needed. The form then reads
        it.
        """
        answers = self._answers_of(queryset)
        if answers is None:
            return None
        missing = [each for each in answers.wanted if each not in answers.asked]
        if len(missing) > 1 and str(key) in missing:
            answers.read(queryset.order_by(), missing)
        return answers.found.get(str(key))

    def keep(self, queryset: QuerySet[DynamoModel], obj: DynamoModel | None) -> None:
        """Store an object that a form has read itself."""
        answers = self._answers_of(queryset)
        if answers is not None and obj is not None:
            answers.asked.add(str(obj.pk))
            answers.found[str(obj.pk)] = obj

    def is_there(self, model: type[DynamoModel], key: object) -> bool:
        """Return whether an object with this key was read for this request by any queryset. Sends no request."""
        return any(each is model and str(key) in answers.found for each, _, answers in self._answers)

    def _answers_of(self, queryset: QuerySet[DynamoModel]) -> _KeyedObjects | None:
        # Call a project's own get() for each key, as Django would.
        if type(queryset).get is not QuerySet.get or queryset.query.is_sliced:
            return None
        try:
            # The order does not matter: a key identifies one object.
            asked = query_identity(queryset.order_by())
        except (NotSupported, UnknownField):
            return None  # evaluating it raises the error
        for _model, known, answers in self._answers:
            if known == asked:
                return answers
        self._answers.append((queryset.model, asked, _KeyedObjects()))
        return self._answers[-1][2]


def referenced_objects(request: HttpRequest) -> ReferencedObjects:
    """Return the objects that the forms of a request refer to."""
    found: ReferencedObjects = request.__dict__.setdefault(_REFERRED, ReferencedObjects())
    return found


def with_shared_reads(field: F, request: HttpRequest | None) -> F:
    """Return the field of a reference. Its copies in the forms of this request share their reads. Sends no request.

    Fields of SQL models, fields with a custom ``to_python()``, and fields of a stand-in for a request stay as they are.
    """
    if (
        not isinstance(request, HttpRequest)
        or not isinstance(field, ModelChoiceField)
        or type(field).to_python is not ModelChoiceField.to_python
        or field.queryset is None
        or not is_stored_in_dynamodb(field.queryset.model)
        or field.to_field_name not in (None, "pk", field.queryset.model._meta.pk.name)
    ):
        return field
    field.referred = referenced_objects(request)  # type: ignore[attr-defined]  # copied with the field
    own = _WIDGETS.get(type(field.widget))
    if own is not None:
        # The new widget keeps Django's settings. Their attributes are otherwise the same.
        widget: Any = copy(field.widget)
        widget.__class__, widget.referred = own, referenced_objects(request)
        field.widget = widget
    return field


class ReferencesForm(ModelForm):  # type: ignore[type-arg]  # not generic at run time
    """A form of the admin, before a project's form: referenced objects are read once for all forms of the page.

    Fields offer and accept only objects that the ``viewer`` may see, and those that the object already refers to.
    """

    #: The site and the request that the form is for.
    viewer: ClassVar[tuple[AdminSite, HttpRequest] | None] = None

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._choosing: dict[str, VisibleObjects] = {}
        if self.viewer is not None:
            self._hide(*self.viewer)
        for name, field in self._referring():
            key, widget = self._key_of(name, field), getattr(field.widget, "widget", field.widget)
            field.referred.want(field.queryset, key)
            if isinstance(widget, _RawKey):  # shows the object's name for any value of the field
                field.referred.want(widget.named, key)
            field.to_python = partial(_to_python, field)

    def _hide(self, site: AdminSite, request: HttpRequest) -> None:
        for name, field in self.fields.items():
            seen, widget = hide_choices(self, name, field, site, request), getattr(field.widget, "widget", field.widget)
            if seen is not None:
                self._choosing[name] = seen
                if isinstance(widget, _RawKey):
                    widget.seen = seen

    def full_clean(self) -> None:
        """Validate as Django does, without another check that the referenced objects exist."""
        state: Any = self.instance._state
        setattr(state, IS_KNOWN, self._is_there)
        try:
            super().full_clean()
        finally:
            state.__dict__.pop(IS_KNOWN, None)
        for name, seen in self._choosing.items() if self.is_bound else ():
            refuse_hidden(self, name, seen)

    def _referring(self) -> Iterable[tuple[str, Any]]:
        return [(name, field) for name, field in self.fields.items() if hasattr(field, "referred")]

    def _key_of(self, name: str, field: Any) -> object:
        """Return the submitted or shown key. The bound field is not cached, since a formset may replace the field."""
        if self.is_bound:
            return field.widget.value_from_datadict(self.data, self.files, self.add_prefix(name))
        return field.prepare_value(self.get_initial_for_field(field, name))

    def _is_there(self, field: Any, key: object) -> bool:
        referred: ReferencedObjects | None = getattr(self.fields.get(field.name), "referred", None)
        return referred is not None and referred.is_there(field.remote_field.model, key)


def _to_python(field: Any, value: Any) -> Any:
    """Return the result of ``ModelChoiceField.to_python()`` from the shared reads of the request."""
    found = field.referred.find(field.queryset, value) if isinstance(value, str) and value else None
    if found is None:
        found = type(field).to_python(field, value)
        field.referred.keep(field.queryset, found)
    return found


class _RawKey(ForeignKeyRawIdWidget):
    """An input for a key that also shows the object's name."""

    referred: ReferencedObjects
    seen: VisibleObjects | None = None

    @property
    def named(self) -> QuerySet[DynamoModel]:
        """Django's queryset for the objects' names."""
        queryset: Any = self.rel.model._default_manager.using(self.db)
        found: QuerySet[DynamoModel] = queryset
        return found

    def label_and_url_for_value(self, value: object) -> tuple[str, str]:
        """Return the object's name and address; as in Django if it was not in a batch."""
        obj = self.referred.find(self.named, value)
        if obj is None and self.seen is not None:
            obj = self.named.filter(pk=value).first()
        if obj is not None and self.seen is not None and not self.seen.is_seen(obj):
            return self.seen.label(str, obj), ""
        if obj is None:
            return super().label_and_url_for_value(value)
        meta = obj._meta
        try:
            url = reverse(f"{self.admin_site.name}:{meta.app_label}_{meta.model_name}_change", args=(obj.pk,))
        except NoReverseMatch:
            url = ""
        return Truncator(obj).words(14), url


class _Autocomplete(AutocompleteSelect):
    """A select whose only option is the chosen object until the user searches."""

    referred: ReferencedObjects

    def optgroups(self, name: str, value: Sequence[str], attr: dict[str, object] | None = None) -> Any:
        """Return Django's groups from the shared reads of the request."""
        chosen = [self.referred.find(self.choices.queryset, key) for key in value if key]
        if not chosen or None in chosen:
            return super().optgroups(name, value, attr)
        shown = copy(self)
        shown.choices = _ChosenOnly(self.choices.field, chosen)
        return AutocompleteSelect.optgroups(shown, name, value, attr)


class _ChosenOnly:
    """A stand-in for the choices of a select: the field, and a queryset that returns only the chosen objects."""

    def __init__(self, field: Any, chosen: list[DynamoModel | None]) -> None:
        self.field = field
        self.queryset = self
        self._chosen = chosen

    def using(self, alias: object) -> _ChosenOnly:
        """Return the same object."""
        return self

    def filter(self, **conditions: object) -> list[DynamoModel | None]:
        """Return the chosen objects, which Django looks up by their keys."""
        return self._chosen


#: The replacements of Django's widgets.
_WIDGETS: dict[type[Widget], type[Widget]] = {ForeignKeyRawIdWidget: _RawKey, AutocompleteSelect: _Autocomplete}


#: The key of the shared choices in a request's ``__dict__``: they end with the request, so that they never get stale.
_CHOICES = "_dynamo_single_choices"


class _SharedRows:
    """The objects of a queryset, read as far as a form has needed them, and each only once."""

    def __init__(self, queryset: QuerySet[DynamoModel]) -> None:
        self._queryset = queryset
        self._begin()

    def _begin(self) -> None:
        self._found: list[DynamoModel] = []
        self._rest = iter(read_by_pages(self._queryset))

    def __iter__(self) -> Iterator[DynamoModel]:
        """Yield the objects: one Query for each further megabyte."""
        number = 0
        while number < len(self._found) or self._reads_one():
            yield self._found[number]
            number += 1

    def _reads_one(self) -> bool:
        try:
            self._found.append(next(self._rest))
        except StopIteration:
            return False
        except Exception:
            # An interrupted read must not look like the complete list.
            self._begin()
            raise
        return True


def read_by_pages(queryset: Any) -> Iterable[DynamoModel]:
    """Return the objects as Django's choices read them: prefetching needs the complete result."""
    found: Iterable[DynamoModel] = queryset if queryset._prefetch_related_lookups else queryset.iterator()
    return found


class _Choices(ModelChoiceIterator):  # type: ignore[type-arg]  # not generic at run time
    """Django's choices of a field, from the shared objects of the request."""

    def __init__(self, request: HttpRequest, field: Any) -> None:
        super().__init__(field)
        self._request = request

    def __iter__(self) -> Iterator[Any]:
        """Yield the empty choice if there is one, and the objects."""
        if self.field.empty_label is not None:
            yield "", self.field.empty_label
        for obj in _read(self._request, self.queryset):
            yield self.choice(obj)


def _read(request: HttpRequest, queryset: Any) -> Iterable[DynamoModel]:
    try:
        asked = query_identity(queryset)
    except (NotSupported, UnknownField):
        return read_by_pages(queryset)  # evaluating it raises the error
    reads: list[tuple[object, _SharedRows]] = request.__dict__.setdefault(_CHOICES, [])
    found = next((read for known, read in reads if known == asked), None)
    if found is None:
        found = _SharedRows(queryset)
        reads.append((asked, found))
    return found


def with_shared_choices(field: F, request: HttpRequest | None) -> F:
    """Return the field of a reference. Its copies in the forms of this request share their choices. Sends no request.

    A form with another queryset, by ``limit_choices_to`` or custom code, reads its own. Fields of SQL models and fields
    with a custom iterator stay as they are.
    """
    if (
        not isinstance(request, HttpRequest)  # a stand-in may outlive the page and show stale choices
        or not isinstance(field, ModelChoiceField)
        or field.queryset is None
        or not is_stored_in_dynamodb(field.queryset.model)
        or field.iterator is not ModelChoiceIterator
    ):
        return field
    field.iterator = partial(_Choices, request)  # type: ignore[assignment]  # of this field and its copies
    field.widget.choices = field.choices  # as Django does for every widget
    return field


#: The most objects that a select offers.
MAX_CHOICES = 2000


def is_served_by_keys(queryset: QuerySet[DynamoModel]) -> bool:
    """Return whether keys support a queryset and its order. Sends no request."""
    try:
        objects.plan(state_of(queryset))
    except (NotSupported, UnknownField):
        return False
    return True


def in_key_order(queryset: QuerySet[DynamoModel]) -> tuple[QuerySet[DynamoModel], bool]:
    """Return a queryset in its own order or else that of the key that lists it, and whether such a key exists."""
    if is_served_by_keys(queryset):
        return queryset, True
    unordered = queryset.order_by()
    return unordered, is_served_by_keys(unordered)


def is_exact(queryset: QuerySet[DynamoModel]) -> bool:
    """Return whether keys express the complete query, so that no further items are read. Sends no request."""
    try:
        return cached_lists.is_exact(objects.plan(state_of(queryset)))
    except (NotSupported, UnknownField):
        return False


def _key_input() -> TextInput:
    return TextInput({"class": "vTextField"})


class BoundedSelect(Select):
    """A select of at most ``MAX_CHOICES`` objects. Above that, users enter the key."""

    def render(
        self, name: str, value: object, attrs: dict[str, object] | None = None, renderer: BaseRenderer | None = None
    ) -> SafeString:
        """Render the widget: one Query for each megabyte of choices, up to the bound."""
        choices = list(islice(iter(self.choices), MAX_CHOICES + 2))
        if len(choices) <= MAX_CHOICES + 1 and not getattr(self.choices, "is_cut", False):
            # They have been read, and Django's method would read them again.
            shown = copy(self)
            shown.choices = choices
            return Select.render(shown, name, value, attrs, renderer)
        return _key_input().render(name, value, {**self.attrs, **(attrs or {})}, renderer)


class KeysInput(TextInput):
    """An input for the keys of several objects, separated by commas."""

    def value_from_datadict(self, data: SentData, files: SentFiles, name: str) -> list[str]:
        """Return the keys."""
        return [key.strip() for key in (data.get(name) or "").split(",") if key.strip()]

    def format_value(self, value: Any) -> str:
        """Return the keys separated by commas."""
        return ",".join(str(key) for key in value or ())


class BoundedSelectMultiple(SelectMultiple):
    """A multiple select of at most ``MAX_CHOICES`` objects. Above that, users enter keys."""

    def render(
        self, name: str, value: Any, attrs: dict[str, object] | None = None, renderer: BaseRenderer | None = None
    ) -> SafeString:
        """Render the widget: one Query for each megabyte of choices, up to the bound."""
        choices = list(islice(iter(self.choices), MAX_CHOICES + 1))
        if len(choices) > MAX_CHOICES or getattr(self.choices, "is_cut", False):
            return _keys_input().render(_typed_name(name), value, attrs, renderer)
        # They have been read, and Django's method would read them again.
        shown = copy(self)
        shown.choices = choices
        return super(BoundedSelectMultiple, shown).render(name, value, attrs, renderer)

    def value_from_datadict(self, data: SentData, files: SentFiles, name: str) -> Any:
        """Return the chosen or entered keys."""
        if _typed_name(name) in data:
            return _keys_input().value_from_datadict(data, files, _typed_name(name))
        return super().value_from_datadict(data, files, name)


class BoundedFilteredSelect(BoundedSelectMultiple, FilteredSelectMultiple):
    """The same as two lists with a search."""


#: The replacements of Django's widgets.
_BOUNDED: dict[type[Widget], type[Widget]] = {
    SelectMultiple: BoundedSelectMultiple,
    FilteredSelectMultiple: BoundedFilteredSelect,
}


def _typed_name(name: str) -> str:
    """Return the name of the input for entered keys: chosen keys may contain commas."""
    return f"{name}_keys"


def _keys_input() -> KeysInput:
    return KeysInput({"class": "vTextField"})


class ReferencesMixin:
    """The base of a ``ModelAdmin`` or inline for a DynamoDB model, before Django's class."""

    view_on_site: Any
    get_field_queryset: Any
    admin_site: Any

    def formfield_for_foreignkey(self, db_field: Any, request: HttpRequest, **kwargs: object) -> Any:
        """Return Django's field. If no key lists the objects, users enter a key, which is looked up on submission.

        Objects have the order of their own admin if a key supports it, otherwise that of the key that lists them.
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
            # Choices are read when they are shown, so that a submitted form does not read any.
            chosen = BoundedSelect(field.widget.attrs)
            chosen.is_required, chosen.choices = field.widget.is_required, field.widget.choices
            field.widget = chosen
        return with_shared_reads(with_shared_choices(field, request), request)

    def formfield_for_manytomany(self, db_field: Any, request: HttpRequest, **kwargs: object) -> Any:
        """Return Django's field, in the order of the other objects' admin if a key supports it.

        If no key lists the objects, users enter keys separated by commas, which are looked up on submission.
        """
        django: Any = super()
        offered = self._offered(db_field, request, kwargs, {"widget": _keys_input()})
        field = django.formfield_for_manytomany(db_field, request, **(offered or kwargs))
        widget: Any = getattr(field, "widget", None)
        bounded = _BOUNDED.get(type(widget))
        if offered and bounded is not None:
            # The new widget keeps Django's settings. Their attributes are otherwise the same.
            field.widget = copy(widget)
            field.widget.__class__ = bounded
        return with_shared_choices(field, request)

    def get_changelist_form(self, request: HttpRequest, **kwargs: object) -> Any:
        """Return Django's form for a row of ``list_editable``; rows share the objects of their references."""
        django: Any = super()
        form = django.get_changelist_form(request, **{"form": ReferencesForm, **kwargs})
        if issubclass(form, ReferencesForm):
            form.viewer = self.admin_site, request
        return form

    def _offered(
        self, db_field: Any, request: HttpRequest, given: Mapping[str, object], typed: Mapping[str, object]
    ) -> dict[str, Any]:
        """Return the arguments of a relation's field: its objects, and those in ``typed`` if no key lists them.

        Returns nothing if the objects are given or stored in SQL. They have the order of their own admin if a key
        supports it, otherwise that of the key that lists them. Sends no request.
        """
        model: Any = db_field.remote_field.model
        if "queryset" in given or not is_stored_in_dynamodb(model):
            return {}
        queryset: Any = self.get_field_queryset(given.get("using"), db_field, request)
        listed, is_listed = in_key_order(model._default_manager.all() if queryset is None else queryset)
        instead = {} if is_listed or "widget" in given else typed
        return {**instead, **given, "queryset": listed}
