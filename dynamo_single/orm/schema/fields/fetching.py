"""Load missing values on access: a reference's object, or an attribute that ``only()`` omitted.

The fetch mode of the queryset that returned the object determines the scope: this object, all objects of the result, or
none. An object stores it in ``_state``, as Django 6.1 does, and its peers by weak references, so that it does not keep
them in memory. This module does not depend on requests.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol
from weakref import ref

import django
from django.db.models import Model, prefetch_related_objects
from django.db.models.base import ModelState
from django.db.models.fields.related_descriptors import ForwardManyToOneDescriptor, ForwardOneToOneDescriptor

from dynamo_single.conf import default_fetch_mode
from dynamo_single.exceptions import FetchBlocked, NotSupported, PendingWrite
from dynamo_single.orm.schema.keys.secret_values import MASK

if TYPE_CHECKING or django.VERSION >= (6, 1):
    from django.db.models import FETCH_ONE as FETCH_ONE
    from django.db.models import FETCH_PEERS as FETCH_PEERS
    from django.db.models import FETCH_RAISE as FETCH_RAISE
    from django.db.models.fetch_modes import FetchMode as FetchMode
else:
    from dynamo_single.orm.schema.fields.fetch_modes import FETCH_ONE, FETCH_PEERS, FETCH_RAISE, FetchMode

#: The modes by the names that ``DYNAMO_SINGLE_FETCH_MODE`` takes.
BY_NAME = {"one": FETCH_ONE, "peers": FETCH_PEERS, "raise": FETCH_RAISE}


class _DefaultMode:
    """The default mode of an object without a queryset's mode."""

    def __get__(self, instance: object, owner: object = None) -> FetchMode:
        return default_mode()


class ObjectState(ModelState):
    """Django's state of an object; what it knows of its peers is neither pickled nor copied, as since Django 6.1."""

    fetch_mode = _DefaultMode()
    peers = ()

    def __getstate__(self) -> dict[str, object]:
        return {name: value for name, value in self.__dict__.items() if name != "peers"}


class Fetcher(Protocol):
    """The loader of one kind of value, for one object or for several."""

    @property
    def field(self) -> Any:
        """What it is called by."""

    def fetch_one(self, instance: Model) -> None:
        """Read it for one object; raises what it raises if it is not there."""

    def fetch_many(self, instances: Sequence[object]) -> None:
        """Read it for all of these that have it not; what is not there is left out."""


def checked_mode(mode: object) -> FetchMode:
    """Return a mode for a queryset; raise ``NotSupported`` for other values."""
    if isinstance(mode, FetchMode):
        return mode
    raise NotSupported(
        f"fetch_mode({mode!r}) is not supported: FETCH_ONE, FETCH_PEERS and FETCH_RAISE of dynamo_single.models are."
    )


def default_mode() -> FetchMode:
    """The mode of a queryset that was given none: ``DYNAMO_SINGLE_FETCH_MODE``."""
    return BY_NAME[default_fetch_mode()]


def mode_of(instance: Model) -> FetchMode:
    """The mode of an object, or of a row in SQL that objects refer to; a row has one since Django 6.1."""
    mode: FetchMode = getattr(instance._state, "fetch_mode", FETCH_ONE)
    return mode


def mode_to_set(mode: FetchMode) -> FetchMode | None:
    """Return the mode of a result, if its objects need it: they have the default, but not their peers."""
    return mode if mode.track_peers or mode is not default_mode() else None


def set_modes(objects: Sequence[Any], mode: FetchMode | None) -> None:
    """Set the mode of the objects of one result, and their peers if it needs them."""
    if mode is None:
        return
    peers = [ref(obj) for obj in objects] if mode.track_peers else ()
    for obj in objects:
        state = obj._state
        state.fetch_mode = mode
        if peers:
            state.peers = peers


def fetch(fetcher: Fetcher, instance: Model) -> None:
    """Load a value for an object, by its mode; raise ``FetchBlocked`` if the mode requires that.

    Where peers cannot be read in an ``atomic()`` block, since a write is pending for one of them, it is for one alone.
    """
    mode = mode_of(instance)
    if mode is FETCH_ONE:
        fetcher.fetch_one(instance)
        return
    if mode is FETCH_RAISE:
        name = f"{type(instance).__qualname__}.{fetcher.field.name}"
        raise FetchBlocked(
            f"Fetching of {name} blocked. It was not read with the object, and FETCH_RAISE keeps it so. "
            "Read it along: relations by select_related() and prefetch_related(), attributes by naming them in only()."
        )
    try:
        mode.fetch(fetcher, instance)
    except PendingWrite:
        fetcher.fetch_one(instance)


class FetchedForward:
    """A reference's descriptor: what Django's does, by the object's mode on every release. Django's is behind it."""

    field: Any

    @property
    def prefetches(self) -> Any:
        """The model whose querysets ``prefetch_related()`` reads for it."""
        return self.field.related_model

    def __get__(self, instance: Any, cls: object = None) -> Any:
        behind: Any = super()
        if instance is not None and self._is_missing(instance) and mode_of(instance) is not FETCH_ONE:
            fetch(self, instance)
            if not self.field.is_cached(instance):
                self.fetch_one(instance)  # which reports that it is missing
        return behind.__get__(instance, cls)

    def __set__(self, instance: Any, value: Any) -> None:
        behind: Any = super()
        try:
            behind.__set__(instance, value)
        except ValueError:
            related = self.field.related_model
            if not self.field.attribute.is_secret() or isinstance(value, related):
                raise
            # Django's error contains the value.
            name = f"{instance._meta.object_name}.{self.field.name}"
            raise ValueError(
                f'Cannot assign a {type(value).__name__} {MASK}: "{name}" must be a '
                f'"{related._meta.object_name}" instance.'
            ) from None

    def _is_missing(self, instance: object) -> bool:
        return not self.field.is_cached(instance) and instance.__dict__.get(self.field.attname) is not None

    def get_queryset(self, **hints: object) -> Any:
        """Return the queryset for the other object, in the same mode."""
        behind: Any = super()
        return with_mode_of(hints.get("instance"), behind.get_queryset(**hints))

    def get_prefetch_querysets(self, instances: Any, querysets: Any = None) -> Any:
        """Return the queryset for several of them, in the same mode."""
        behind: Any = super()
        return behind.get_prefetch_querysets(instances, querysets or [self.get_queryset(instance=instances[0])])

    def fetch_one(self, instance: Model) -> None:
        """Load with one GetItem; raise ``DoesNotExist``."""
        descriptor: Any = self
        related = descriptor.get_object(instance)
        self.field.set_cached_value(instance, related)
        if not self.field.remote_field.multiple:
            self.field.remote_field.set_cached_value(related, instance)

    def fetch_many(self, instances: Any) -> None:
        """Load with one BatchGetItem for each hundred different objects."""
        missing = [each for each in instances if self._is_missing(each)]
        prefetch_related_objects(missing, self.field.name)
        for each in missing:
            # Django treats a missing object as none, but a reference has a value.
            if self.field.get_cached_value(each, default=None) is None:
                self.field.delete_cached_value(each)
                each._state.peers = ()


class ForwardDescriptor(FetchedForward, ForwardManyToOneDescriptor):  # type: ignore[type-arg]  # not generic at run time
    """``person.company``."""


class ForwardOneDescriptor(FetchedForward, ForwardOneToOneDescriptor):  # type: ignore[type-arg]  # as above
    """``restaurant.place``."""


class DeferredValue:
    """An attribute that ``only()`` or ``defer()`` left out."""

    def __init__(self, name: str, field: Any) -> None:
        self.name = name
        self.field = field

    def fetch_one(self, instance: Model) -> None:
        """Load with one GetItem; raise ``DoesNotExist``."""
        instance.refresh_from_db(fields=[self.name])

    def fetch_many(self, instances: Sequence[Any]) -> None:
        """Load with one BatchGetItem for each hundred objects, which are complete afterwards."""
        missing = [each for each in instances if self.name not in each.__dict__ and each._stored is not None]
        type(instances[0])._read_rest(missing)


def with_mode_of(instance: Any, queryset: Any) -> Any:
    """A queryset in the mode of the object whose relation it is for; one of SQL has modes since Django 6.1."""
    if instance is None or not hasattr(queryset, "fetch_mode") or mode_of(instance) is queryset._fetch_mode:
        return queryset
    return queryset.fetch_mode(mode_of(instance))


#: The name in an object's state, while a form checks it, of a function of a field and a key: it returns whether the
#: object that the field refers to is known to exist.
IS_KNOWN = "_dynamo_single_is_known"


def is_known(instance: Any, field: object, key: object) -> bool:
    """Return whether the object that a field refers to was just read during a check, without a request.

    A value can also be checked without an object, as ``createsuperuser`` does.
    """
    asked = getattr(getattr(instance, "_state", None), IS_KNOWN, None)
    return asked is not None and bool(asked(field, key))
