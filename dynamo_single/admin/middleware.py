"""Django's ``LoginRequiredMiddleware`` for projects that store sessions or users in DynamoDB."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.middleware import LoginRequiredMiddleware as DjangoMiddleware
from django.http import HttpRequest
from django.http.response import HttpResponseBase

from dynamo_single.admin.errors import UNAVAILABLE, unavailable_page

__all__ = ["LoginRequiredMiddleware"]


class LoginRequiredMiddleware(DjangoMiddleware):
    """Use it in ``MIDDLEWARE`` instead of Django's: admin pages return their own 503 page without DynamoDB.

    Django's middleware loads the user before it calls the view, so that the view cannot handle an error of that
    request. On other pages the error is raised, as a project's own views would raise it.
    """

    def process_view(
        self, request: HttpRequest, view_func: Any, view_args: Any, view_kwargs: Any
    ) -> HttpResponseBase | None:
        """Return a redirect to the login page or ``None``; on admin pages a 503 if the user cannot be loaded."""
        try:
            return super().process_view(request, view_func, view_args, view_kwargs)
        except UNAVAILABLE as error:
            match = request.resolver_match
            if match is None or "admin" not in match.app_names:
                raise
            page: HttpResponseBase = unavailable_page(request, error)
            return page
