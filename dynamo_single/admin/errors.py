"""What the admin says when DynamoDB refuses: a save becomes a form's error, a list a page that explains."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django.forms import BaseModelForm
from django.utils.translation import gettext as _

from dynamo_single.exceptions import (
    AlreadyExists,
    InvalidValue,
    ItemTooLarge,
    MissingReference,
    ParentInTrash,
    StaleObject,
    StillReferenced,
    TooManyHolders,
    UniqueViolation,
)
from dynamo_single.orm.schema.kinds import DynamoModel

#: What a save or a deletion can be refused with although the form was valid; in each case nothing was written.
REFUSALS = (
    AlreadyExists,
    InvalidValue,
    ItemTooLarge,
    MissingReference,
    ParentInTrash,
    StaleObject,
    StillReferenced,
    TooManyHolders,
    UniqueViolation,
)


class RelatedRefused(Exception):
    """The object itself was saved, and one of its inlines was refused; never leaves the admin."""

    def __init__(self, obj: DynamoModel, refusal: Exception) -> None:
        super().__init__(str(refusal))
        self.obj = obj


class TooMuchWithFiles(Exception):
    """A form that is more than one transaction takes has files, which are not stored twice; never leaves the admin."""

    def __str__(self) -> str:
        return _("This is more than can be saved at once, and nothing was saved. Save the files by themselves first.")


def refused_form(form_class: type[BaseModelForm[Any]], refusal: Exception) -> Any:
    """The form, never valid, with what its save was refused for: at the field for a unique value, else above all."""

    class RefusedForm(form_class):  # type: ignore[misc, valid-type]  # made for one request
        def clean(self) -> Any:
            cleaned = super().clean()
            name = _field_of(refusal, self._meta.model)
            if name in self.fields:
                self.add_error(name, self.instance.unique_error_message(self._meta.model, (name,)))
            else:
                self.add_error(None, str(refusal))
            return cleaned

    return RefusedForm


def refused_row(formsets: Iterable[Any], refusal: Exception) -> None:
    """Give the rows of inlines that have the unique value that a save was refused for an error at their field."""
    value = str(getattr(refusal, "value", "")).casefold()
    for formset in formsets:
        name = _field_of(refusal, formset.model)
        if name is None or not formset.is_bound:
            continue
        formset.full_clean()
        for form in formset.forms:
            if name in form.changed_data and str(form.cleaned_data.get(name)).casefold() == value:
                form.add_error(name, form.instance.unique_error_message(formset.model, (name,)))


def _field_of(refusal: Exception, model: type[DynamoModel]) -> str | None:
    """The field that a unique value was refused for, if it is one of this model's."""
    if not isinstance(refusal, UniqueViolation) or refusal.label != model._meta.label:
        return None
    names = {field.attname: field.name for field in model._meta.concrete_fields}
    return names.get(refusal.field, refusal.field)
