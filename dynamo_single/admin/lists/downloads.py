"""Download the rows of all pages of a list as CSV, with the columns of the list and within its limits."""

from __future__ import annotations

import html
import re
from typing import Any, Final

from django.contrib.admin.templatetags.admin_list import results
from django.contrib.admin.utils import label_for_field
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.utils.html import strip_tags

from dynamo_single.admin.lists import in_memory
from dynamo_single.admin.viewing import spreadsheets
from dynamo_single.exceptions import TooManyMatches
from dynamo_single.orm.schema.keys.values import item_size

#: The query parameter of a download; it is not a filter.
CSV_VAR: Final = "_csv"
_NAME: Final = "_dynamo_single_download"
_CHECKBOX: Final = "action_checkbox"
#: The icon that the admin shows for a boolean.
_PICTURE: Final = re.compile(r'<img[^>]* alt="([^"]*)"[^>]*>')
_NUMBER: Final = re.compile(r"-?[\d.,]+")


def begin(request: HttpRequest) -> bool:
    """Return whether a request is for a download, and remove the parameter from the request."""
    if request.method != "GET" or CSV_VAR not in request.GET:
        return False
    parameters = request.GET.copy()
    del parameters[CSV_VAR]
    request.GET = parameters  # type: ignore[assignment]  # immutable in the stubs
    request.__dict__[_NAME] = True
    return True


def is_download(request: HttpRequest) -> bool:
    """Return whether the request is for a download, which has all rows on one page."""
    return _NAME in request.__dict__


def response(model_admin: Any, request: HttpRequest) -> HttpResponse:
    """Return the list as a CSV file. Send the same requests as for a page with all rows, except those for filters.

    Raise ``TooManyMatches`` if the rows exceed the list's limits, or if only a scan can find them.
    """
    if not model_admin.has_view_or_change_permission(request):
        raise PermissionDenied
    changelist = model_admin.get_changelist_instance(request)
    limit = in_memory.limit_of(model_admin)
    rows, max_bytes = changelist.result_list, in_memory.max_bytes_of(model_admin)
    size = sum(item_size(row._stored or {}) for row in rows)
    is_part = not changelist.is_counted or changelist.result_count > len(rows)
    if is_part or size > max_bytes or len(rows) > (limit or len(rows)):
        bound = f"{limit} rows of {max_bytes} bytes" if in_memory.has_row_limit(model_admin) else f"{max_bytes} bytes"
        raise TooManyMatches(
            f"{model_admin.opts.label}: a download contains at most {bound}. Filter further.",
            limit=limit,
        )
    changelist.formset = None
    changelist.list_display = [name for name in changelist.list_display if name != _CHECKBOX]
    names = [str(label_for_field(name, changelist.model, model_admin)) for name in changelist.list_display]
    empty = str(model_admin.get_empty_value_display())
    cells = [[_text(cell, empty) for cell in row] for row in results(changelist)]
    headers = {"Content-Disposition": f'attachment; filename="{model_admin.opts.model_name}.csv"'}
    text = spreadsheets.as_csv([[spreadsheets.quoted(name) for name in names], *cells])
    return HttpResponse(text, content_type="text/csv; charset=utf-8", headers=headers)


def _text(cell: str, empty: str) -> str:
    """Return the text of a cell. Do not quote numbers: negative ones are not formulas."""
    text = html.unescape(strip_tags(_PICTURE.sub(r"\1", cell))).strip()
    if text == empty:
        return ""
    return text if _NUMBER.fullmatch(text) else spreadsheets.quoted(text)
