"""References in forms with a search, without ``autocomplete_fields``, if a key finds their objects by a text."""

from __future__ import annotations

from typing import Any, ClassVar

from django.http import HttpRequest

from dynamo_single.admin.lists import search
from dynamo_single.admin.secrets import without_secrets
from dynamo_single.backend.errors import is_stored_in_dynamodb
from dynamo_single.orm.schema.fields.base import ReferenceField

#: A text that keys are planned with.
_EXAMPLE = "a"


class _Automatic(tuple[str, ...]):
    """The default of ``autocomplete_fields``, which differs from an empty tuple that a project sets."""


class AutocompleteMixin:
    """The base of a ``ModelAdmin`` or inline, before Django's class, whose references have a search by default.

    ``autocomplete_fields`` of a project replaces the default: with an empty one, references have Django's select.
    """

    autocomplete_fields: ClassVar[Any] = _Automatic()

    def get_autocomplete_fields(self: Any, request: HttpRequest) -> Any:
        """Return the declared fields, or each reference whose objects a key finds by the beginning of a text.

        The admin of the objects has to name the attribute in ``search_fields``, and the user has to have the permission
        to view them. Does not send a request.
        """
        django: Any = super()
        declared = django.get_autocomplete_fields(request)
        if not isinstance(declared, _Automatic):
            return declared
        fields = [
            each for each in self.opts.concrete_fields if each.name not in {*self.raw_id_fields, *self.radio_fields}
        ]
        return tuple(each.name for each in fields if _is_searched(self.admin_site, each, request))


def _is_searched(site: Any, field: Any, request: HttpRequest) -> bool:
    """Return whether the admin of a reference's objects finds them by a key that supports the beginning of a text."""
    if not isinstance(field, ReferenceField) or not is_stored_in_dynamodb(field.remote_field.model):
        return False
    model: Any = field.remote_field.model
    own = site.get_model_admin(model) if site.is_registered(model) else None
    if own is None or not hasattr(own, "list_scan_budget") or not hasattr(request, "user"):
        return False
    if not own.has_view_permission(request):
        return False
    names = map(str, without_secrets(own, own.get_search_fields(request)))
    rows = model._default_manager.all()
    found = (lookup for name in names for lookup in search.supported_lookup(rows, name, _EXAMPLE))
    return any(lookup.endswith("startswith") for lookup in found)
