"""Fields of references in the forms of model admins and inlines, and the addresses of objects on the site."""

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
from dynamo_single.orm.query.state import state_of, what_is_asked
from dynamo_single.orm.results import cached_lists, objects
from dynamo_single.orm.schema.fields.fetching import IS_KNOWN
from dynamo_single.orm.schema.types import DynamoModel, SentData, SentFiles

if TYPE_CHECKING:
    from django.forms.renderers import BaseRenderer


# The referenced objects of a request's forms, which are read once and in batches.
#
# Django reads the object of each reference in each submitted form, and checks once more that it exists; a field that
# shows the object next to its key reads it for each form. Here each form registers its references when it is created,
# and the first form that needs an object causes all to be read. This part does not depend on the purpose of the forms.

F = TypeVar("F")

#: The name of what a request has read, in its ``__dict__``: it ends with the request, so that it is never stale.
_REFERRED = "_dynamo_single_referred"
#: How many keys are read by one call, which sends a BatchGetItem for each hundred; ``in_bulk()`` takes 10,000.
_MAX_KEYS = 1000


class _KeyedObjects:
    """What one question gave: the keys that forms have and that were asked for, as texts, and the objects by theirs."""

    def __init__(self) -> None:
        self.wanted: dict[str, None] = {}
        self.asked: set[str] = set()
        self.found: dict[str, DynamoModel] = {}

    def read(self, queryset: QuerySet[DynamoModel], keys: list[str]) -> None:
        """Read objects by their keys: one BatchGetItem for each hundred.

        What is no key of the model is left to the form that has it, which asks for it by itself and says so; so are all
        where one of them cannot be asked for.
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
        """Note that a form refers to an object of a queryset, which is read along with others of it; sends nothing."""
        answers = None if key in (None, "") else self._answers_of(queryset)
        if answers is not None:
            answers.wanted[str(key)] = None

    def find(self, queryset: QuerySet[DynamoModel], key: object) -> DynamoModel | None:
        """The object of this key that a queryset gives, read along with all of it that forms refer to.

        ``None`` if it was not among what a batch gave: it is not there, or nothing else is wanted. Then it is asked for
        by itself.
        """
        answers = self._answers_of(queryset)
        if answers is None:
            return None
        missing = [each for each in answers.wanted if each not in answers.asked]
        if len(missing) > 1 and str(key) in missing:
            answers.read(queryset.order_by(), missing)
        return answers.found.get(str(key))

    def keep(self, queryset: QuerySet[DynamoModel], obj: DynamoModel | None) -> None:
        """Note an object that a form has read by itself."""
        answers = self._answers_of(queryset)
        if answers is not None and obj is not None:
            answers.asked.add(str(obj.pk))
            answers.found[str(obj.pk)] = obj

    def is_there(self, model: type[DynamoModel], key: object) -> bool:
        """Whether an object of this key was read for this request, by whatever queryset; sends nothing."""
        return any(each is model and str(key) in answers.found for each, _, answers in self._answers)

    def _answers_of(self, queryset: QuerySet[DynamoModel]) -> _KeyedObjects | None:
        # A project's own get() is called for each key, as Django would.
        if type(queryset).get is not QuerySet.get or queryset.query.is_sliced:
            return None
        try:
            # In whatever order: a key gives one object.
            asked = what_is_asked(queryset.order_by())
        except (NotSupported, UnknownField):
            return None  # as its own reading says
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
    """The field of a reference, whose copies in the forms of this request share what they read; sends nothing.

    Fields over SQL, those with a ``to_python()`` of their own, and those of a stand-in for a request stay as they are.
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
    field.referred = referenced_objects(request)  # type: ignore[attr-defined]  # copied along with the field
    own = _WIDGETS.get(type(field.widget))
    if own is not None:
        # With what Django has told it; the two have one attribute besides.
        widget: Any = copy(field.widget)
        widget.__class__, widget.referred = own, referenced_objects(request)
        field.widget = widget
    return field


class ReferencesForm(ModelForm):  # type: ignore[type-arg]  # not generic at run time
    """A form of the admin, before a project's: what its references lead to is read once for all forms of the page.

    Fields offer and accept only objects that the ``viewer`` may see, and those that the object refers to already.
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
            if isinstance(widget, _RawKey):  # which names the object whatever the field offers
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
        """Django's; whether what was read is there is not asked once more."""
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
        """The key that was sent, or is shown; the form keeps no bound field, as a formset may give it other fields."""
        if self.is_bound:
            return field.widget.value_from_datadict(self.data, self.files, self.add_prefix(name))
        return field.prepare_value(self.get_initial_for_field(field, name))

    def _is_there(self, field: Any, key: object) -> bool:
        referred: ReferencedObjects | None = getattr(self.fields.get(field.name), "referred", None)
        return referred is not None and referred.is_there(field.remote_field.model, key)


def _to_python(field: Any, value: Any) -> Any:
    """``ModelChoiceField.to_python()``, of what the request has read or reads for all its forms."""
    found = field.referred.find(field.queryset, value) if isinstance(value, str) and value else None
    if found is None:
        found = type(field).to_python(field, value)
        field.referred.keep(field.queryset, found)
    return found


class _RawKey(ForeignKeyRawIdWidget):
    """A field for a key, beside which the object is named."""

    referred: ReferencedObjects
    seen: VisibleObjects | None = None

    @property
    def named(self) -> QuerySet[DynamoModel]:
        """Django's queryset of the objects that it names."""
        queryset: Any = self.rel.model._default_manager.using(self.db)
        found: QuerySet[DynamoModel] = queryset
        return found

    def label_and_url_for_value(self, value: object) -> tuple[str, str]:
        """The object's name and address; as Django's where no batch gave it."""
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
    """A select whose one option is what is chosen, until something is searched for."""

    referred: ReferencedObjects

    def optgroups(self, name: str, value: Sequence[str], attr: dict[str, object] | None = None) -> Any:
        """Django's, of what the request has read or reads for all its forms."""
        chosen = [self.referred.find(self.choices.queryset, key) for key in value if key]
        if not chosen or None in chosen:
            return super().optgroups(name, value, attr)
        shown = copy(self)
        shown.choices = _ChosenOnly(self.choices.field, chosen)
        return AutocompleteSelect.optgroups(shown, name, value, attr)


class _ChosenOnly:
    """In the place of the choices of a select: the field, and a queryset of which Django takes what is chosen."""

    def __init__(self, field: Any, chosen: list[DynamoModel | None]) -> None:
        self.field = field
        self.queryset = self
        self._chosen = chosen

    def using(self, alias: object) -> _ChosenOnly:
        """Itself."""
        return self

    def filter(self, **conditions: object) -> list[DynamoModel | None]:
        """What is chosen, read by the keys that Django asks for."""
        return self._chosen


#: What takes the place of Django's widgets.
_WIDGETS: dict[type[Widget], type[Widget]] = {ForeignKeyRawIdWidget: _RawKey, AutocompleteSelect: _Autocomplete}


# The choices of references, which all forms of a page share.
#
# Django reads the choices of a field for each form: once for each row of an inline or an editable list. Here the forms
# of one request that need the same objects share what the first of them has read.

#: What a request has read for its choices, in its ``__dict__``: it ends with the request, so that it is never stale.
_CHOICES = "_dynamo_single_choices"


class _SharedRows:
    """The objects of a queryset, read as far as somebody has gone through them, and no object twice."""

    def __init__(self, queryset: QuerySet[DynamoModel]) -> None:
        self._queryset = queryset
        self._begin()

    def _begin(self) -> None:
        self._found: list[DynamoModel] = []
        self._rest = iter(read_by_pages(self._queryset))

    def __iter__(self) -> Iterator[DynamoModel]:
        """The objects: one Query for each megabyte that nobody has read before."""
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
            # What was read so far must not pass for all there is.
            self._begin()
            raise
        return True


def read_by_pages(queryset: Any) -> Iterable[DynamoModel]:
    """As Django's choices read: what is prefetched comes with the whole result only."""
    found: Iterable[DynamoModel] = queryset if queryset._prefetch_related_lookups else queryset.iterator()
    return found


class _Choices(ModelChoiceIterator):  # type: ignore[type-arg]  # not generic at run time
    """Django's choices of a field, of objects that the request has read already or reads for all."""

    def __init__(self, request: HttpRequest, field: Any) -> None:
        super().__init__(field)
        self._request = request

    def __iter__(self) -> Iterator[Any]:
        """The empty choice if there is one, and the objects."""
        if self.field.empty_label is not None:
            yield "", self.field.empty_label
        for obj in _read(self._request, self.queryset):
            yield self.choice(obj)


def _read(request: HttpRequest, queryset: Any) -> Iterable[DynamoModel]:
    try:
        asked = what_is_asked(queryset)
    except (NotSupported, UnknownField):
        return read_by_pages(queryset)  # which says the same, where it is read
    reads: list[tuple[object, _SharedRows]] = request.__dict__.setdefault(_CHOICES, [])
    found = next((read for known, read in reads if known == asked), None)
    if found is None:
        found = _SharedRows(queryset)
        reads.append((asked, found))
    return found


def with_shared_choices(field: F, request: HttpRequest | None) -> F:
    """The field of a reference, whose copies in the forms of this request read their choices once; sends nothing.

    A form that has another queryset, by ``limit_choices_to`` or by code of a project's own, reads that. Fields over SQL
    and fields with an iterator of their own stay as they are.
    """
    if (
        not isinstance(request, HttpRequest)  # a stand-in may live longer than a page, and show what was
        or not isinstance(field, ModelChoiceField)
        or field.queryset is None
        or not is_stored_in_dynamodb(field.queryset.model)
        or field.iterator is not ModelChoiceIterator
    ):
        return field
    field.iterator = partial(_Choices, request)  # type: ignore[assignment]  # of this field and its copies
    field.widget.choices = field.choices  # as Django does for every widget
    return field


#: How many objects a select offers at most.
MAX_CHOICES = 2000


def is_served_by_keys(queryset: QuerySet[DynamoModel]) -> bool:
    """Whether keys answer a queryset, in its order too; sends nothing."""
    try:
        objects.plan(state_of(queryset))
    except (NotSupported, UnknownField):
        return False
    return True


def in_key_order(queryset: QuerySet[DynamoModel]) -> tuple[QuerySet[DynamoModel], bool]:
    """A queryset in its order if a key serves it, else in that of the key that lists it, and whether there is one."""
    if is_served_by_keys(queryset):
        return queryset, True
    unordered = queryset.order_by()
    return unordered, is_served_by_keys(unordered)


def is_exact(queryset: QuerySet[DynamoModel]) -> bool:
    """Whether keys express all that a queryset asks, so that nothing is read but what it gives; sends nothing."""
    try:
        return cached_lists.is_exact(objects.plan(state_of(queryset)))
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
            return _keys_input().render(_typed_name(name), value, attrs, renderer)
        # Read once: Django's own would read them again.
        shown = copy(self)
        shown.choices = choices
        return super(BoundedSelectMultiple, shown).render(name, value, attrs, renderer)

    def value_from_datadict(self, data: SentData, files: SentFiles, name: str) -> Any:
        """The keys that were chosen, or typed."""
        if _typed_name(name) in data:
            return _keys_input().value_from_datadict(data, files, _typed_name(name))
        return super().value_from_datadict(data, files, name)


class BoundedFilteredSelect(BoundedSelectMultiple, FilteredSelectMultiple):
    """The same as two lists with a search."""


#: What takes the place of Django's widgets.
_BOUNDED: dict[type[Widget], type[Widget]] = {
    SelectMultiple: BoundedSelectMultiple,
    FilteredSelectMultiple: BoundedFilteredSelect,
}


def _typed_name(name: str) -> str:
    """The name of a field's keys as they are typed, which may themselves have commas where they are chosen."""
    return f"{name}_keys"


def _keys_input() -> KeysInput:
    return KeysInput({"class": "vTextField"})


class ReferencesMixin:
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
        return with_shared_reads(with_shared_choices(field, request), request)

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
        return with_shared_choices(field, request)

    def get_changelist_form(self, request: HttpRequest, **kwargs: object) -> Any:
        """Django's, of a row of ``list_editable``; rows share what their references lead to."""
        django: Any = super()
        form = django.get_changelist_form(request, **{"form": ReferencesForm, **kwargs})
        if issubclass(form, ReferencesForm):
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
        listed, is_listed = in_key_order(model._default_manager.all() if queryset is None else queryset)
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
