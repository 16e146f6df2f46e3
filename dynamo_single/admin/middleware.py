"""Django's middleware that asks everybody to log in, for projects whose sessions or users are in DynamoDB."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.middleware import LoginRequiredMiddleware as DjangoMiddleware
from django.http import HttpRequest
from django.http.response import HttpResponseBase

from dynamo_single.admin.errors import UNAVAILABLE, unavailable_page

__all__ = ["LoginRequiredMiddleware"]


class LoginRequiredMiddleware(DjangoMiddleware):
    """Django's, in its place in ``MIDDLEWARE``; on pages of the admin it answers as they do while DynamoDB is away.

    Django's asks for the user before a page's view is called, which can then not answer for what that meets. Elsewhere
    the error is raised, as it is by a project's own views.
    """

    def process_view(
        self, request: HttpRequest, view_func: Any, view_args: Any, view_kwargs: Any
    ) -> HttpResponseBase | None:
        """A redirection to the login page, or ``None``; on the admin's pages 503 where nobody can be asked for."""
        try:
            return super().process_view(request, view_func, view_args, view_kwargs)
        except UNAVAILABLE as error:
            match = request.resolver_match
            if match is None or "admin" not in match.app_names:
                raise
            page: HttpResponseBase = unavailable_page(request, error)
            return page
