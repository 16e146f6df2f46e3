"""Autocomplete of references: the results of a search, or the object with the typed key."""

from __future__ import annotations

import logging
from functools import partial
from typing import TYPE_CHECKING, Any

from django.contrib.admin.views.autocomplete import AutocompleteJsonView
from django.http import HttpRequest, HttpResponse, JsonResponse

from dynamo_single.admin import trash
from dynamo_single.admin.lists import in_memory
from dynamo_single.exceptions import NotSupported, TooManyMatches
from dynamo_single.orm.schema.keys.secret_values import hide

if TYPE_CHECKING:
    # The stubs lack its methods.
    class _Base(AutocompleteJsonView):
        def get(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse: ...

else:
    _Base = AutocompleteJsonView

logger = logging.getLogger("dynamo_single.admin")


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
