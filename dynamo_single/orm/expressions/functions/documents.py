"""Values inside documents, and the functions that make documents: ``KT``, ``JSONObject`` and ``JSONArray``."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from django.core.serializers.json import DjangoJSONEncoder
from django.db.models.fields.json import KeyTextTransform, KeyTransform
from django.db.models.functions import JSONArray, JSONObject

from dynamo_single.orm.expressions.evaluation import evaluate, evaluate_all
from dynamo_single.orm.expressions.functions.casting import as_text
from dynamo_single.orm.expressions.scope import Expression, Scope
from dynamo_single.orm.schema.fields.documents import Size

#: The value of a place that a document does not have; ``None`` is JSON's null.
MISSING = object()


def place(expression: Expression, scope: Scope) -> Any:
    """Return the value of a place in a document; ``MISSING`` if there is none."""
    source = expression.lhs
    document = place(source, scope) if isinstance(source, KeyTransform) else evaluate(source, scope)
    return step_into(document, str(expression.key_name))


def step_into(document: Any, key: str) -> Any:
    """Return one value of a map or a list."""
    if isinstance(document, dict):
        return document.get(key, MISSING)
    if isinstance(document, list) and key.lstrip("-").isdigit() and -len(document) <= int(key) < len(document):
        return document[int(key)]
    return MISSING


@evaluate.register(KeyTransform)
def _place(expression: Expression, scope: Scope) -> Any:
    found = place(expression, scope)
    return None if found is MISSING else found


@evaluate.register(KeyTextTransform)
def _text_at(expression: Expression, scope: Scope) -> Any:
    found = place(expression, scope)
    return None if found is MISSING or found is None else as_text(found)


@evaluate.register(Size)
def _size(expression: Expression, scope: Scope) -> Any:
    found = evaluate(expression.lhs, scope)
    return None if found is None else len(found)


def _as_json(values: Iterable[Any]) -> Any:
    return json.loads(json.dumps(list(values), cls=DjangoJSONEncoder))


@evaluate.register(JSONObject)
def _object(expression: Expression, scope: Scope) -> Any:
    values = evaluate_all(expression.get_source_expressions(), scope)
    return dict(zip(values[::2], _as_json(values[1::2]), strict=True))


@evaluate.register(JSONArray)
def _array(expression: Expression, scope: Scope) -> Any:
    return _as_json(evaluate_all(expression.get_source_expressions(), scope))
