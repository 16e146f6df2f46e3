"""Short strings that describe storage: two declarations with the same string store the same.

They name physical attributes and codecs, so that renaming an attribute only in Python does not change them. This module
does not depend on requests or the table.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

from django.utils.module_loading import import_string

from dynamo_single.exceptions import ConfigurationError
from dynamo_single.orm.schema import attributes as declared
from dynamo_single.orm.schema.attributes import (
    Attribute,
    CanonicalAttribute,
    CopiedAttribute,
    CounterAttribute,
    ExtractedAttribute,
)
from dynamo_single.orm.schema.attributes.computed import Steps
from dynamo_single.orm.schema.attributes.references import DelegatingAttribute
from dynamo_single.orm.schema.keys.template import KeyPart, Template
from dynamo_single.orm.schema.layout import AccessKey, ModelLayout

#: Longer strings end in a hash, because the table's state item has 400 KB for all models.
LIMIT = 120
#: The options of a class that determine how its values are stored.
_DECIDING = (
    "attr_type",
    "prepare",
    "clean",
    "encode",
    "decode",
    "to_attribute_value",
    "from_attribute_value",
    "unit",
    "python_types",
    "member_types",
)
_OURS = "dynamo_single."


def key_fingerprint(key: AccessKey, stored: Mapping[str, str]) -> str:
    """The text of a key; ``stored`` has the physical name of each attribute: ``gs1 NAME #{name:text}``."""
    texts = (_template(template, stored) for template in (key.partition, key.sort))
    sharding = key.sharding
    divided = () if sharding is None else (f"sharded({stored[sharding.attribute]},{stored[sharding.at]})",)
    condition = key.condition
    asked = () if condition is None else (f"if({condition.text}", *(stored[name] for name in condition.attributes), ")")
    return shortened(" ".join((key.index or "primary", *texts, *divided, *asked)))


def key_fingerprints(layout: ModelLayout) -> dict[str, str]:
    """Return the string of each key of a layout, by its name: those of live objects, and ``trash``."""
    stored = {name: info.stored for name, info in layout.attributes.items()}
    return {key.name: key_fingerprint(key, stored) for key in (layout.primary, *layout.index_keys)}


def _template(template: Template, stored: Mapping[str, str]) -> str:
    parts = (
        f"{part.literal}{{{_variable(part, stored)}:{part.bound.kind}{':' if part.spec else ''}{part.spec}}}"
        for part in template.parts
    )
    return "".join((*parts, template.tail))


def _variable(part: KeyPart, stored: Mapping[str, str]) -> str:
    """An attribute, and of a part of the identity that it holds the positions that lead there: ``project_id.0``."""
    return ".".join((stored[part.name], *map(str, part.bound.member)))


def attribute_fingerprint(attribute: Attribute, layout: ModelLayout) -> str:
    """Return the string of an attribute of a layout: its physical name, its codec's class, and its source."""
    path, options = form_of(attribute)
    return attribute_text(layout.attributes[attribute.name].stored, path, options, source_text(attribute, layout))


def attribute_text(stored: str, path: str, options: Mapping[str, object], follows: str) -> str:
    """The text of an attribute by its parts."""
    given = ",".join(f"{name}={options[name]!r}" for name in sorted(options))
    return shortened(" ".join(part for part in (stored, path, given, follows) if part))


def source_text(attribute: Attribute, layout: ModelLayout) -> str:
    """Return the source of a computed value, by physical names; empty for other values."""
    if isinstance(attribute, CanonicalAttribute):
        return f"{attribute.fold}({layout.attributes[attribute.source].stored})"
    if isinstance(attribute, ExtractedAttribute):
        return place_text(layout.attributes[attribute.source].stored, attribute.steps)
    if isinstance(attribute, CopiedAttribute):
        return f"copy({attribute.reference_field.attribute.attr_name}.{attribute.source.attr_name})"
    if not isinstance(attribute, CounterAttribute):
        return ""
    return f"count({counted_by(attribute)})"


def place_text(source: str, steps: Steps) -> str:
    """The text of a place inside a document, by its physical name: ``extracted(data.author.lastname)``."""
    return f"extracted({'.'.join(map(str, (source, *steps)))})"


def counted_by(counter: CounterAttribute) -> str:
    """Return the children that a counter counts, and the condition on them."""
    which = "" if counter.condition is None else f", {counter.condition!r}"
    return f"{counter.children}{which}"


def form_of(attribute: Attribute) -> tuple[str, dict[str, Any]]:
    """Return the class that encodes an attribute's values, and its options: for a reference, those of the stored key.

    The class is the plainest one of this app that stores the same, by its name in ``dynamo_single.models``; one of a
    project by its whole path.
    """
    while isinstance(attribute, DelegatingAttribute):
        attribute = attribute.target
    kind: Any = getattr(type(attribute), "declared_class", type(attribute))
    while kind.__module__.startswith(_OURS) and (plainer := _plainer(kind)) is not None:
        kind = plainer
    path = kind.__name__ if _is_declared(kind) else f"{kind.__module__}.{kind.__qualname__}"
    return path, attribute.stored_options()


def attribute_class(path: str) -> type[Attribute]:
    """Return the class that ``form_of`` named; raise ``ConfigurationError`` if the name no longer exists."""
    found = getattr(declared, path, None) if "." not in path else _imported(path)
    if not (isinstance(found, type) and issubclass(found, Attribute)):
        raise ConfigurationError(
            f"A migration names the attribute class {path!r}, which does not exist. Keep the class at its "
            "path even if no model uses it, or update its path in the migrations."
        )
    return found


def _imported(path: str) -> Any:
    try:
        return import_string(path)
    except ImportError:
        return None


def _is_declared(kind: Any) -> bool:
    return kind is not Attribute and getattr(declared, kind.__name__, None) is kind


def _plainer(kind: Any) -> Any:
    """The nearest base class that a model can declare, if it stores the same."""
    base = next((base for base in kind.__mro__[1:] if _is_declared(base)), None)
    same = all(getattr(base, name, None) == getattr(kind, name, None) for name in _DECIDING)
    return base if same else None


def shortened(text: str) -> str:
    """Shorten a string to at most ``LIMIT`` characters: its beginning and a hash."""
    if len(text) <= LIMIT:
        return text
    return f"{text[: LIMIT - 17]}~{hashlib.sha256(text.encode()).hexdigest()[:16]}"
