"""What Django's migrations see of a model: a plain unmanaged model with its fields, which they can render.

Django's state would have PynamoDB's base class among the bases, and a metaclass that it cannot call. This module must
not know what a migration does.
"""

from __future__ import annotations

from typing import Any

from django.db import models
from django.db.migrations.state import ModelState
from pynamodb.models import Model as PynamoDBModel


def install() -> None:
    """Let ``ModelState.from_model`` make states of our models that can be rendered; once a process.

    Django renders the models of every app without migrations whenever it runs ``migrate`` or ``makemigrations``.
    """
    original: Any = ModelState.from_model
    if getattr(original.__func__, "_of_dynamo_single", False):
        return

    def from_model(cls: Any, model: Any, exclude_rels: bool = False) -> Any:
        state = original.__func__(cls, model, exclude_rels)
        return _as_plain_model(state) if issubclass(model, PynamoDBModel) else state

    from_model._of_dynamo_single = True  # type: ignore[attr-defined]  # a mark of ours on a function
    ModelState.from_model = classmethod(from_model)  # type: ignore[method-assign,assignment]  # Django offers no hook


def _as_plain_model(state: Any) -> Any:
    # What is named by a label is the model that a proxy stands for, which is in the state as well.
    state.bases = tuple(base for base in state.bases if isinstance(base, str)) or (models.Model,)
    state.managers = []
    state.options.pop("base_manager_name", None)
    state.options.pop("default_manager_name", None)
    return state
