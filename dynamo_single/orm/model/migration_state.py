"""The form of a model in Django's migrations: a plain unmanaged model with its fields, which they can render.

Django's state would have PynamoDB's base class among the bases, and a metaclass that it cannot call. This module must
not know what a migration does.
"""

from __future__ import annotations

from typing import Any, Final, NoReturn

from django.db import models
from django.db.migrations.state import ModelState
from pynamodb.models import Model as PynamoDBModel

from dynamo_single.exceptions import NotSupported
from dynamo_single.orm.schema.fields.base import column_of
from dynamo_single.orm.schema.types import DynamoModel

#: A stand-in's manager, if a field is called ``objects``.
_MANAGER: Final = "stand_ins"


def install() -> None:
    """Let ``ModelState.from_model`` make states of our models that can be rendered; once a process.

    Django renders the models of every app without migrations whenever it runs ``migrate`` or ``makemigrations``.
    """
    original: Any = ModelState.from_model
    if getattr(original.__func__, "_of_dynamo_single", False):
        return

    def from_model(cls: object, model: Any, exclude_rels: bool = False) -> Any:
        state = original.__func__(cls, model, exclude_rels)
        return _as_plain_model(state, model) if issubclass(model, PynamoDBModel) else state

    from_model._of_dynamo_single = True  # type: ignore[attr-defined]  # a mark of ours on a function
    ModelState.from_model = classmethod(from_model)  # type: ignore[method-assign,assignment]  # Django offers no hook


class RefusingManager:
    """The replacement for a manager of our models in a migration's state."""

    def __init__(self, label: str) -> None:
        self._label = label

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("__"):
            raise AttributeError(name)
        raise NotSupported(
            f"{self._label} is stored in DynamoDB, so its historical model has no objects: a migration called "
            f"{name}(). In your own migration, change items with the operation "
            "dynamo_single.migrations.ChangeItems, which runs once for the table; RunPython runs for every "
            "database. If a migration of another app has no items to change there, skip it with manage.py "
            "migrate --fake."
        )


class _PlainState(ModelState):
    """The state of a model of ours that is not in its app's migrations."""

    def render(self, apps: Any) -> Any:
        """The stand-in, whose manager refuses every query."""
        made: Any = super().render(apps)
        setattr(
            made, _MANAGER if "objects" in self.fields else "objects", RefusingManager(f"{self.app_label}.{self.name}")
        )
        return made


def _as_plain_model(state: Any, model: type[DynamoModel]) -> Any:
    state.__class__ = _PlainState
    # The targets of foreign keys of SQL models; the state of an app without migrations omits relations.
    column = column_of(model._meta.pk, primary_key=True)
    if column is not None and not model._meta.proxy:
        state.fields[model._meta.pk.name] = column
    # The edges of a many-to-many relation are items of a model of their own.
    for relation in model._meta.local_many_to_many:
        state.fields.pop(relation.name, None)
    # A label names the model of a proxy, which is in the state as well.
    state.bases = tuple(base for base in state.bases if isinstance(base, str)) or (models.Model,)
    # Django requires a manager with another name if a field has this name.
    state.managers = [(_MANAGER, models.Manager())] if "objects" in state.fields else []
    state.options.pop("base_manager_name", None)
    state.options.pop("default_manager_name", None)
    return state
