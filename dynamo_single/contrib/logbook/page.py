"""The whole log: a page with the entries of all users, newest first, optionally of one day or one user."""

from __future__ import annotations

from datetime import date, datetime, time, timedelta
from typing import Any, Final

from django.contrib.admin.sites import AdminSite
from django.contrib.admin.utils import quote
from django.contrib.auth import get_user_model
from django.core.exceptions import ValidationError
from django.forms import DateField
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.template.response import TemplateResponse
from django.urls import NoReverseMatch, URLPattern, path, reverse
from django.utils import timezone
from django.utils.http import urlencode
from django.utils.translation import gettext as _
from msgspec import Struct

from dynamo_single import clock
from dynamo_single.admin import history
from dynamo_single.admin.viewing.pages import Listed, Wrong, guarded, in_words
from dynamo_single.admin.viewing.rules import model_of, sees_whole_table, visible_entries
from dynamo_single.costs import measure_requests

#: The permission for the page: Django's permission to view the log's model.
PERMISSION: Final = "dynamo_single.view_logentry"
#: The number of entries on a page.
SIZE: Final = 50


class _Asked(Struct, frozen=True):
    """The filters in the page's address."""

    day: date | None
    user: str
    cursor: str

    def address(self, **changed: object) -> str:
        """Return the address with some parameters changed."""
        given = {"day": self.day, "user": self.user, "cursor": self.cursor} | changed
        return f"?{urlencode({name: str(value) for name, value in given.items() if value})}"


def urls(site: AdminSite) -> list[URLPattern]:
    """Return the address of the page if the log is in DynamoDB."""
    if not history.is_in_dynamodb():
        return []
    return [path("dynamodb/log/", guarded(site, PERMISSION, log_page), name="dynamodb_log")]


def listed() -> list[Listed]:
    """Return the link for the admin's index if the log is in DynamoDB."""
    return [(_("Log"), "dynamodb_log", PERMISSION)] if history.is_in_dynamodb() else []


def log_page(site: AdminSite, request: HttpRequest) -> HttpResponseBase:
    """Return a page of fifty entries.

    Sends a Query and a BatchGetItem for the users; for the name of a user, another Query and a GetItem. Entries of
    objects that the user may not view are omitted. If that depends on the object, it sends a BatchGetItem for each
    model. Returns a bad request (400) for parameters that no link of the page contains.
    """
    asked = _asked(request)
    context: dict[str, Any] = {**site.each_context(request), "title": _("Log"), "asked": asked}
    with measure_requests() as costs:
        found = _found(asked)
        if found is not None:
            page = found.page(SIZE, asked.cursor or None)
            visible = visible_entries(site, request, page)
            context |= {
                "entries": [(entry, _address(site, entry)) for entry in visible],
                "older": asked.address(cursor=page.next_cursor) if page.next_cursor else "",
                "newer": asked.address(cursor=page.previous_cursor) if page.previous_cursor else "",
            }
    if asked.day is not None:
        for name, days in (("day_before", -1), ("day_after", 1)):
            context[name] = _neighbour(asked, days)
    context |= {
        "is_answered": found is not None,
        "by_time": history.lists_by_time() and not asked.user,
        "costs": in_words(costs) if sees_whole_table(site, request, "default") else "",
    }
    return TemplateResponse(request, "dynamo_single/admin/log.html", context)


def _asked(request: HttpRequest) -> _Asked:
    text = request.GET.get("day", "").strip()
    try:
        day = DateField(required=False, input_formats=["%Y-%m-%d"]).clean(text)
    except ValidationError as error:
        raise Wrong(_("Enter a valid date, such as 2026-12-31.")) from error
    return _Asked(day, request.GET.get("user", "").strip(), request.GET.get("cursor", ""))


def _found(asked: _Asked) -> Any:
    """Return the requested entries, or ``None`` if no key lists those of all users."""
    entries = history.log_entries().order_by("-action_time").select_related("user")
    if asked.user:
        entries = entries.filter(user_id=_user_key(asked.user))
    elif not history.lists_by_time():
        return None
    if asked.day is not None:
        entries = entries.filter(action_time__gte=_moment(asked.day))
        if asked.day < date.max:
            entries = entries.filter(action_time__lt=_moment(asked.day + timedelta(days=1)))
    return entries


def _user_key(text: str) -> Any:
    """Return the key of the user with this name. Otherwise return the text itself, as the key of a deleted user."""
    model: Any = get_user_model()
    try:
        return model._default_manager.get_by_natural_key(text).pk
    except model.DoesNotExist:
        return text


def _moment(day: date) -> datetime:
    """Return the start of a day in the current time zone."""
    begin = datetime.combine(day, time.min)
    return timezone.make_aware(begin) if clock.now().tzinfo is not None else begin


def _neighbour(asked: _Asked, days: int) -> str:
    try:
        return asked.address(day=asked.day + timedelta(days=days), cursor="") if asked.day else ""
    except OverflowError:
        return ""


def _address(site: AdminSite, entry: Any) -> str:
    """Return the address of the entry's object, or an empty string if it is deleted or has no page."""
    model = model_of(entry)
    if model is None or not site.is_registered(model) or entry.is_deletion():
        return ""
    try:
        options = model._meta
        name = f"admin:{options.app_label}_{options.model_name}_change"
        return reverse(name, args=(quote(entry.object_id),), current_app=site.name)
    except NoReverseMatch:
        return ""
