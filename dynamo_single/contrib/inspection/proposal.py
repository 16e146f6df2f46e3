"""The proposal for a table as values: its settings, its models, and notes on details. ``source`` writes it."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from dynamo_single.contrib.inspection.keys import Template


class ProposedAttribute(Struct):
    """An attribute of a model. ``options`` are source code; ``stored`` is its name in the items."""

    name: str
    kind: str
    stored: str
    options: dict[str, str]
    notes: list[str] = []
    #: The model that a reference names.
    refers_to: str = ""
    #: Whether ``kind`` is a map class of the module rather than a class of ``models``.
    is_local: bool = False


class ProposedMap(Struct):
    """A map class."""

    name: str
    attributes: list[ProposedAttribute]


class ProposedKey(Struct):
    """A key of a model: its name, the index if it is one's, and the templates of partition and sort key."""

    name: str
    index: str
    templates: list[Template]
    notes: list[str] = []


class ProposedModel(Struct):
    """A model. ``names`` are the Python names of its attributes by their stored names."""

    name: str
    count: int
    attributes: list[ProposedAttribute]
    primary: list[Template]
    keys: list[ProposedKey] = []
    names: dict[str, str] = {}
    item_type: str | None = None
    notes: list[str] = []


class Proposal(Struct):
    """The settings of an alias, and the models in its table. ``settings`` are source code by their names."""

    alias: str
    head: list[str]
    settings: dict[str, str]
    indexes: dict[str, dict[str, Any]]
    models: list[ProposedModel]
    notes: list[str] = []
    maps: list[ProposedMap] = []
