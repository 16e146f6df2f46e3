"""The page for an unsupported list: a message for the site's staff, and the details for developers."""

from __future__ import annotations

import logging
from http import HTTPStatus
from typing import Any

from django.contrib import messages
from django.contrib.admin.options import IS_POPUP_VAR, TO_FIELD_VAR
from django.contrib.admin.views.main import ERROR_FLAG
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.http.response import HttpResponseBase
from django.template.defaultfilters import filesizeformat
from django.template.response import TemplateResponse
from django.utils.html import format_html
from django.utils.http import urlencode
from django.utils.translation import gettext as _

from dynamo_single.admin.errors import is_developer
from dynamo_single.admin.lists import in_memory, related, stepwise, tenants
from dynamo_single.admin.lists.changelist import CURSOR_VAR, KeyChangeList
from dynamo_single.admin.lists.scanning import is_fetched_in_advance
from dynamo_single.admin.types import DynamoModelAdmin
from dynamo_single.exceptions import KeyNotFilled, NoAccessPattern, TooManyMatches, TooManyReads
from dynamo_single.orm.schema.keys.secret_values import hide

logger = logging.getLogger("dynamo_single.admin")

_STOCK = "admin/change_list.html"
_NOTED = "dynamo_single/admin/change_list.html"


def use_list_template(response: HttpResponseBase) -> None:
    """Show a list with our template instead of Django's, with the cost of reading it. A project's template is kept."""
    if not isinstance(response, TemplateResponse) or isinstance(response.template_name, str):
        return
    if isinstance((response.context_data or {}).get("cl"), KeyChangeList):
        names: Any = response.template_name
        response.template_name = [_NOTED if name == _STOCK else name for name in names]


def too_many_rows(model_admin: DynamoModelAdmin, request: HttpRequest) -> str:
    """Return the message that there are more rows than a list reads, or more bytes."""
    if in_memory.is_heavy(request, model_admin):
        return _("The %(name)s are larger than %(size)s together, which is too much to search in one step.") % {
            "name": model_admin.opts.verbose_name_plural,
            "size": filesizeformat(in_memory.max_bytes_of(model_admin)),
        }
    return _("There are more than %(limit)d %(name)s, which is too many to search in one step.") % {
        "limit": in_memory.limit_of(model_admin),
        "name": model_admin.opts.verbose_name_plural,
    }


def refused_page(model_admin: DynamoModelAdmin, request: HttpRequest, error: Exception) -> HttpResponseBase:
    """Return the page instead of a list that is not supported: status 400, and the reason."""
    message = explanation(error)
    logger.warning("The list %s cannot be shown: %s", hide(request.get_full_path()), message)
    if isinstance(error, related.TooManyRelated) and request.method == "GET" and ERROR_FLAG not in request.GET:
        return _back_to_list(request, related.too_many_text(model_admin, _("the filters and the search")), message)
    if _is_bad_address(request, error):
        return _back_to_list(request, _("The URL contains an invalid filter, order or search."), message)
    tenant = tenants.tenant_of(model_admin) if _is_unlisted(error) and request.method == "GET" else None
    if tenant is not None and tenant.parameter not in request.GET:
        return tenants.choose(request, model_admin, tenant, _scan_link(model_admin, request, error))
    request.current_app = model_admin.admin_site.name
    context = {
        **model_admin.admin_site.each_context(request),
        "title": _("This list cannot be shown"),
        "opts": model_admin.opts,
        "reason": _reason(model_admin, request, error),
        # The message names keys and settings.
        "message": message if is_developer(request.user) else "",
        "is_narrowed": bool(request.GET),
        "scan_link": _scan_link(model_admin, request, error),
        "scan_budget": stepwise.scan_budget(model_admin),
    }
    return TemplateResponse(request, "dynamo_single/admin/unanswered.html", context, status=400)


def early_response(model_admin: DynamoModelAdmin, request: HttpRequest) -> HttpResponseBase | None:
    """Return a response without the list, or ``None``: a 503 to a step in advance, or the page to choose a tenant.

    A browser that fetches a step of a scan in advance fetches it again if the user follows the link.
    """
    if is_fetched_in_advance(request):
        return HttpResponse(status=HTTPStatus.SERVICE_UNAVAILABLE, headers={"Cache-Control": "no-store"})
    if tenants.CHOOSE_VAR not in request.GET:
        return None
    if not model_admin.has_view_or_change_permission(request):
        raise PermissionDenied
    tenant = tenants.tenant_of(model_admin)
    return HttpResponseRedirect(request.path) if tenant is None else tenants.choose(request, model_admin, tenant, "")


def _is_unlisted(error: Exception) -> bool:
    return isinstance(error, NoAccessPattern) and not isinstance(error, KeyNotFilled)


def _is_bad_address(request: HttpRequest, error: Exception) -> bool:
    """Return whether the address is the reason, and the list without its parameters may be shown instead."""
    has_reason = isinstance(error, TooManyMatches | TooManyReads | KeyNotFilled | NoAccessPattern)
    is_of_list = has_reason or isinstance(error, in_memory.ListTooLarge)
    return request.method == "GET" and bool(request.GET) and ERROR_FLAG not in request.GET and not is_of_list


def _back_to_list(request: HttpRequest, text: str, message: str) -> HttpResponseBase:
    """Redirect to the list as Django does for a wrong parameter, with the reason as a message."""
    detail = format_html('<pre lang="en">{}</pre>', message) if is_developer(request.user) else ""
    messages.error(request, format_html("{} {}", text, detail), fail_silently=True)
    kept = [(name, request.GET[name]) for name in (IS_POPUP_VAR, TO_FIELD_VAR) if name in request.GET]
    return HttpResponseRedirect(f"{request.path}?{urlencode([*kept, (ERROR_FLAG, '1')])}")


def back_to_beginning(request: HttpRequest) -> HttpResponseBase:
    """Redirect to the list without a position that is forged, another user's, or another list's."""
    kept = request.GET.copy()
    for name in (stepwise.SCAN_VAR, CURSOR_VAR):
        kept.pop(name, None)
    logger.warning("Ignored the invalid position in the address of the list %s.", hide(request.get_full_path()))
    return HttpResponseRedirect(f"{request.path}?{kept.urlencode()}" if kept else request.path)


def _scan_link(model_admin: DynamoModelAdmin, request: HttpRequest, error: Exception) -> str:
    """Return the address that scans the list for the query, or an empty string if a scan could not find it."""
    is_for_it = isinstance(error, in_memory.ListTooLarge | NoAccessPattern) and not isinstance(error, KeyNotFilled)
    if not is_for_it or not stepwise.scan_budget(model_admin):
        return ""
    asked = request.GET.copy()
    for name in ("o", "p", "e", CURSOR_VAR):
        asked.pop(name, None)
    asked[stepwise.SCAN_VAR] = stepwise.sign_progress(request)
    return f"?{asked.urlencode()}"


def explanation(error: Exception) -> str:
    """Return the details for a developer."""
    if isinstance(error, in_memory.ListTooLarge):
        return in_memory.missing_key(error.changelist.queryset)
    return str(error)


def _reason(model_admin: DynamoModelAdmin, request: HttpRequest, error: Exception) -> str:
    name = {"name": model_admin.opts.verbose_name_plural}
    if isinstance(error, in_memory.ListTooLarge | TooManyMatches | TooManyReads):
        needed = _("No index supports this search, so the app must scan all of them.")
        return f"{too_many_rows(model_admin, request)} {needed}"
    if isinstance(error, KeyNotFilled):
        return _("The list of %(name)s is being rebuilt. Try again later.") % name
    if isinstance(error, NoAccessPattern) and not request.GET:
        return _("%(name)s cannot be listed. Open each object by its URL.") % name
    if isinstance(error, NoAccessPattern):
        return _("%(name)s cannot be listed this way.") % name
    return _("The URL contains an invalid filter, order or search.")
