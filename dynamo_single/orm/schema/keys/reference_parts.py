"""Single values of an identity in keys: ``{project.tenant}`` of a reference that holds the ``pk`` of a project.

An item contains the complete ``pk`` of a referenced object, but no other part of it. An identity of several values is
one string, from which a member is extracted. This module does not depend on models.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from msgspec import Struct

from dynamo_single.exceptions import InvalidValue
from dynamo_single.orm.schema.keys.codecs import Codec, codec_for
from dynamo_single.orm.schema.keys.identity import NoIdentity, split_identity
from dynamo_single.orm.schema.keys.template import KeyPart, refusal
from dynamo_single.orm.schema.keys.values import shown


class Member(Struct, frozen=True):
    """One value of an identity: its ``names`` in a path, its encoding in keys, and the function that ``read``s its
    string.

    If it is itself the identity of another object, ``members`` are the members of that identity.
    """

    names: tuple[str, ...]
    kind: str | None
    read: Callable[[str], Any]
    members: tuple[Member, ...] = ()

    @property
    def size(self) -> int:
        """How many single values it has, down to the last."""
        return size(self.members)


def size(members: Sequence[Member]) -> int:
    """Return the number of single values in some members, at any depth; a member without members is one."""
    return sum(each.size for each in members) or 1


class _Step(Struct, frozen=True):
    """A step into an identity of ``count`` values: the value at ``position``, which ``read`` converts from its
    string."""

    position: int
    count: int
    read: Callable[[str], Any]

    def take(self, value: object) -> Any:
        """Return the member of an identity; raise ``NoIdentity`` for an invalid one."""
        if not isinstance(value, str):
            raise NoIdentity(f"{shown(value)} is not an identity of {self.count} values.")
        try:
            return self.read(split_identity(value, self.count)[self.position])
        except InvalidValue as error:
            raise NoIdentity(str(error)) from error


class _Place(Struct, frozen=True):
    """The target of a path: its kind, the steps, and the positions of its single values in the whole identity."""

    kind: str | None
    steps: tuple[_Step, ...]
    leaves: frozenset[int]


def codec_of_member(part: KeyPart, label: str, members: Sequence[Member], source: str) -> Codec:
    """Return the encoder for the part of an identity at a template's path; the identity belongs to the model ``label``.

    The part alone determines neither the identity nor its order. Raises ``ConfigurationError`` for an unknown path.
    """
    place = _follow(part, label, members, part.path, 0, source)
    if place.kind is None:
        raise refusal(source, f"no key can hold what {{{part.shown}}} is")
    codec = codec_for(place.kind, part.spec)
    if not place.steps:
        return codec  # the only value of an identity is the identity
    return replace(
        codec,
        spec="",
        write=partial(_write, codec, place.steps),
        ordered=False,
        prefixable=False,
        exact=False,
        member=tuple(step.position for step in place.steps),
        leaves=place.leaves if codec.exact else frozenset(),
        of=size(members),
    )


def _follow(
    part: KeyPart, label: str, members: Sequence[Member], path: Sequence[str], first: int, source: str
) -> _Place:
    name, *rest = path
    found = next(((n, each) for n, each in enumerate(members) if name in each.names), None)
    if found is None:
        made_of = ", ".join(each.names[0] for each in members) or "nothing that a key could name"
        raise refusal(
            source,
            f"{{{part.shown}}} leads to {name!r}, but an item contains only the pk of the object that it "
            f"refers to. The pk of {label} is made of {made_of}. For another value, declare a CopiedAttribute "
            "and use that",
        )
    position, member = found
    first += sum(each.size for each in members[:position])
    steps = () if len(members) == 1 else (_Step(position, len(members), member.read),)
    if not rest:
        return _Place(member.kind, steps, frozenset(range(first, first + member.size)))
    inner = _follow(part, f"{label}.{name}", member.members, rest, first, source)
    return _Place(inner.kind, (*steps, *inner.steps), inner.leaves)


def _write(codec: Codec, steps: tuple[_Step, ...], value: object) -> str:
    for step in steps:
        value = step.take(value)
    return codec.write(value)
