"""Errors of DynamoDB in the admin: a rejected save becomes a form error, and a failed page shows an explanation.

Responses that are rendered after their view has returned are covered too. The error page is shown while DynamoDB does
not respond, and for an item that cannot be read.
"""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable, Iterable
from http import HTTPStatus
from typing import Any

from django.apps import apps
from django.conf import settings
from django.forms import BaseModelForm
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.template.response import SimpleTemplateResponse
from django.utils.text import capfirst
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from dynamo_single.exceptions import (
    AlreadyExists,
    Conflict,
    EndpointUnreachable,
    InvalidValue,
    ItemTooLarge,
    MissingReference,
    ParentInTrash,
    StaleObject,
    StillReferenced,
    TableNotFound,
    Throttled,
    TooManyHolders,
    UnexpectedItem,
    UniqueViolation,
    UnreadableItem,
)
from dynamo_single.orm.schema.types import DynamoModel
from dynamo_single.unavailable import AWAY, CHANGING, unavailable_response

logger = logging.getLogger("dynamo_single.admin")

#: The errors of a save or deletion of a valid form. In each case nothing was written.
REFUSALS = (
    AlreadyExists,
    InvalidValue,
    ItemTooLarge,
    MissingReference,
    ParentInTrash,
    StaleObject,
    StillReferenced,
    TooManyHolders,
    UniqueViolation,
)


#: The messages for users, by the first matching class. The messages for developers name models, keys and options.
_WORDS: tuple[tuple[type[Exception], Any], ...] = (
    (AlreadyExists, _("An object with this key already exists.")),
    (ItemTooLarge, _("This exceeds the maximum size of an object. Make it shorter.")),
    (
        ParentInTrash,
        _("It belongs to an object in the trash. Restore that object instead; this also restores its children."),
    ),
    (MissingReference, _("A related object no longer exists.")),
    (StillReferenced, _("Other objects refer to it. Delete them or change their references first.")),
    (TooManyHolders, _("This cannot be changed here, because too many other objects contain a copy of it.")),
    (StaleObject, _("This object was changed by someone else. Reload the page to see the current version.")),
)


class RelatedRefused(Exception):
    """The object itself was saved, and one of its inlines was rejected. This exception stays inside the admin."""

    def __init__(self, obj: DynamoModel, refusal: Exception) -> None:
        super().__init__(str(refusal))
        self.obj = obj
        self.refusal = refusal


class TooMuchWithFiles(Exception):
    """A form with files exceeds one transaction, and files are not stored twice. Stays inside the admin."""

    def __str__(self) -> str:
        return gettext(
            "This is more than can be saved in one step. Nothing was saved. Save the files separately first."
        )


def user_message(request: HttpRequest, refusal: Exception) -> str:
    """Return the reason and the fix for users; superusers also see the developers' message.

    If the error for a rejected value has a message for users, that one is used.
    """
    logger.warning("%s was refused: %s", request.path, refusal)
    words = _taken(refusal) if isinstance(refusal, UniqueViolation) else _known(refusal)
    if not words or not is_developer(request.user):
        return words or str(refusal)
    return gettext("%(words)s For developers: %(message)s") % {"words": words, "message": refusal}


def is_developer(user: Any) -> bool:
    """Return whether a user may see the names of keys and settings."""
    return bool(settings.DEBUG or user.is_superuser)


def _known(refusal: Exception) -> str:
    if isinstance(refusal, InvalidValue):
        words = refusal.in_words()
        return "" if words == str(refusal) else words
    return next((str(words) for kind, words in _WORDS if isinstance(refusal, kind)), "")


def _taken(refusal: UniqueViolation) -> str:
    model = apps.get_model(refusal.label)
    labels = {field.attname: field.verbose_name for field in model._meta.concrete_fields}
    named = ", ".join(capfirst(str(labels.get(name, name))) for name in refusal.fields)
    # Django's own message, which is translated.
    kind = {"model_name": capfirst(model._meta.verbose_name), "field_labels": named}
    return gettext("%(model_name)s with this %(field_labels)s already exists.") % kind


def refused_form(form_class: type[BaseModelForm[Any]], refusal: Exception, words: str) -> Any:
    """Return a form class that is invalid with the reason of a rejected save, at the field for a unique value."""

    class RefusedForm(form_class):  # type: ignore[misc, valid-type]  # created for one request
        def clean(self) -> Any:
            cleaned = super().clean()
            name = _field_of(refusal, self._meta.model)
            if name in self.fields:
                self.add_error(name, self.instance.unique_error_message(self._meta.model, (name,)))
            else:
                self.add_error(None, words)
            return cleaned

    return RefusedForm


def add_row_errors(formsets: Iterable[Any], refusal: Exception) -> None:
    """Add the error of a rejected unique value to the inline rows that contain it, at their field."""
    value = str(getattr(refusal, "value", "")).casefold()
    for formset in formsets:
        name = _field_of(refusal, formset.model)
        if name is None or not formset.is_bound:
            continue
        formset.full_clean()
        for form in formset.forms:
            if name in form.changed_data and str(form.cleaned_data.get(name)).casefold() == value:
                form.add_error(name, form.instance.unique_error_message(formset.model, (name,)))


def _field_of(refusal: Exception, model: type[DynamoModel]) -> str | None:
    """Return the field whose unique value was rejected, if it belongs to this model."""
    if not isinstance(refusal, UniqueViolation) or refusal.label != model._meta.label:
        return None
    names = {field.attname: field.name for field in model._meta.concrete_fields}
    return names.get(refusal.field, refusal.field)


def with_error_page(
    response: HttpResponseBase,
    errors: tuple[type[Exception], ...],
    answer: Callable[[Exception], HttpResponseBase],
) -> HttpResponseBase:
    """Return the response; if rendering it raises one of the errors, the result of ``answer`` replaces it."""
    if not isinstance(response, SimpleTemplateResponse) or response.is_rendered:
        return response
    render = response.render

    def render_or_answer() -> HttpResponseBase:
        # Caches pickle rendered responses, which cannot contain a function.
        response.__dict__.pop("render", None)
        try:
            return render()
        except errors as error:
            instead = answer(error)
            return instead.render() if isinstance(instead, SimpleTemplateResponse) else instead

    response.render = render_or_answer  # type: ignore[method-assign, assignment]  # Django takes what it returns
    return response


#: The errors that have an error page.
UNAVAILABLE = (*AWAY, UnexpectedItem, UnreadableItem)


def unavailable_on_error(view: Callable[..., HttpResponseBase]) -> Callable[..., HttpResponseBase]:
    """Return a view that shows the error page for these errors, even while its template is rendered."""

    @functools.wraps(view)
    def guarded(request: HttpRequest, *args: object, **kwargs: object) -> HttpResponseBase:
        page = functools.partial(unavailable_page, request)
        try:
            return with_error_page(view(request, *args, **kwargs), UNAVAILABLE, page)
        except UNAVAILABLE as error:
            return page(error)

    return guarded


def unavailable_page(request: HttpRequest, error: Exception) -> HttpResponseBase:
    """Return the error page with status 503, or 500 for an item that cannot be read. Reads no user or session."""
    is_changing = isinstance(error, CHANGING)
    is_unreadable = isinstance(error, UnexpectedItem | UnreadableItem) and not is_changing
    context = {
        "is_missing": isinstance(error, TableNotFound),
        "is_changing": is_changing,
        "is_unreadable": is_unreadable,
        "may_pass": isinstance(error, EndpointUnreachable | Throttled | Conflict),
    }
    return unavailable_response(
        request,
        error,
        template="dynamo_single/admin/unavailable.html",
        context=context,
        status=HTTPStatus.INTERNAL_SERVER_ERROR if is_unreadable else HTTPStatus.SERVICE_UNAVAILABLE,
    )
