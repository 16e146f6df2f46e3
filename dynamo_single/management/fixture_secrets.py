"""The secrets of a fixture: which of them ``dumpdata`` writes, and leaving them out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Self

from dynamo_single.orm.schema import registry, secrecy
from dynamo_single.orm.schema.encoding.secrets import leave_out
from dynamo_single.orm.schema.kinds import DynamoModel


class FixtureSecrets:
    """The secrets in the objects of one dump, and whether they are left out.

    ``found`` has the names by model, in the order in which they were met, and ``keys`` the number of objects by model
    whose primary keys contain a secret.
    """

    def __init__(self, *, are_left_out: bool) -> None:
        self.are_left_out = are_left_out
        self.found: dict[str, dict[str, None]] = {}
        self.keys: dict[str, int] = {}

    def of(self, obj: DynamoModel) -> Iterator[DynamoModel]:
        """Yield an object as it is written; nothing if its key contains a secret and secrets are left out."""
        model: Any = type(obj)._meta.concrete_model
        label, found = model._meta.label, secrecy.secrets_of(model)
        if self.are_left_out and secrecy.is_secret(model, "pk"):
            self.keys[label] = self.keys.get(label, 0) + 1
            return
        for name, attribute in registry.attributes_of(model).items():
            value = obj.__dict__.get(name)
            if value in (None, "") or attribute.computed:
                continue
            if name in found:
                self._note(label, name)
                continue
            without = leave_out(value, attribute.hides)
            if without != value:
                self._note(label, f"{name} (in part)")
                if self.are_left_out:
                    obj.__dict__[name] = without
        yield obj

    def note_sql(self, models: Iterable[type[Any]]) -> None:
        """Note the secrets of models in SQL, whose objects pass here by none of our code."""
        for model in models:
            for field in _secret_fields(model):
                self._note(model._meta.label, field.name)

    def _note(self, label: str, name: str) -> None:
        self.found.setdefault(label, {})[name] = None

    def __str__(self) -> str:
        """What to tell those who dump; empty if there is nothing to tell."""
        named = "; ".join(f"{label}: {', '.join(names)}" for label, names in self.found.items())
        if not self.are_left_out:
            return named and f"The fixture contains secrets, of {named}. Keep it safe, or use --without-secrets."
        skipped = ", ".join(f"{count} of {label}" for label, count in self.keys.items())
        return " ".join(
            text
            for text in (
                named and f"Left out as secrets: {named}.",
                skipped and f"Left out as their keys contain secrets: {skipped}.",
            )
            if text
        )


class Noted:
    """As much of a queryset as ``dumpdata`` asks for, whose objects pass ``FixtureSecrets``."""

    def __init__(self, secrets: FixtureSecrets, queryset: Any) -> None:
        self.secrets = secrets
        self.queryset = queryset
        self._prefetch_related_lookups = queryset._prefetch_related_lookups

    def order_by(self, *names: str) -> Self:
        """Return the same in an order."""
        return type(self)(self.secrets, self.queryset.order_by(*names))

    def filter(self, *args: Any, **kwargs: Any) -> Self:
        """Return the objects that meet conditions."""
        return type(self)(self.secrets, self.queryset.filter(*args, **kwargs))

    def count(self) -> int:
        """Return how many objects there are, with those that are left out."""
        return int(self.queryset.count())

    def iterator(self, chunk_size: int | None = None) -> Iterator[DynamoModel]:
        """Yield the objects as they are written."""
        for obj in self.queryset.iterator(chunk_size=chunk_size):
            yield from self.secrets.of(obj)


@contextmanager
def without_fields(models: Iterable[type[Any]]) -> Iterator[None]:
    """Let serializers of this process skip the fields of secrets of some models within the block."""
    fields = [field for model in models for field in _secret_fields(model)]
    for field in fields:
        field.serialize = False
    try:
        yield
    finally:
        for field in fields:
            field.serialize = True


def _secret_fields(model: type[Any]) -> list[Any]:
    return [
        field
        for field in model._meta.local_fields
        if field.serialize and not field.primary_key and secrecy.is_secret(model, field.name)
    ]
