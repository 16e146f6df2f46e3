"""The ways to write: how each creates, changes and deletes an object. A new way is one class here.

A history calls them, so that you can paste it: ``from tests.contract.pairs.writers import *``.
"""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from django.contrib.admin.sites import all_sites
from django.contrib.messages.storage.cookie import CookieStorage
from django.core import serializers
from django.core.exceptions import ValidationError
from django.core.management import call_command
from django.forms import modelform_factory
from django.test import RequestFactory

from dynamo_single import clock, transactions
from dynamo_single.admin import DynamoAdminSite, DynamoModelAdmin
from dynamo_single.admin.batch_actions import jobs as batch_actions_run
from dynamo_single.exceptions import BulkError

__all__ = ["atomic", "awaited", "bulk", "fixtures", "forms", "jobs", "pynamodb", "save", "update"]


class Refused(Exception):
    """The own error of a way to write: an invalid form, a job without effect."""


def loaded(model: Any, pk: str) -> Any:
    """Return the object as it is stored now."""
    return model.objects.consistent().get(pk=pk)


def set_values(obj: Any, values: Mapping[str, object]) -> Any:
    """An object with these values."""
    for name, value in values.items():
        setattr(obj, name, value)
    return obj


class Writer:
    """A way to write. ``overwrites``: a new object replaces an existing one."""

    title = ""
    overwrites = False
    #: It permanently deletes objects with a trash.
    for_good = False
    #: It stores references to missing objects, because the same fixture may contain them.
    trusts = False
    #: It shows choices from an eventually consistent read.
    shows = False
    #: It writes the relations to many as an eventually consistent read gives them.
    dumps = False

    @classmethod
    def ways(cls) -> frozenset[str]:
        """Return the supported operations: create, change, delete."""
        return frozenset({"create", "change", "delete"} & {*dir(cls)})


class save(Writer):
    """`save()` and `delete()` of objects."""

    title = "`save()`"

    @staticmethod
    def create(model: Any, **values: Any) -> None:
        model(**values).save()

    @staticmethod
    def change(model: Any, pk: str, **values: Any) -> None:
        set_values(loaded(model, pk), values).save()

    @staticmethod
    def delete(model: Any, pk: str) -> None:
        loaded(model, pk).delete()


class update(Writer):
    """A queryset's methods."""

    title = "`update()`"

    @staticmethod
    def create(model: Any, **values: Any) -> None:
        model.objects.create(**values)

    @staticmethod
    def change(model: Any, pk: str, **values: Any) -> None:
        assert model.objects.consistent().filter(pk=pk).update(**values) == 1

    @staticmethod
    def delete(model: Any, pk: str) -> None:
        assert model.objects.consistent().filter(pk=pk).delete()[0]


class bulk(Writer):
    """`bulk_create()` and `bulk_update()`, with the object's own error."""

    title = "bulk"

    @staticmethod
    def create(model: Any, **values: Any) -> None:
        try:
            model.objects.bulk_create([model(**values)])
        except BulkError as error:
            raise next(iter(error.errors.values())) from error

    @staticmethod
    def change(model: Any, pk: str, **values: Any) -> None:
        obj = set_values(loaded(model, pk), values)
        try:
            model.objects.bulk_update([obj], [*values])
        except BulkError as error:
            raise next(iter(error.errors.values())) from error

    @staticmethod
    def delete(model: Any, pk: str) -> None:
        assert model.objects.consistent().filter(pk__in=[pk]).delete()[0]


class atomic(Writer):
    """Objects within a block."""

    title = "`atomic()`"

    @staticmethod
    def create(model: Any, **values: Any) -> None:
        with transactions.atomic():
            model(**values).save()

    @staticmethod
    def change(model: Any, pk: str, **values: Any) -> None:
        with transactions.atomic():
            set_values(loaded(model, pk), values).save()

    @staticmethod
    def delete(model: Any, pk: str) -> None:
        with transactions.atomic():
            loaded(model, pk).delete()


class fixtures(Writer):
    """`loaddata` of one object, which overwrites an existing one."""

    title = "fixtures"
    overwrites = True
    trusts = True
    dumps = True

    @classmethod
    def create(cls, model: Any, **values: Any) -> None:
        obj = model(**values)
        for field in model._meta.concrete_fields:  # a fixture has the times that a save would set
            if getattr(field, "auto_now", False) or getattr(field, "auto_now_add", False):
                setattr(obj, field.attname, clock.now())
        cls._load(obj)

    @classmethod
    def change(cls, model: Any, pk: str, **values: Any) -> None:
        cls._load(set_values(loaded(model, pk), values))

    @staticmethod
    def _load(obj: Any) -> None:
        with TemporaryDirectory() as folder:
            path = Path(folder) / "one.json"
            path.write_text(serializers.serialize("json", [obj]))
            call_command("loaddata", str(path), stdout=io.StringIO(), skip_checks=True)


class pynamodb(Writer):
    """PynamoDB's batch writer, which puts whole items."""

    title = "PynamoDB"
    overwrites = True
    for_good = True

    @staticmethod
    def create(model: Any, **values: Any) -> None:
        with model.batch_write() as batch:
            batch.save(model(**values))

    @staticmethod
    def change(model: Any, pk: str, **values: Any) -> None:
        obj = set_values(loaded(model, pk), values)
        with model.batch_write() as batch:
            batch.save(obj)

    @staticmethod
    def delete(model: Any, pk: str) -> None:
        obj = loaded(model, pk)
        with model.batch_write() as batch:
            batch.delete(obj)


class forms(Writer):
    """A `ModelForm`."""

    title = "forms"
    shows = True

    @classmethod
    def create(cls, model: Any, **values: Any) -> None:
        cls._save(model, None, values)

    @classmethod
    def change(cls, model: Any, pk: str, **values: Any) -> None:
        cls._save(model, loaded(model, pk), values)

    @staticmethod
    def _save(model: Any, instance: Any, values: Mapping[str, Any]) -> None:
        fields = {name: model._meta.get_field(name) for name in values}
        data = {field.name: as_text(values[name]) for name, field in fields.items() if field.editable}
        set_by_code = {name: values[name] for name, field in fields.items() if not field.editable}
        instance = set_values(instance or model(), set_by_code) if set_by_code else instance
        form = modelform_factory(model, fields=[*data])(data, instance=instance)
        if not form.is_valid():
            raise Refused(form.errors.as_text())
        try:
            form.save()
        except ValidationError as error:
            raise Refused(str(error)) from error


class jobs(Writer):
    """A job of the admin."""

    title = "jobs"

    @staticmethod
    def delete(model: Any, pk: str) -> None:
        from accounts.models import User

        site = DynamoAdminSite()
        all_sites.discard(site)
        site.register(model, DynamoModelAdmin)
        request: Any = RequestFactory().post("/")
        request.session, request._messages = {}, CookieStorage(request)
        request.user = User(user_id="u", is_superuser=True, is_staff=True)
        admin = site._registry[model]
        job = batch_actions_run.create_job(request, admin, "delete", [pk])
        batch_actions_run.run_batches(request, admin, job)
        if job.failed:
            raise Refused(str(job.failures))


class awaited(Writer):
    """The asynchronous methods."""

    title = "asynchronous"

    @staticmethod
    def create(model: Any, **values: Any) -> None:
        run(model(**values).asave())

    @staticmethod
    def change(model: Any, pk: str, **values: Any) -> None:
        run(set_values(loaded(model, pk), values).asave())

    @staticmethod
    def delete(model: Any, pk: str) -> None:
        run(loaded(model, pk).adelete())


def run(work: Any) -> Any:
    """Await in an event loop of its own."""
    import asyncio

    return asyncio.run(work)


def as_text(value: Any) -> str:
    """Return the input for a form."""
    if value is None:
        return ""
    return json.dumps(value) if isinstance(value, dict | list) else str(value)


WRITERS: dict[str, type[Writer]] = {
    writer.__name__: writer for writer in (save, update, bulk, atomic, fixtures, pynamodb, forms, jobs, awaited)
}
