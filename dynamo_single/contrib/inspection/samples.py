"""Show some stored values of each proposed attribute, for people only: secrets are masked."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from dynamo_single.contrib.inspection.grouping import Kind, Layout
from dynamo_single.contrib.inspection.keys import text_of
from dynamo_single.contrib.inspection.names import literal
from dynamo_single.contrib.inspection.proposal import ProposedModel
from dynamo_single.orm.schema import secrecy
from dynamo_single.orm.schema.keys.secret_values import MASK, hide_in, is_secret_name
from dynamo_single.table.request import Item, StoredValue

#: The different values that are shown of one attribute, and their longest text.
VALUES: Final = 3
LONGEST: Final = 60
#: A shorter secret is not searched for in other values.
_SHORTEST: Final = 4


def lines(model: ProposedModel, kind: Kind, layout: Layout) -> Iterator[str]:
    """Yield a line with up to ``VALUES`` different values for each attribute and key of a model's items."""
    secrets = [*_secrets(kind.items)]
    by_stored = {each.stored: each.name for each in model.attributes}
    stored = dict.fromkeys((*layout.key_names, *(each.stored for each in model.attributes)))
    for name in sorted(stored, key=lambda each: each not in layout.key_names):
        shown = dict.fromkeys(_shown(name, item[name], secrets) for item in kind.items if name in item)
        if shown:
            yield f"{model.name}.{by_stored.get(name, literal(name))}: {', '.join([*shown][:VALUES])}"


def _secrets(items: Sequence[Item]) -> Iterator[str]:
    """Yield the values of secret attributes, which keys may repeat."""
    for item in items:
        for name, value in item.items():
            if secrecy.is_secret(None, name) and len(text := text_of(value) or "") >= _SHORTEST:
                yield text


def _shown(name: str, value: StoredValue, secrets: Sequence[str]) -> str:
    text = text_of(value)
    if secrecy.is_secret(None, name) or (text is not None and any(each in text for each in secrets)):
        return MASK
    if text is not None and any(
        is_secret_name(part) for part in text.replace("|", "#").replace(":", "#").split("#")[:-1]
    ):
        return MASK  # a key such as TOKEN#... contains the secret
    found = literal(str(hide_in(_plain(value))))
    return found if len(found) <= LONGEST else f"{found[: LONGEST - 1]}…"


def _plain(value: StoredValue) -> Any:
    """Return a stored value as Python's, with the length of binary values instead of their bytes."""
    ((kind, found),) = value.items()
    if kind == "M":
        return {name: _plain(each) for name, each in found.items()}
    if kind == "L":
        return [_plain(each) for each in found]
    if kind in ("B", "BS"):
        return f"{len(found)} {'bytes' if kind == 'B' else 'binary values'}"
    return None if kind == "NULL" else found
