"""Errors of DynamoDB in the admin: a refused save becomes a form error, and a failed page an explanation."""

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

#: What a save or a deletion can be refused with although the form was valid; in each case nothing was written.
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


#: What people read, by the first class that fits; what programmers read names models, keys and options.
_WORDS: tuple[tuple[type[Exception], Any], ...] = (
    (AlreadyExists, _("There is an object with this key already.")),
    (ItemTooLarge, _("This is more than one object can hold. Make it shorter.")),
    (ParentInTrash, _("It belongs to an object that is in the trash. Restore that, and it comes back too.")),
    (MissingReference, _("Something that it refers to is not there any more.")),
    (StillReferenced, _("Other objects refer to it. Delete these first, or let them refer to something else.")),
    (TooManyHolders, _("Too many other objects have a copy of this for it to be changed here.")),
    (StaleObject, _("Somebody else has changed this in the meantime. Open it again to see how it is now.")),
)


class RelatedRefused(Exception):
    """The object itself was saved, and one of its inlines was refused; never leaves the admin."""

    def __init__(self, obj: DynamoModel, refusal: Exception) -> None:
        super().__init__(str(refusal))
        self.obj = obj
        self.refusal = refusal


class TooMuchWithFiles(Exception):
    """A form that is more than one transaction takes has files, which are not stored twice; never leaves the admin."""

    def __str__(self) -> str:
        return gettext(
            "This is more than can be saved at once, and nothing was saved. Save the files by themselves first."
        )


def user_message(request: HttpRequest, refusal: Exception) -> str:
    """What was refused and what to do about it, for people; superusers read what programmers do as well.

    Of a value that is refused the error itself says why, in words for people where it has any.
    """
    logger.warning("%s was refused: %s", request.path, refusal)
    words = _taken(refusal) if isinstance(refusal, UniqueViolation) else _known(refusal)
    if not words or not is_developer(request.user):
        return words or str(refusal)
    return gettext("%(words)s For developers: %(message)s") % {"words": words, "message": refusal}


def is_developer(user: Any) -> bool:
    """Whether somebody is shown the names of keys and settings."""
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
    # Django's own message, with its translations.
    kind = {"model_name": capfirst(model._meta.verbose_name), "field_labels": named}
    return gettext("%(model_name)s with this %(field_labels)s already exists.") % kind


def refused_form(form_class: type[BaseModelForm[Any]], refusal: Exception, words: str) -> Any:
    """The form, never valid, with what its save was refused for: at the field for a unique value, else above all."""

    class RefusedForm(form_class):  # type: ignore[misc, valid-type]  # made for one request
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
    """Give the rows of inlines that have the unique value that a save was refused for an error at their field."""
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
    """The field that a unique value was refused for, if it is one of this model's."""
    if not isinstance(refusal, UniqueViolation) or refusal.label != model._meta.label:
        return None
    names = {field.attname: field.name for field in model._meta.concrete_fields}
    return names.get(refusal.field, refusal.field)


# Responses that are rendered after their view has returned: errors at that time are handled too.


def with_error_page(
    response: HttpResponseBase,
    errors: tuple[type[Exception], ...],
    answer: Callable[[Exception], HttpResponseBase],
) -> HttpResponseBase:
    """The same response; if rendering it raises one of the errors, what ``answer`` makes of that takes its place."""
    if not isinstance(response, SimpleTemplateResponse) or response.is_rendered:
        return response
    render = response.render

    def render_or_answer() -> HttpResponseBase:
        # Rendered responses are pickled by caches, which take no function.
        response.__dict__.pop("render", None)
        try:
            return render()
        except errors as error:
            instead = answer(error)
            return instead.render() if isinstance(instead, SimpleTemplateResponse) else instead

    response.render = render_or_answer  # type: ignore[method-assign, assignment]  # Django takes what it returns
    return response


# The page that is shown while DynamoDB does not respond, or if an item cannot be read.

#: What a page of its own stands for.
UNAVAILABLE = (*AWAY, UnexpectedItem, UnreadableItem)


def unavailable_on_error(view: Callable[..., HttpResponseBase]) -> Callable[..., HttpResponseBase]:
    """A view, with the page in its place where it meets one of the errors; also while its template is rendered."""

    @functools.wraps(view)
    def guarded(request: HttpRequest, *args: object, **kwargs: object) -> HttpResponseBase:
        page = functools.partial(unavailable_page, request)
        try:
            return with_error_page(view(request, *args, **kwargs), UNAVAILABLE, page)
        except UNAVAILABLE as error:
            return page(error)

    return guarded


def unavailable_page(request: HttpRequest, error: Exception) -> HttpResponseBase:
    """Return the page, with status 503, or 500 for an item that cannot be read. It reads no user and no session."""
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
