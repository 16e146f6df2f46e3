"""The type of this app's models, for the folders below the folder that defines them.

For type checkers, ``DynamoModel`` is a base class that declares the members that these folders use; at run time the
name is Django's own class. Django's managers and querysets take a subclass of Django's model only, so that a
``Protocol`` cannot be in its place.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping, Set
from datetime import timedelta
from functools import lru_cache
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, Self, TypeAlias, TypeVar

from asgiref.sync import sync_to_async
from django.db import models
from django.db.models import Field
from msgspec import Struct
from pynamodb.expressions.condition import Condition

from dynamo_single.orm.schema.keys.shards import Shards
from dynamo_single.orm.schema.keys.template import IndexKey, Key
from dynamo_single.orm.schema.layout import IndexCondition
from dynamo_single.orm.schema.upgrades import FormerOptions

if TYPE_CHECKING:
    from django.core.files.uploadedfile import UploadedFile
    from django.utils.datastructures import MultiValueDict

__all__ = [
    "ConditionArgument",
    "Defaults",
    "DynamoModel",
    "M",
    "ModelField",
    "Options",
    "SentData",
    "SentFiles",
    "StoredAttribute",
]

#: A condition that a caller gives along with a write.
ConditionArgument = models.Q | Condition | None


class Options(Struct, frozen=True):
    """The app's own options of one concrete model."""

    item_type: str
    alias: str
    trash_index: str | None
    purge_after: timedelta | None
    primary: Key
    index_keys: dict[str, IndexKey]
    #: A reader of a key's condition, by the model and the key's name: the schema does not depend on lookups.
    read_condition: Callable[[Any, str, object], Callable[[], IndexCondition] | None]
    former: FormerOptions | None = None
    shards: Shards | None = None
    #: Whether another program saves the items by PynamoDB; a string is the path of its class.
    shared: bool | str = False


class StoredAttribute(Protocol):
    """An attribute as fields and lookups see it; ``Attribute`` makes fields, so that its module is above theirs."""

    rounds: ClassVar[bool]
    attr_name: str
    attr_type: str
    canonical: bool
    field: Any
    key_kind: str | None

    def __set_name__(self, owner: type, name: str) -> None: ...
    def check_storable(self, value: object) -> None: ...
    def check_whole(self, value: object) -> None: ...
    def copy(self) -> Self: ...
    def from_attribute_value(self, stored: dict[str, object]) -> object: ...
    def from_text(self, text: str) -> object: ...
    def is_secret(self) -> bool: ...
    def lookup_value(self, value: object) -> object: ...
    def prepare(self, value: object) -> Any: ...
    def to_text(self, value: object) -> str: ...


if TYPE_CHECKING:

    class DynamoModel(models.Model):  # noqa: DJ008 - abstract
        """A model of this app, with the members that lower folders use; ``orm/model`` defines them."""

        _options: ClassVar[Options]
        _identity: ClassVar[tuple[str, ...]]
        _unique_key: ClassVar[tuple[str, ...]]
        _has_from_db: ClassVar[bool]
        derived_from: ClassVar[tuple[str, ...]]
        derived_by: ClassVar[str]
        derived_exclusive: ClassVar[bool]
        unique_members: ClassVar[Mapping[str, str]]
        _stored: Any
        _prefetched_objects_cache: dict[str, Any]

        @classmethod
        def _settable(cls) -> set[str]: ...
        @classmethod
        def _update_names(cls, update_fields: Iterable[str] | None) -> frozenset[str] | None: ...
        def derived_objects(self) -> Iterable[DynamoModel]: ...
        def is_derived(self) -> bool: ...
        def hard_delete(self, *, condition: ConditionArgument = None) -> tuple[int, dict[str, int]]: ...
        def _forget(self, name: str) -> None: ...
        async def _follow_stored(self, kept: Set[str]) -> bool: ...

        # Conditions, changes and blocks belong to folders above this one.
        async def _written_if(
            self, condition: Any, update_fields: Iterable[str], changes: Any, pending: Any
        ) -> bool: ...
        async def _deleted(self, terms: Any, pending: Any, origin: object = None) -> tuple[int, dict[str, int]]: ...
        async def _hard_deleted(
            self, terms: Any, pending: Any, origin: object = None
        ) -> tuple[int, dict[str, int]]: ...
else:
    DynamoModel = models.Model

T = TypeVar("T")
#: The model of a queryset, a manager, a page.
M = TypeVar("M", bound=DynamoModel, covariant=True)
#: Values by name for a created or changed object; Django calls those that are callable.
Defaults: TypeAlias = "Mapping[str, object] | None"
#: A field of Django's, whatever it takes and gives.
ModelField: TypeAlias = "Field[Any, Any]"
#: The input of a form, as Django's widgets receive it: strings, or a test's values; and files.
SentData: TypeAlias = "Mapping[str, Any]"
SentFiles: TypeAlias = "MultiValueDict[str, UploadedFile[Any]]"


# Whose the methods of a class are: this app's and the libraries', or a project's.
#
# A project's own may do anything, so that nothing of ours may take its place in silence.

#: Where methods are that a coroutine of ours does the same as. Other faces of this app, such as ``auth``, add to them.
_PLAIN = ("dynamo_single.orm.", "django.", "pynamodb.")
#: Used if no code is a project's own.
_OURS = ("dynamo_single.", "django.", "pynamodb.")


def are_plain(cls: Any, names: tuple[str, ...]) -> bool:
    """Return whether all methods with some names, if present, belong to the mapping or the libraries.

    Decided once for a class, and again if a method was replaced, as tests do.
    """
    return _are_plain(cls, names, tuple([getattr(cls, name, None) for name in names]))


@lru_cache(maxsize=1024)
def _are_plain(cls: Any, names: tuple[str, ...], methods: tuple[object, ...]) -> bool:
    return all(owner is None or f"{owner.__module__}.".startswith(_PLAIN) for owner in owners_of(cls, names))


def all_plain(cls: Any, names: tuple[str, ...]) -> bool:
    """Return whether methods with some names, which may call each other by ``super()``, avoid a project's code."""
    return _all_plain(cls, names, tuple([getattr(cls, name, None) for name in names]))


async def awaited(method: Callable[..., T], work: Callable[..., Coroutine[Any, Any, T]], *given: object) -> T:
    """Return the coroutine for a method; a method of a project's class runs in a thread.

    ``method`` is bound to its object; ``functools.partial()`` gives it arguments by name.
    """
    called: Any = getattr(method, "func", method)
    is_ours = all_plain(type(called.__self__), (called.__name__,))
    return await (work(*given) if is_ours else sync_to_async(method)(*given))


@lru_cache(maxsize=1024)
def _all_plain(cls: Any, names: tuple[str, ...], methods: tuple[object, ...]) -> bool:
    owners = (each for each in cls.__mro__ if not vars(each).keys().isdisjoint(names))
    return all(f"{each.__module__}.".startswith(_OURS) for each in owners)


def owners_of(cls: type[object], names: Iterable[str]) -> Iterator[type[object] | None]:
    """Return the class that defines each of some methods of a class; ``None`` for a missing method."""
    return (next((each for each in cls.__mro__ if name in vars(each)), None) for name in names)
