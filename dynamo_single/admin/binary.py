"""Binary attributes in the admin: how many bytes there are, a download, and an upload where they are editable."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from django.contrib.admin import ModelAdmin
from django.contrib.admin.utils import flatten_fieldsets, quote, unquote
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse
from django.urls import URLPattern, path, reverse
from django.utils.html import format_html

from dynamo_single.admin.secrets import is_secret
from dynamo_single.orm.schema.fields.binary import BinaryWidget, size_in_words
from dynamo_single.orm.schema.fields.fields import BinaryField
from dynamo_single.orm.schema.kinds import ModelField

if TYPE_CHECKING:
    from django.forms import Field as FormField

    _Base = ModelAdmin[Any]
else:
    _Base = object

#: What stands in no name of a file.
_NO_NAME: Final = re.compile(r"[^A-Za-z0-9_-]")


class DownloadWidget(BinaryWidget):
    """With a link to what is stored, from the object's own page; a row of an inline has none."""

    def url_of(self, name: str) -> str:
        """The address, as seen from the page."""
        return "" if "-" in name else f"../binary/{name}/"


class ShowsBinary(_Base):
    """Has a download for each binary attribute that an object's page shows."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        binary = [field for field in self.opts.concrete_fields if isinstance(field, BinaryField)]
        fields = [field for field in binary if not is_secret(self, field.name)]
        self._binary = {field.name: self._shown(field) for field in fields}

    def formfield_for_dbfield(self, db_field: ModelField, request: HttpRequest, **kwargs: object) -> FormField | None:
        """Django's; bytes are uploaded, and what is stored can be downloaded, unless it is a secret."""
        if isinstance(db_field, BinaryField):
            kwargs = {"widget": DownloadWidget if db_field.name in self._binary else BinaryWidget, **kwargs}
        return super().formfield_for_dbfield(db_field, request, **kwargs)

    def get_fieldsets(self, request: HttpRequest, obj: Any = None) -> Any:
        """The declared ones; bytes that can only be read are shown by their number, with a download."""
        declared = super().get_fieldsets(request, obj)
        if not self._binary:
            return declared
        may_change = self.has_change_permission(request, obj) if obj is not None else self.has_add_permission(request)
        only = {*self._binary.values()} if not may_change else {*self.get_readonly_fields(request, obj)}
        return [
            (title, {**described, "fields": self._with_sizes(described["fields"], only)})
            for title, described in declared
        ]

    def get_urls(self) -> list[URLPattern]:
        """Django's, and the one that downloads."""
        if not self._binary:
            return super().get_urls()
        view = self.admin_site.admin_view(self.binary_view)
        name = f"{self.opts.app_label}_{self.opts.model_name}_binary"
        return [path("<path:object_id>/binary/<str:name>/", view, name=name), *super().get_urls()]

    def binary_view(self, request: HttpRequest, object_id: str, name: str) -> HttpResponse:
        """The bytes of an attribute that the object's page shows, as a file: one GetItem."""
        obj: Any = self.get_object(request, unquote(object_id))
        if not self.has_view_or_change_permission(request, obj):
            raise PermissionDenied
        if obj is None or name not in self._binary:
            raise Http404
        shown: Any = flatten_fieldsets(self.get_fieldsets(request, obj))
        value = getattr(obj, name) if {name, self._binary[name]} & {*shown} else None
        if value is None:
            raise Http404
        # What the bytes are nobody knows: they are not for a browser to show.
        headers = {
            "Content-Disposition": f'attachment; filename="{_NO_NAME.sub("_", f"{obj.pk}-{name}")}.bin"',
            "X-Content-Type-Options": "nosniff",
        }
        return HttpResponse(bytes(value), content_type="application/octet-stream", headers=headers)

    def _with_sizes(self, fields: Any, only: Any = None) -> Any:
        """Names of fields, with what shows the size in the place of bytes: of all, or of some."""

        def replaced(each: Any) -> Any:
            if isinstance(each, list | tuple):
                return tuple(map(replaced, each))
            found = self._binary.get(each) if isinstance(each, str) else None
            return each if found is None or (only is not None and found not in only) else found

        return tuple(map(replaced, fields)) if self._binary else fields

    def _shown(self, field: ModelField) -> Callable[[Any], str]:
        def shown(obj: Any) -> str:
            size = size_in_words(getattr(obj, field.name))
            if not size or obj._state.adding:
                return size or self.get_empty_value_display()
            name = f"admin:{self.opts.app_label}_{self.opts.model_name}_binary"
            address = reverse(name, args=(quote(obj.pk), field.name), current_app=self.admin_site.name)
            return format_html('<a href="{}">{}</a>', address, size)

        shown.__name__ = field.name
        shown.short_description = field.verbose_name  # type: ignore[attr-defined]  # read by Django
        return shown
