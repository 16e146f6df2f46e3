"""Tables as values: a description and items, and the proposal for them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from dynamo_single.conf import TableSettings
from dynamo_single.contrib.inspection import describing, names, source
from dynamo_single.contrib.inspection.describing import Description
from dynamo_single.contrib.inspection.sample import Sample

Index = tuple[str, tuple[str, ...]]


def stored(value: object) -> dict[str, Any]:
    """Return a Python value as DynamoDB's JSON."""
    if value is None:
        return {"NULL": True}
    if isinstance(value, bool):
        return {"BOOL": value}
    if isinstance(value, int | float):
        return {"N": str(value)}
    if isinstance(value, bytes):
        return {"B": value}
    if isinstance(value, set):
        return {"SS": sorted(value)}
    if isinstance(value, dict):
        return {"M": {name: stored(each) for name, each in value.items()}}
    if isinstance(value, list):
        return {"L": [stored(each) for each in value]}
    return {"S": value}


def item(**values: object) -> dict[str, Any]:
    """Return an item in DynamoDB's JSON."""
    return {name: stored(value) for name, value in values.items()}


def schema(keys: Iterable[str]) -> list[dict[str, str]]:
    """Return keys as DynamoDB describes them."""
    return [
        {"AttributeName": key.partition(":")[0], "KeyType": kind}
        for key, kind in zip(keys, ("HASH", "RANGE"), strict=False)
    ]


def sample(
    keys: Sequence[str], items: Iterable[Mapping[str, Any]], indexes: Sequence[Index] = (), ttl: str | None = None
) -> Sample:
    """Return the sample of a table; ``views:N`` is a number as a key."""
    named = {
        key.partition(":")[0]: key.partition(":")[2] or "S" for each in (keys, *(k for _, k in indexes)) for key in each
    }
    description = {
        "KeySchema": schema(keys),
        "AttributeDefinitions": [{"AttributeName": name, "AttributeType": kind} for name, kind in named.items()],
        "GlobalSecondaryIndexes": [
            {"IndexName": name, "KeySchema": schema(each), "Projection": {"ProjectionType": "ALL"}}
            for name, each in indexes
        ],
    }
    return Sample(description, [*items], ttl)


def describe(found: Sample, table: str = "data") -> Description:
    """Return the description of a sample of a table."""
    return describing.describe(found, TableSettings("default", table), names.index_name(table, ()))


def written(found: Sample, table: str = "data") -> str:
    """Return the source for a sample, which is valid Python."""
    text = source.write(describe(found, table).proposal)
    compile(text, "models.py", "exec")
    return text


def primary_keys(text: str) -> dict[str, tuple[str, ...]]:
    """Return the templates of the primary key of each model in a source."""
    found = {}
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ClassDef):
            for call in (each for each in ast.walk(node) if isinstance(each, ast.Call)):
                if isinstance(call.func, ast.Attribute) and call.func.attr == "Key" and node.name != "Keys":
                    found[node.name] = tuple(ast.literal_eval(each) for each in call.args)
    return found


def pattern(template: str) -> re.Pattern[str]:
    """Return what matches the keys of a template: a value ends before the next literal or '#', unless it is alone."""
    pieces = [each for each in re.split(r"(\{\w+\})", template) if each]
    followed = [*pieces[1:], "#"]
    return re.compile(
        "".join(
            re.escape(each) if each[:1] != "{" else ".+" if len(pieces) == 1 else f"[^{re.escape(after[0])}]+"
            for each, after in zip(pieces, followed, strict=True)
        ),
        re.DOTALL,
    )


def models_of(text: str, keys: Sequence[str]) -> list[str]:
    """Return the models whose templates match a primary key."""
    return [
        name
        for name, templates in primary_keys(text).items()
        if all(pattern(template).fullmatch(key) for template, key in zip(templates, keys, strict=True))
    ]
