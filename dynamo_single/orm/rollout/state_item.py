"""Read and write the state item, which holds a table's state."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from msgspec import DecodeError, ValidationError, json

from dynamo_single.exceptions import UnexpectedItem
from dynamo_single.lazy_modules import LazyModule
from dynamo_single.orm.requests.actions import Item, ItemKey, key_of
from dynamo_single.orm.rollout.states import STATE_KEY, STATE_TYPE, StoredForm, StoredShards, TableState
from dynamo_single.table import names

if TYPE_CHECKING:
    from dynamo_single.orm.rollout import former_forms
else:
    # Only tables of an earlier release need it.
    former_forms = LazyModule("dynamo_single.orm.rollout.former_forms")

REVISION: Final = "revision"
_OWNER: Final = "owner"
#: The forms as releases before 0.2 wrote them, which read them until the first change of a form.
FORMER_FORMS: Final = "forms"
_FORMS: Final = "schema"
_SHARDS: Final = "shards"
_LEASE: Final = "lease"
_MOVED: Final = "moved"
_MOVED_AT: Final = "movedAt"
_FENCES: Final = "fences"
_FENCED_SINCE: Final = "fencedSince"


def read_state(item: Item) -> TableState:
    """Return the state that an item holds, with its ``damage`` if a part of it cannot be read.

    Raises ``UnexpectedItem`` if a later release has written the shards: no item may be read without them.
    """
    readers: dict[str, Callable[[], object]] = {
        "revision": lambda: int(item[REVISION]["N"]),
        "owner": lambda: item[_OWNER]["S"] if _OWNER in item else "",
        "forms": lambda: _forms_in(item),
        "shards": lambda: json.decode(item[_SHARDS]["S"] if _SHARDS in item else "{}", type=dict[str, StoredShards]),
        "moved": lambda: int(item[_MOVED]["N"]) if _MOVED in item else 0,
        "moved_at": lambda: float(item[_MOVED_AT]["N"]) if _MOVED_AT in item else 0.0,
        "lease": lambda: float(item[_LEASE]["N"]) if _LEASE in item else 0.0,
        "fences": lambda: json.decode(item[_FENCES]["S"] if _FENCES in item else "{}", type=dict[str, float]),
        "fenced_since": lambda: int(item[_FENCED_SINCE]["N"]) if _FENCED_SINCE in item else 0,
        "former": lambda: item[FORMER_FORMS]["S"] if _FORMS not in item else "",
    }
    found: dict[str, Any] = {}
    damage: UnexpectedItem | None = None
    for name, reader in readers.items():
        try:
            found[name] = reader()
        except (KeyError, ValueError, DecodeError) as error:
            damage = UnexpectedItem(
                f"Cannot read the table's state from the item {' / '.join(key_of(item))}: {name}: {error!r}. If a "
                "later release of dynamo_single wrote the item, use that release. If the item is damaged, restore it "
                "from a backup of the table."
            )
            if name == _SHARDS and isinstance(error, ValidationError):
                raise damage from error
    return TableState(**found, damage=damage)


def _forms_in(item: Item) -> dict[str, StoredForm]:
    if _FORMS in item:
        return json.decode(item[_FORMS]["S"], type=dict[str, StoredForm])
    return former_forms.converted(item[FORMER_FORMS]["S"])


def state_item(state: TableState, key: ItemKey = STATE_KEY) -> dict[str, dict[str, Any]]:
    """Return the item with a key that contains a state."""
    forms = {FORMER_FORMS: {"S": state.former}}
    if not state.former:
        forms = {_FORMS: {"S": json.encode(state.forms, order="deterministic").decode()}}
    numbers = ((_MOVED, state.moved), (_MOVED_AT, state.moved_at), (_LEASE, state.lease))
    return {
        names.PARTITION_KEY: {"S": key[0]},
        names.SORT_KEY: {"S": key[1]},
        names.ITEM_TYPE: {"S": STATE_TYPE},
        REVISION: {"N": str(state.revision)},
        **({_OWNER: {"S": state.owner}} if state.owner else {}),
        **forms,
        **({_SHARDS: {"S": json.encode(state.shards, order="deterministic").decode()}} if state.shards else {}),
        **{name: {"N": f"{value:.16g}"} for name, value in (*numbers, (_FENCED_SINCE, state.fenced_since)) if value},
        **({_FENCES: {"S": json.encode(state.fences, order="deterministic").decode()}} if state.fences else {}),
    }
