"""Model classes for one test, and their system checks."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.apps import apps

from dynamo_single import models
from dynamo_single import sessions as _sessions  # noqa: F401 - its model is not to be forgotten with those of a block
from dynamo_single.checks.keys import check_collisions
from dynamo_single.checks.models import check_model
from dynamo_single.orm.schema import registry

#: The apps in which tests declare models.
APPS = ("catalog", "histories")


@contextmanager
def forgotten() -> Iterator[None]:
    """Remove models that are declared in the block."""
    known = dict(registry._MODELS)
    declared = {label: dict(apps.all_models[label]) for label in APPS}
    # A pending operation on a missing model would fail every later check.
    waiting = {model: [*functions] for model, functions in apps._pending_operations.items()}
    try:
        yield
    finally:
        registry._MODELS.clear()
        registry._MODELS.update(known)
        registry.invalidate()
        for label, there in declared.items():
            apps.all_models[label].clear()
            apps.all_models[label].update(there)
        apps._pending_operations.clear()
        apps._pending_operations.update(waiting)
        apps.clear_cache()


def declare(
    label: str,
    primary: tuple[str, str],
    keys: dict[str, Any] | None = None,
    *,
    bases: tuple[type, ...] = (models.Model,),
    options: dict[str, Any] | None = None,
    **attributes: Any,
) -> Any:
    """Create a model class. Another test module's one of its name steps aside until the ``forgotten()`` block ends."""
    keys_class = type("Keys", (), {"primary": models.Key(*primary), **(keys or {})})
    meta: Any = type("Meta", (), {"app_label": "catalog", **(options or {})})
    named = apps.all_models[meta.app_label]
    if label.lower() in named and named[label.lower()].__module__ != __name__:
        del named[label.lower()]
    namespace = {"__module__": __name__, "__qualname__": label, "Keys": keys_class, "Meta": meta, **attributes}
    return type(models.Model)(label, bases, namespace)


def messages(model: Any) -> list[tuple[str, str]]:
    """The check messages about one model."""
    found = [*check_model(model), *check_collisions([model])]
    return [(message.id or "", message.msg) for message in found if message.obj is model]
