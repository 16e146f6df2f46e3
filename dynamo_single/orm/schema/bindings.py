"""A model as its items are stored now: its layout, the keys written into items, and facts derived from both.

A *generation* holds the bindings of all models. While a migration is open, items may have other names and keys than
their model declares. If a table's state has another revision, or a model is declared, a new generation replaces the
former one as a whole: no layout, attribute or binding ever changes, so that a thread with a binding of before has parts
that fit each other. A binding has the lease of its table's revision. All requests that are made of it carry this lease,
which refuses them once this process goes by another revision.

This module does not send requests or depend on the facts derived from a binding.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from functools import wraps
from threading import RLock
from typing import Any, Final, Protocol, TypeAlias, TypeVar, TypeVarTuple

from msgspec import Struct
from msgspec.structs import replace

from dynamo_single.orm.schema.keys.shards import Schedule
from dynamo_single.orm.schema.layout import AccessKey, ModelLayout, Twin
from dynamo_single.orm.schema.types import DynamoModel
from dynamo_single.orm.schema.upgrades import FIRST
from dynamo_single.table.lease import Lease
from dynamo_single.table.shaped import declared

R = TypeVar("R")
Arguments = TypeVarTuple("Arguments")

#: The number of facts that a binding caches: facts with arguments, such as selections of attributes, have no other
#: limit.
MAX_FACTS: Final = 1024
_ABSENT: Final = object()


class Rollout(Struct, frozen=True):
    """How a model's items differ from its declaration while a migration is open.

    ``twins`` are attributes that are being renamed. ``keys`` are the index keys written into items; ``None`` for the
    declared ones. Queries must not use ``hidden_keys`` (names), ``unfilled`` (attributes), or ``unclaimed`` (the
    fingerprints of unique rules), because some items lack them. Code does not write the claims of the rules in
    ``unwritten`` yet. ``version`` is the schema version of every item since an earlier release: new items get it too,
    so that code of that release does not upgrade them.
    """

    twins: tuple[Twin, ...] = ()
    keys: tuple[AccessKey, ...] | None = None
    hidden_keys: frozenset[str] = frozenset()
    unfilled: frozenset[str] = frozenset()
    unclaimed: frozenset[str] = frozenset()
    unwritten: frozenset[str] = frozenset()
    version: int = FIRST


#: How the items of a model are that are as it declares them.
AS_DECLARED: Final = Rollout()


class ModelBinding:
    """One model in one generation. ``model`` may be a proxy, which has a layout and a label of its own.

    ``layout`` has the physical names that are read now, and ``index_keys`` are the keys that items are written with.
    ``rollout`` is ``None`` unless a migration is open. ``lease`` is ``None`` if the table's state is not followed.
    ``schedule`` are the recorded shards of a sharded model, and ``refusal`` is why the model cannot be used. Functions
    decorated with ``fact`` keep their results in ``facts``.
    """

    __slots__ = ("facts", "index_keys", "is_settled", "layout", "lease", "model", "refusal", "rollout", "schedule")

    layout: ModelLayout
    index_keys: tuple[AccessKey, ...]

    def __init__(
        self,
        model: type[DynamoModel],
        rollout: Rollout | None,
        lease: Lease | None = None,
        schedule: Schedule | None = None,
        refusal: Exception | None = None,
    ) -> None:
        self.model = model
        self.rollout = rollout
        self.lease = lease
        self.schedule = schedule
        self.refusal = refusal
        #: Whether its table is never read about it again.
        self.is_settled = False
        self.facts: dict[Any, Any] = {}

    def __getattr__(self, name: str) -> Any:
        """Build the layout on first access: facts about references do not need a valid one."""
        if name not in ("layout", "index_keys"):
            raise AttributeError(name)
        declared, rollout = _declared(self.model), self.rollout
        keys = None if rollout is None else rollout.keys
        self.index_keys = declared.index_keys if keys is None else keys
        self.layout = declared if rollout is None else layout_in_use(declared, rollout.twins)
        return getattr(self, name)

    @property
    def is_current(self) -> bool:
        """Whether no other generation has begun since; that of any model's items may be in one request with these."""
        return generation.bindings.get(self.model) is self

    @property
    def missing(self) -> Rollout:
        """The attributes, keys and rules that some items lack, so that queries must not use them."""
        return self.rollout or AS_DECLARED


#: The source of a fact: a binding, or a model for its current binding.
Subject: TypeAlias = ModelBinding | type[DynamoModel]


class Generation:
    """The bindings of all models at one time. Each is created on first access.

    ``facts`` are the results of functions that are decorated with ``shared``.
    """

    __slots__ = ("bindings", "facts", "rollouts", "states")

    def __init__(self, rollouts: Mapping[Any, Rollout], states: Mapping[str, tuple[Any, Lease | None]]) -> None:
        #: By concrete model, what is open; and of models that are not bound yet, what was open in the last generation.
        self.rollouts = dict(rollouts)
        #: By alias, the state that the models of the table follow, and its lease.
        self.states = states
        #: By model class, proxies included.
        self.bindings: dict[Any, ModelBinding] = {}
        self.facts: dict[Any, Any] = {}


#: The current generation. Code that runs in every call reads it here directly.
generation = Generation({}, {})
_lock = RLock()
_declared: Callable[[type[DynamoModel]], ModelLayout]
#: How a model follows a state: its rollout, its shards, and why it cannot if it cannot.
Follower: TypeAlias = Callable[
    [type[DynamoModel], Any, Rollout | None], tuple[Rollout | None, Schedule | None, Exception | None]
]
_follower: Follower


def set_follower(follower: Follower) -> None:
    """Take the function that derives how a model follows its table's state."""
    global _follower
    _follower = follower


def set_declared_layouts(declared: Callable[[type[DynamoModel]], ModelLayout]) -> None:
    """Take the function that returns a model's declared layout."""
    global _declared
    _declared = declared


def current() -> Generation:
    """Return the current generation."""
    return generation


def binding_of(subject: Subject) -> ModelBinding:
    """Return the current binding of a model; a binding is returned unchanged."""
    if type(subject) is ModelBinding:
        return subject
    return generation.bindings.get(subject) or _bind(subject, generation)


def _bind(model: Any, within: Generation) -> ModelBinding:
    concrete = model._meta.concrete_model
    known = within.rollouts.get(concrete)
    # Models that are built for a test or a historical state have no table.
    state, lease = within.states.get(getattr(getattr(model, "_options", None), "alias", ""), (None, None))
    if state is None:
        made = ModelBinding(model, known, lease)
    else:
        rollout, schedule, refusal = _follower(concrete, state, known)
        if rollout is not None:
            within.rollouts[concrete] = rollout
        else:
            within.rollouts.pop(concrete, None)
        made = ModelBinding(model, rollout, lease, schedule, refusal)
    # If several threads create it, the first one wins. It belongs to the generation of its creation.
    return within.bindings.setdefault(model, made)


class TableKnowledge(Protocol):
    """The state that was read from a table about its models' items."""

    #: The time until which it remains valid, by ``time.monotonic()``.
    renew_at: float


#: The states by table. ``orm/rollout/knowledge`` reads and clears them.
known_tables: Final[dict[Any, Any]] = {}


def binding_if_known(model: type[DynamoModel], table: object) -> ModelBinding | None:
    """Return the current binding of a model whose table's state is valid; ``None`` if it must be read."""
    found = generation.bindings.get(model)
    if found is None or found.refusal is not None:
        return None
    if found.is_settled:
        return found
    known: TableKnowledge | None = known_tables.get(table)
    return None if known is None or known.renew_at <= time.monotonic() else found


def rollout_of(model: type[DynamoModel]) -> Rollout | None:
    """Return the open changes of a model; ``None`` if its items match its declaration."""
    return generation.rollouts.get(model._meta.concrete_model)


def begin_state(alias: str, state: object, lease: Lease | None) -> None:
    """Begin a generation in which the models of a table follow another state."""
    with _lock:
        _begin(generation.rollouts, {**generation.states, alias: (state, lease)})


def forget_states() -> None:
    """Treat the items of all models as declared, until their tables are read again."""
    with _lock:
        if generation.states or generation.rollouts:
            _begin({}, {})


def forget_in_fork() -> None:
    """Clear the states in a forked process, because another thread may have held the lock."""
    global _lock
    _lock = RLock()
    _begin({}, {})


def begin_generation() -> None:
    """Begin a generation because the models or the settings are other ones than before."""
    with _lock:
        _begin(generation.rollouts, generation.states)


def _begin(rollouts: Mapping[Any, Rollout], states: Mapping[str, tuple[Any, Lease | None]]) -> None:
    global generation
    generation = Generation(rollouts, states)
    declared.begin(generation)


def layout_in_use(declared: ModelLayout, twins: tuple[Twin, ...]) -> ModelLayout:
    """A layout with the physical names that are read during a rename."""
    if not twins:
        return declared
    used = {name: twin.used for twin in twins for name in (twin.used, twin.other)}
    attributes = {
        name: replace(info, stored=used[info.stored]) if info.stored in used else info
        for name, info in declared.attributes.items()
    }
    return replace(declared, attributes=attributes, twins=twins, declared=declared)


def fact(make: Callable[[ModelBinding, *Arguments], R]) -> Callable[[Subject, *Arguments], R]:
    """Keep what a function works out of a binding in that binding. It takes a binding, or a model for its present one.

    It must read everything that may change from ``binding``: the model's current layout may be of another generation.
    """

    @wraps(make)
    def of(subject: Subject, *arguments: *Arguments) -> R:
        binding: Any = generation.bindings.get(subject, subject)
        if type(binding) is not ModelBinding:
            binding = binding_of(binding)
        facts, key = binding.facts, (make, *arguments) if arguments else make
        found: Any = facts.get(key, _ABSENT)
        # Made outside of an except clause: its errors would show a KeyError as their context.
        if found is _ABSENT:
            if len(facts) >= MAX_FACTS:
                facts.clear()
            found = facts.setdefault(key, make(binding, *arguments))
        result: R = found
        return result

    return of


def shared(make: Callable[[*Arguments], R]) -> Callable[[*Arguments], R]:
    """Cache the result of a function of all models in the current generation, such as their references."""

    @wraps(make)
    def of(*arguments: *Arguments) -> R:
        facts, key = generation.facts, (make, *arguments)
        found: Any = facts.get(key, _ABSENT)
        if found is _ABSENT:
            found = facts.setdefault(key, make(*arguments))
        result: R = found
        return result

    return of
