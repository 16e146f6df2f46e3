"""Maps and lists with a schema in the forms of model admins and inlines: typed rows in the place of JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib.admin import ModelAdmin
from django.http import HttpRequest

from dynamo_single.orm.schema.fields.shaped import form_class_of
from dynamo_single.orm.schema.kinds import ModelField

if TYPE_CHECKING:
    from django.forms import Field as FormField

    _Base = ModelAdmin[Any]
else:
    _Base = object


class HasRows(_Base):
    """Has a row for each declared place of a map, and for each element of a list whose elements are declared."""

    def formfield_for_dbfield(self, db_field: ModelField, request: HttpRequest, **kwargs: object) -> FormField | None:
        """Django's; what is declared of a map or a list decides on the class of its field."""
        form_class = form_class_of(getattr(db_field, "attribute", None))
        if form_class is not None:
            kwargs = {"form_class": form_class, **kwargs}
        return super().formfield_for_dbfield(db_field, request, **kwargs)
