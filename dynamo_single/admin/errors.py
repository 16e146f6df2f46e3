"""What the admin says when DynamoDB refuses: a save becomes a form's error, a list a page that explains."""

from __future__ import annotations

from typing import Any

from django.forms import BaseModelForm

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


def refused_form(form_class: type[BaseModelForm[Any]], refusal: Exception) -> Any:
    """The form, never valid, with what its save was refused for: at the field for a unique value, else above all."""

    class RefusedForm(form_class):  # type: ignore[misc, valid-type]  # made for one request
        def clean(self) -> Any:
            cleaned = super().clean()
            attribute = getattr(refusal, "field", None)
            names = {field.attname: field.name for field in self._meta.model._meta.concrete_fields}
            name = names.get(attribute, attribute) if attribute else None
            if name in self.fields:
                model = self._meta.model
                self.add_error(name, self.instance.unique_error_message(model, (name,)))
            else:
                self.add_error(None, str(refusal))
            return cleaned

    return RefusedForm
