"""Confirm the deletion of objects: how many of each kind, and until when the trash keeps them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any, Final

from django.apps import apps
from django.contrib.admin.utils import model_ngettext
from django.http import HttpRequest
from django.utils import timezone
from django.utils.formats import date_format
from django.utils.text import get_text_list
from django.utils.translation import gettext as _

from dynamo_single import clock
from dynamo_single.admin import trash
from dynamo_single.admin.batch_actions.deletion_log import remaining_rows
from dynamo_single.admin.errors import REFUSALS
from dynamo_single.admin.viewing.rules import may_view
from dynamo_single.orm.write.cascade import DELETION, TRASH
from dynamo_single.table.flow import run

#: The most objects of a job whose related objects are counted, and the most of these at each level.
MAX_ROOTS: Final = 100
MAX_RELATED: Final = 1000


def text_for(model: Any, what: str, *, uses_trash: bool) -> str:
    """Return the text that asks a user to confirm a deletion. Does not send a request."""
    if not uses_trash:
        text = _("Are you sure you want to permanently delete %(what)s? This cannot be undone.")
        return text % {"what": what}
    after = model._options.purge_after
    if after is None:
        return _("Move %(what)s to the trash? You can restore them later.") % {"what": what}
    day = date_format(timezone.localdate(clock.now() + after))
    return _("Move %(what)s to the trash? You can restore them until %(day)s.") % {"what": what, "day": day}


def objects_text(counts: Mapping[str, int]) -> str:
    """Return numbers of objects by their plural names as words: "3 companies and 27 people"."""
    return _joined([f"{count} {_name(plural, count)}" for plural, count in counts.items()])


def job_text(request: HttpRequest, modeladmin: Any, job: Any) -> str:
    """Return the objects of a job that has not begun, and how many go with them, as words.

    Sends a BatchGetItem for the first ``MAX_ROOTS`` objects, and the requests that read the related objects of these,
    up to ``MAX_RELATED`` at each level. Beyond these bounds, the numbers are "at least". Hidden objects are not
    counted.
    """
    own = f"{job.total} {model_ngettext(modeladmin.opts, job.total)}"
    operation = TRASH if job.action == "delete" and trash.has_trash(modeladmin.model) else DELETION
    roots = list(remaining_rows(request, modeladmin, job.action, list(job.keys[:MAX_ROOTS])))
    try:
        below = run(operation.below(roots, most=MAX_RELATED)) if roots else []
    except REFUSALS:
        return own  # the deletion itself reports the reason
    is_part = job.total > MAX_ROOTS or len(below) >= MAX_RELATED
    seen = Counter(
        str(each._meta.verbose_name_plural) for each in below if may_view(modeladmin.admin_site, request, each)
    )
    least = _("at least %(count)d %(items)s")
    return _joined(
        [
            own,
            *(
                (least if is_part else "%(count)d %(items)s") % {"count": count, "items": _name(plural, count)}
                for plural, count in seen.items()
            ),
        ]
    )


def _joined(parts: list[str]) -> str:
    return get_text_list(parts, _("and"))


def _name(plural: str, count: int) -> str:
    """Return the name of a model for a number of objects, by its plural."""
    if count != 1:
        return plural
    return next((str(m._meta.verbose_name) for m in apps.get_models() if m._meta.verbose_name_plural == plural), plural)
