"""What checkers are told that a model of ours is, below the folder that makes one.

At run time the name is Django's own class, of which every model of ours is one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from django.db.models import Field

if TYPE_CHECKING:
    from django.core.files.uploadedfile import UploadedFile
    from django.utils.datastructures import MultiValueDict

    from dynamo_single.orm.model.model import Model as DynamoModel
else:
    from django.db.models import Model as DynamoModel

__all__ = ["Defaults", "DynamoModel", "M", "ModelField", "SentData", "SentFiles"]

#: The model of a queryset, a manager, a page.
M = TypeVar("M", bound=DynamoModel, covariant=True)
#: Values by name for what is made or changed on the way; Django calls those that can be called.
Defaults: TypeAlias = "Mapping[str, object] | None"
#: A field of Django's, whatever it takes and gives.
ModelField: TypeAlias = "Field[Any, Any]"
#: What a form is sent, as Django's widgets are given it: texts, or what a test gives; and files.
SentData: TypeAlias = "Mapping[str, Any]"
SentFiles: TypeAlias = "MultiValueDict[str, UploadedFile[Any]]"


# Whose the methods of a class are: this app's and the libraries', or a project's.
#
# A project's own may do anything, so that nothing of ours may take its place in silence. This module knows classes
# only.

#: Where methods are that a coroutine of ours does the same as. Other faces of this app, such as ``auth``, add to them.
_PLAIN = ("dynamo_single.orm.", "django.", "pynamodb.")
#: Where nothing is a project's own.
_OURS = ("dynamo_single.", "django.", "pynamodb.")


def are_plain(cls: Any, names: tuple[str, ...]) -> bool:
    """Whether all methods of some names are the mapping's or the libraries' own, as far as a class has them.

    Decided once for a class, and again if a method was replaced, as tests do.
    """
    return _are_plain(cls, names, tuple([getattr(cls, name, None) for name in names]))


@lru_cache(maxsize=1024)
def _are_plain(cls: Any, names: tuple[str, ...], methods: tuple[object, ...]) -> bool:
    return all(owner is None or f"{owner.__module__}.".startswith(_PLAIN) for owner in owners_of(cls, names))


def all_plain(cls: Any, names: tuple[str, ...]) -> bool:
    """Whether nothing of a project's is called by methods of some names, which may call each other by ``super()``."""
    return _all_plain(cls, names, tuple([getattr(cls, name, None) for name in names]))


@lru_cache(maxsize=1024)
def _all_plain(cls: Any, names: tuple[str, ...], methods: tuple[object, ...]) -> bool:
    owners = (each for each in cls.__mro__ if not vars(each).keys().isdisjoint(names))
    return all(f"{each.__module__}.".startswith(_OURS) for each in owners)


def owners_of(cls: type[object], names: Iterable[str]) -> Iterator[type[object] | None]:
    """The class that a class has each of some methods from; ``None`` for one that it does not have."""
    return (next((each for each in cls.__mro__ if name in vars(each)), None) for name in names)
