"""The forms of the admin: formsets in the order of a key, read-only sets, multiple selects, and binary attributes.

For a binary attribute, the admin shows the number of bytes and a download, and an upload if it is editable.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from functools import partial
from typing import TYPE_CHECKING, Any, Final, cast

from django.contrib.admin.utils import flatten_fieldsets, quote, unquote
from django.contrib.admin.widgets import FilteredSelectMultiple
from django.core.exceptions import PermissionDenied, ValidationError
from django.db.models import Model
from django.forms import BaseInlineFormSet, BaseModelFormSet, HiddenInput, ModelChoiceField, ModelForm
from django.forms.formsets import DELETION_FIELD_NAME, INITIAL_FORM_COUNT, TOTAL_FORM_COUNT
from django.http import Http404, HttpRequest, HttpResponse
from django.urls import URLPattern, path, reverse
from django.utils.functional import cached_property
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import ngettext

from dynamo_single.admin.secrets import is_secret, replaced_in_fieldsets
from dynamo_single.admin.types import AdminMixin
from dynamo_single.orm.schema import secrecy
from dynamo_single.orm.schema.attributes.base import AlsoSecret
from dynamo_single.orm.schema.fields.base import BinaryField, DocumentField, SetField
from dynamo_single.orm.schema.fields.documents import BinaryWidget, document_text, size_in_words
from dynamo_single.orm.schema.types import DynamoModel, ModelField
from dynamo_single.permission_fields import ShowsAllChosen

if TYPE_CHECKING:
    from django.forms import Field as FormField
    from django.forms.renderers import BaseRenderer


class _FindsRows:
    """Finds the row for a hidden key among the rows of the formset. Django would read each separately."""

    get_queryset: Any

    @cached_property
    def _stored(self) -> dict[str, Any]:
        return {str(row.pk): row for row in self.get_queryset()}

    def _row(self, field: Any, value: Any) -> Any:
        if value in field.empty_values:
            return None
        row = self._stored.get(str(getattr(value, "pk", value)))
        if row is None:
            raise ValidationError(field.error_messages["invalid_choice"], "invalid_choice", {"value": value})
        return row


class KeyModelFormSet(_FindsRows, BaseModelFormSet):  # type: ignore[type-arg]  # not generic at run time
    """A formset that keeps the order of its rows: Django would sort them by ``pk``, which few keys support."""

    def get_queryset(self) -> Any:
        """Return the rows, read once."""
        if not hasattr(self, "_rows"):
            model: Any = self.model
            self._rows = list(model._default_manager.all() if self.queryset is None else self.queryset)
        return self._rows

    def add_fields(self, form: Any, index: int | None) -> None:
        """Add Django's fields. The hidden key of a row is looked up among the rows of the formset."""
        super().add_fields(form, index)
        for field in form.fields.values():
            if isinstance(field, ModelChoiceField) and isinstance(field.widget, HiddenInput):
                field.to_python = partial(self._row, field)  # type: ignore[method-assign]  # of this form's field


class KeyInlineFormSet(_FindsRows, BaseInlineFormSet):  # type: ignore[type-arg]  # not generic at run time
    """A formset of an inline whose rows are read once: Django would read each submitted row separately.

    Rows that were deleted since the form was shown are removed from the submitted data. The form is then invalid once,
    with an error that names them, except for rows that the user marked for deletion.
    """

    @cached_property
    def forms(self) -> list[Any]:
        """Return Django's forms of the remaining rows, in the submitted order."""
        if self.is_bound and self.initial_form_count():
            self._keep(self._rows_sent())
        forms: list[Any] = super().forms
        return forms

    def add_fields(self, form: Any, index: int | None) -> None:
        """Add Django's fields. The hidden key of a row is looked up among the rows of the formset."""
        super().add_fields(form, index)
        field = form.fields.get(self._key)
        if isinstance(field, ModelChoiceField):
            field.to_python = partial(self._row, field)  # type: ignore[method-assign]  # of this form's field

    def clean(self) -> None:
        """Validate as Django does, and add an error that names the deleted rows."""
        super().clean()
        if self._gone:
            text = ngettext(
                "%(names)s was deleted by someone else. Save again to save your other changes.",
                "These were deleted by someone else: %(names)s. Save again to save your other changes.",
                len(self._gone),
            )
            raise ValidationError(text, "gone", {"names": ", ".join(self._gone)})

    _gone: tuple[str, ...] = ()

    @property
    def _key(self) -> str:
        model: Any = self.model
        return str(model._meta.pk.name)

    def _rows_sent(self) -> list[object]:
        """Return the row of each submitted form; ``None`` if it is gone, and ``False`` without a key."""
        keys = [self.data.get(f"{self.add_prefix(index)}-{self._key}") for index in range(self.initial_form_count())]
        return [self._stored.get(key) if key else False for key in keys]

    def _keep(self, rows: list[object]) -> None:
        gone = {index for index, row in enumerate(rows) if row is None}
        self._gone = tuple(name for index in sorted(gone) if (name := self._name_of(index)))
        if gone:
            self.data, self.files = self._without(self.data, gone), self._without(self.files, gone)
            self.__dict__.pop("management_form", None)
        if all(row is not False for row in rows):
            # The page shows each form next to the object at the same position.
            self._queryset = [row for row in rows if row is not None]
            self.__dict__.pop("_stored", None)

    def _name_of(self, index: int) -> str:
        """Return the name of a deleted row: its first submitted text, or an empty string if it was to be deleted."""
        prefix = self.add_prefix(index)
        if self.data.get(f"{prefix}-{DELETION_FIELD_NAME}"):
            return ""
        fields: dict[str, Any] = self.form.base_fields
        names = [name for name, field in fields.items() if name != self.fk.name and not field.widget.is_hidden]
        texts = (str(self.data.get(f"{prefix}-{name}", "")) for name in names)
        return next((text for text in texts if text), str(self.data[f"{prefix}-{self._key}"]))

    def _without(self, sent: Any, gone: Collection[int]) -> Any:
        """Return the submitted data without some forms; later forms move up."""
        places = [index for index in range(self.total_form_count()) if index not in gone]
        moved = {self.add_prefix(old): self.add_prefix(new) for new, old in enumerate(places)}
        left = sent.copy()
        left.clear()
        for key in sent:
            form = (
                _FORM_NUMBER.match(key.removeprefix(f"{self.prefix}-")) if key.startswith(f"{self.prefix}-") else None
            )
            if form is None:
                _take_over(sent, key, left, key)
            elif (place := moved.get(f"{self.prefix}-{form[1]}")) is not None:
                _take_over(sent, key, left, f"{place}-{form[2]}")
        for name, count in (
            (TOTAL_FORM_COUNT, self.total_form_count()),
            (INITIAL_FORM_COUNT, self.initial_form_count()),
        ):
            if f"{self.prefix}-{name}" in left:
                left[f"{self.prefix}-{name}"] = str(count - len(gone))
        return left


#: The part of a field's name after the prefix: the number of its form, and the name of the field.
_FORM_NUMBER = re.compile(r"(\d+)-(.*)", re.DOTALL)


def _take_over(sent: Any, key: str, left: Any, name: str) -> None:
    if hasattr(sent, "getlist"):
        left.setlist(name, sent.getlist(key))
    else:
        left[name] = sent[key]


def in_lists_order(formset: type[BaseModelFormSet[Model, ModelForm[Model]]] | None) -> type[KeyModelFormSet]:
    """Return the formset class that keeps the order of rows, or a project's own class extended by it."""
    if formset is None:
        return KeyModelFormSet
    if issubclass(formset, KeyModelFormSet):
        return formset
    return type(formset.__name__, (formset, KeyModelFormSet), {"__module__": formset.__module__})


def with_members(
    options: Any, fieldsets: Any, also: AlsoSecret | None = None
) -> list[tuple[object, dict[str, object]]]:
    """Return the fieldsets with sets shown as sorted members, and documents as indented JSON, without their secrets.

    ``also`` is the function with which a site adds secrets.
    """
    shown = {field.name: found for field in options.concrete_fields if (found := _shown(field, also)) is not None}
    return replaced_in_fieldsets(fieldsets, shown)


def _shown(field: ModelField, also: AlsoSecret | None) -> Callable[[object], str] | None:
    described: Any = getattr(field, "attribute", None)

    def members(obj: DynamoModel) -> str:
        found: Any = secrecy.hide(type(obj), field.name, field.value_from_object(obj), also)
        return ", ".join(str(member) for member in sorted(found or ()))

    def document(obj: DynamoModel) -> str:
        value = secrecy.hide(type(obj), field.name, field.value_from_object(obj), also)
        text = "-" if value is None else document_text(value, marked=described.attr_type != "S")
        return format_html('<pre class="dynamo-value">{}</pre>', text)

    shown: Any = members if isinstance(field, SetField) else document if isinstance(field, DocumentField) else None
    if shown is not None:
        # The page finds the help text by this name, and the label by the other one.
        shown.__name__ = field.name
        shown.short_description = field.verbose_name
        shown.shows_field = field.name
    return cast("Callable[[Any], str] | None", shown)


class FilteredSelect(FilteredSelectMultiple):
    """Two lists with a search, available and chosen values: ``FilteredSelect(verbose_name)``."""

    def __init__(
        self, verbose_name: Any, is_stacked: bool = False, attrs: dict[str, object] | None = None, choices: Any = ()
    ) -> None:
        super().__init__(verbose_name, is_stacked, attrs, choices)

    def render(
        self, name: str, value: object, attrs: dict[str, object] | None = None, renderer: BaseRenderer | None = None
    ) -> SafeString:
        """Render the lists in a box, as the script that creates them expects. Otherwise they precede their label."""
        return format_html('<div class="related-widget-wrapper">{}</div>', super().render(name, value, attrs, renderer))


class PermissionsFilter(ShowsAllChosen, FilteredSelect):
    """Two lists with a search for permissions."""


#: The characters that a file name must not contain.
_NO_NAME: Final = re.compile(r"[^A-Za-z0-9_-]")


class DownloadWidget(BinaryWidget):
    """An upload with a link to the stored bytes on the object's own page. A row of an inline has no link."""

    def url_of(self, name: str) -> str:
        """Return the address of the download, relative to the page."""
        return "" if "-" in name else f"../binary/{name}/"


class ShowsBinary(AdminMixin):
    """Adds a download for each binary attribute on an object's page."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        binary = [field for field in self.opts.concrete_fields if isinstance(field, BinaryField)]
        fields = [field for field in binary if not is_secret(self, field.name)]
        self._binary = {field.name: self._shown(field) for field in fields}

    def formfield_for_dbfield(self, db_field: ModelField, request: HttpRequest, **kwargs: object) -> FormField | None:
        """Return Django's form field, with an upload and a download for bytes that are not secret."""
        if isinstance(db_field, BinaryField):
            kwargs = {"widget": DownloadWidget if db_field.name in self._binary else BinaryWidget, **kwargs}
        return super().formfield_for_dbfield(db_field, request, **kwargs)

    def get_fieldsets(self, request: HttpRequest, obj: Any = None) -> Any:
        """Return the declared fieldsets. Read-only bytes are shown as their number, with a download."""
        declared = super().get_fieldsets(request, obj)
        if not self._binary:
            return declared
        may_change = self.has_change_permission(request, obj) if obj is not None else self.has_add_permission(request)
        only = {*self._binary.values()} if not may_change else {*self.get_readonly_fields(request, obj)}
        return replaced_in_fieldsets(declared, {name: each for name, each in self._binary.items() if each in only})

    def get_urls(self) -> list[URLPattern]:
        """Return Django's addresses and the download's."""
        if not self._binary:
            return super().get_urls()
        view = self.admin_site.admin_view(self.binary_view)
        name = f"{self.opts.app_label}_{self.opts.model_name}_binary"
        return [path("<path:object_id>/binary/<str:name>/", view, name=name), *super().get_urls()]

    def binary_view(self, request: HttpRequest, object_id: str, name: str) -> HttpResponse:
        """Return the bytes of an attribute on the object's page as a file: one GetItem."""
        obj: Any = self.get_object(request, unquote(object_id))
        if not self.has_view_or_change_permission(request, obj):
            raise PermissionDenied
        if obj is None or name not in self._binary:
            raise Http404
        shown: Any = flatten_fieldsets(self.get_fieldsets(request, obj))
        value = getattr(obj, name) if {name, self._binary[name]} & {*shown} else None
        if value is None:
            raise Http404
        # The type of the bytes is unknown, so that a browser must not display them.
        headers = {
            "Content-Disposition": f'attachment; filename="{_NO_NAME.sub("_", f"{obj.pk}-{name}")}.bin"',
            "X-Content-Type-Options": "nosniff",
        }
        return HttpResponse(bytes(value), content_type="application/octet-stream", headers=headers)

    def _shown(self, field: ModelField) -> Callable[[Any], str]:
        def shown(obj: Any) -> str:
            size = size_in_words(getattr(obj, field.name))
            if not size or obj._state.adding:
                return size or self.get_empty_value_display()
            name = f"admin:{self.opts.app_label}_{self.opts.model_name}_binary"
            address = reverse(name, args=(quote(obj.pk), field.name), current_app=self.admin_site.name)
            return format_html('<a href="{}">{}</a>', address, size)

        shown.__name__ = field.name
        shown.short_description = field.verbose_name  # type: ignore[attr-defined]  # Django reads it
        return shown
