"""Autocomplete of references: which references of a form have it, and its results."""

from __future__ import annotations

import logging
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Final

from django.contrib.admin.views.autocomplete import AutocompleteJsonView
from django.http import HttpRequest, HttpResponse, JsonResponse

from dynamo_single.admin import trash
from dynamo_single.admin.lists import in_memory, search
from dynamo_single.admin.secrets import without_secrets
from dynamo_single.backend.errors import is_stored_in_dynamodb
from dynamo_single.exceptions import NotSupported, TooManyMatches
from dynamo_single.orm.schema.fields.base import ReferenceField
from dynamo_single.orm.schema.keys.secret_values import hide

if TYPE_CHECKING:
    # The stubs lack its methods.
    class _Base(AutocompleteJsonView):
        def get(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse: ...

else:
    _Base = AutocompleteJsonView

logger = logging.getLogger("dynamo_single.admin")

#: A string to plan keys with.
_EXAMPLE: Final = "a"


class ChoicesView(_Base):
    """Django's autocomplete. For more objects than a page contains, it finds what keys support, or a complete key."""

    def get(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        """Return the choices as JSON, for users who may view them: the requests of a list, or one GetItem."""
        found = partial(super().get, request, *args, **kwargs)
        try:
            try:
                return found()
            except TooManyMatches:
                in_memory.disable(request)
                return found()
        except NotSupported as error:
            logger.warning("The search of %s finds whole keys only: %s", hide(request.get_full_path()), error)
            return self._by_key(request)

    def _by_key(self, request: HttpRequest) -> HttpResponse:
        """Return the object whose key is the text. Django has checked the permissions before its search."""
        _term, model_admin, _field, name = self.process_request(request)
        obj = model_admin.get_object(request, self.term.strip()) if self.term.strip() else None
        chosen = [] if obj is None or trash.is_deleted(obj) else [self.serialize_result(obj, name)]
        return JsonResponse({"results": chosen, "pagination": {"more": False}})


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
