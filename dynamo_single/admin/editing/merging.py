"""Forms that merge concurrent edits, and forms with a row for each declared element of a map or list."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.forms import BaseModelForm
from django.http import HttpRequest

from dynamo_single.admin.editing import saving
from dynamo_single.admin.references import ReferencesForm
from dynamo_single.admin.types import AdminMixin
from dynamo_single.forms import AS_SHOWN, MergingModelForm, shown_field
from dynamo_single.lazy_modules import LazyModule
from dynamo_single.orm.schema.types import DynamoModel, ModelField

if TYPE_CHECKING:
    from django.forms import Field as FormField


#: The only place where the core reaches this folder, which is above the admin.
document_forms = LazyModule("dynamo_single.contrib.document_forms")


class MergingMixin(AdminMixin):
    """Lets each form of a stored object merge the changes of several users."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.form = _merging_form(self.form)

    def get_form(self, request: HttpRequest, obj: Any = None, change: bool = False, **kwargs: object) -> Any:
        """Return Django's form for an object. It extends a custom form class to merge."""
        admin: Any = super()
        return _for_viewer(admin.get_form(request, obj, change=change, **_with_merging(obj, kwargs)), self, request)

    def get_formset(self, request: HttpRequest, obj: Any = None, **kwargs: object) -> Any:
        """Return Django's formset of an inline, with a form class that merges."""
        inline: Any = super()
        formset = inline.get_formset(request, obj, **_with_merging(obj, kwargs))
        _for_viewer(formset.form, self, request)
        return formset


class ShowsMerging(saving.FormContextMixin):
    """Adds the hidden field to the page of an object that the user may change, and to the rows of its inlines.

    ``get_form()``, ``get_fieldsets()`` and formsets do not contain it: their fields are those that a project declares.
    """

    def _prepare_form(self, request: HttpRequest, context: dict[str, Any], obj: DynamoModel | None) -> None:
        super()._prepare_form(request, context, obj)
        if obj is None:
            return
        page = context["adminform"]
        if isinstance(page.form, MergingModelForm) and self.has_change_permission(request, obj):
            page.fieldsets = saving.with_hidden_field(page.fieldsets, AS_SHOWN)
        for inline in context.get("inline_admin_formsets", ()):
            if issubclass(inline.formset.form, MergingModelForm) and inline.has_change_permission:
                # Django has created the class for this request; the titles of columns are those of an empty row.
                inline.formset.form.base_fields[AS_SHOWN] = shown_field()
                inline.fieldsets = saving.with_hidden_field(inline.fieldsets, AS_SHOWN)


def _for_viewer(form: Any, modeladmin: Any, request: HttpRequest) -> Any:
    """Set the user of a form class that Django has created for this request."""
    if issubclass(form, ReferencesForm):
        form.viewer = modeladmin.admin_site, request
    return form


def _with_merging(obj: DynamoModel | None, given: dict[str, object]) -> dict[str, object]:
    return given if obj is None or "form" not in given else {**given, "form": _merging_form(given["form"])}


def _merging_form(form: object) -> Any:
    """Return a form class with the hidden field. Django's check reports a class that is not a model form."""
    if not isinstance(form, type) or issubclass(form, ReferencesForm) or not issubclass(form, BaseModelForm):
        return form
    bases = (ReferencesForm, form) if issubclass(form, MergingModelForm) else (ReferencesForm, MergingModelForm, form)
    return type(form.__name__, bases, {"__module__": form.__module__, "__doc__": form.__doc__})


class RowFieldsMixin(AdminMixin):
    """Adds a row for each declared key of a map, and for each element of a list with declared elements."""

    def formfield_for_dbfield(self, db_field: ModelField, request: HttpRequest, **kwargs: object) -> FormField | None:
        """Return Django's form field. The declaration of a map or list determines its class."""
        attribute = getattr(db_field, "attribute", None)
        form_class = None if attribute is None or attribute.shape is None else document_forms.form_class_of(attribute)
        if form_class is not None:
            kwargs = {"form_class": form_class, **kwargs}
        return super().formfield_for_dbfield(db_field, request, **kwargs)
