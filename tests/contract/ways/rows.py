"""The rows about errors: the query, the alternative in the message's words, and their execution."""

from __future__ import annotations

import datetime as dt
import re
import statistics
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any

from django.db import models as django_models
from django.db.models import Avg, Count, F, Max, Min, Q, StdDev, Sum
from django.db.models.functions import Lower
from msgspec import Struct

from dynamo_single import models
from tests.contract.ways.shop import T0, Shop

#: Names in the text of an alternative, or needed to run it.
WORDS: Mapping[str, Any] = {
    each.__name__: each for each in (Avg, Count, F, Lower, Max, Min, Q, StdDev, Sum, Decimal, sorted, list, set)
} | {"models": models, "dt": dt, "re": re, "statistics": statistics, "T0": T0}


class Row(Struct, frozen=True, kw_only=True):
    """An error that ``ask`` causes. ``says`` is a part of its message, which runs as written.

    ``dots`` replace its ``...`` in order. ``run`` contains it. ``queryset`` is that of the model ``of``, or the result
    of ``base``; ``names`` are further ones. If the alternative is not code, or declares a model, ``do`` gets and runs
    it. The result must be that of ``ask``, or of ``theirs``, on SQLite.
    """

    ask: Callable[[Shop], Any]
    says: str
    of: str = "Customer"
    dots: tuple[str, ...] = ()
    run: str = "{}"
    base: Callable[[Shop], Any] | None = None
    names: Callable[[Shop], Mapping[str, Any]] | None = None
    do: Callable[[Shop, str], Any] | None = None
    theirs: Callable[[Shop], Any] | None = None

    def code(self) -> str:
        """Return the text of the message with its dots replaced."""
        *parts, last = self.says.split("...", len(self.dots))
        return "".join(part + dot for part, dot in zip(parts, self.dots, strict=True)) + last

    def followed(self, shop: Shop) -> Any:
        """Return the result of the alternative."""
        if self.do is not None:
            return self.do(shop, self.code())
        queryset = shop.all(getattr(shop, self.of)) if self.base is None else self.base(shop)
        own = {model.__name__: model for model in shop.models.values()}
        names = {} if self.names is None else self.names(shop)
        return eval(self.run.format(self.code()), {**WORDS, **own, **names, "queryset": queryset})  # noqa: S307 - the message's own

    def expected(self, shop: Shop) -> Any:
        """Return Django's result."""
        return (self.theirs or self.ask)(shop)


def told(found: Any) -> Any:
    """A result that both sides have alike: objects by their keys, in any order."""
    if isinstance(found, django_models.QuerySet):
        found = list(found)
    if isinstance(found, list | tuple | set) and all(isinstance(each, django_models.Model) for each in found):
        return sorted(map(_key, found))
    if isinstance(found, django_models.Model):
        return _key(found)
    return found


def _key(obj: Any) -> str:
    return str(obj.pk) if not hasattr(obj, "qty") else f"{obj.order_id} {obj.number}"


def evaluated(ask: Callable[[Shop], Any], shop: Shop) -> Any:
    """Return the result of a query; read a queryset."""
    return told(ask(shop))


def redeclared(model: Any, factory: Callable[..., Any], name: str, **further: Any) -> Any:
    """Return a model with a longer declaration than another one, and the same objects."""
    made = factory(name, **further)
    known = [field.attname for field in model._meta.concrete_fields]
    for obj in model.objects.all():
        made.objects.create(**{each: getattr(obj, each) for each in known})
    return made
