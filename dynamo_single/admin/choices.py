"""What the fields of references offer, read once for all forms of a page.

Django reads the choices of a field for each form that shows it: once for each row of an inline or of a list that can be
edited. Here the forms of one request that ask for the same objects share what the first of them has read.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from typing import Any, TypeVar

from django.forms import ModelChoiceField
from django.forms.models import ModelChoiceIterator
from django.http import HttpRequest

from dynamo_single.backend.errors import is_stored_in_dynamodb
from dynamo_single.exceptions import NotSupported, UnknownField
from dynamo_single.orm.query.queryset import QuerySet
from dynamo_single.orm.query.state import what_is_asked
from dynamo_single.orm.schema.kinds import DynamoModel

F = TypeVar("F")

#: What a request has read for its choices, in its ``__dict__``: it ends with the request, so that it is never stale.
_CHOICES = "_dynamo_single_choices"


class _Read:
    """The objects of a queryset, read as far as somebody has gone through them, and no object twice."""

    def __init__(self, queryset: QuerySet[DynamoModel]) -> None:
        self._queryset = queryset
        self._begin()

    def _begin(self) -> None:
        self._found: list[DynamoModel] = []
        self._rest = iter(read_by_pages(self._queryset))

    def __iter__(self) -> Iterator[DynamoModel]:
        """The objects: one Query for each megabyte that nobody has read before."""
        number = 0
        while number < len(self._found) or self._reads_one():
            yield self._found[number]
            number += 1

    def _reads_one(self) -> bool:
        try:
            self._found.append(next(self._rest))
        except StopIteration:
            return False
        except Exception:
            # What was read so far must not pass for all there is.
            self._begin()
            raise
        return True


def read_by_pages(queryset: Any) -> Iterable[DynamoModel]:
    """As Django's choices read: what is prefetched comes with the whole result only."""
    found: Iterable[DynamoModel] = queryset if queryset._prefetch_related_lookups else queryset.iterator()
    return found


class _Choices(ModelChoiceIterator):  # type: ignore[type-arg]  # not generic at run time
    """Django's choices of a field, of objects that the request has read already or reads for all."""

    def __init__(self, request: HttpRequest, field: Any) -> None:
        super().__init__(field)
        self._request = request

    def __iter__(self) -> Iterator[Any]:
        """The empty choice if there is one, and the objects."""
        if self.field.empty_label is not None:
            yield "", self.field.empty_label
        for obj in _read(self._request, self.queryset):
            yield self.choice(obj)


def _read(request: HttpRequest, queryset: Any) -> Iterable[DynamoModel]:
    try:
        asked = what_is_asked(queryset)
    except (NotSupported, UnknownField):
        return read_by_pages(queryset)  # which says the same, where it is read
    reads: list[tuple[object, _Read]] = request.__dict__.setdefault(_CHOICES, [])
    found = next((read for known, read in reads if known == asked), None)
    if found is None:
        found = _Read(queryset)
        reads.append((asked, found))
    return found


def read_once(field: F, request: HttpRequest | None) -> F:
    """The field of a reference, whose copies in the forms of this request read their choices once; sends nothing.

    A form that has another queryset, by ``limit_choices_to`` or by code of a project's own, reads that. Fields over SQL
    and fields with an iterator of their own stay as they are.
    """
    if (
        not isinstance(request, HttpRequest)  # a stand-in may live longer than a page, and show what was
        or not isinstance(field, ModelChoiceField)
        or field.queryset is None
        or not is_stored_in_dynamodb(field.queryset.model)
        or field.iterator is not ModelChoiceIterator
    ):
        return field
    field.iterator = partial(_Choices, request)  # type: ignore[assignment]  # of this field and its copies
    field.widget.choices = field.choices  # as Django does for every widget
    return field
