"""E036: attributes declared in a class of maps, as in PynamoDB. Values would not be validated against them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from django.core.checks import Error
from pynamodb.attributes import Attribute as PynamoDBAttribute

from dynamo_single.orm.schema import registry
from dynamo_single.orm.schema.attributes.documents import Elements, Shape
from dynamo_single.orm.schema.types import DynamoModel


def check_typed_maps(model: type[DynamoModel]) -> Iterator[Error]:
    """Yield E036 for each class of maps with declared attributes, including those inside lists and schemas."""
    for name, attribute in registry.attributes_of(model).items():
        for said, each, instead in _nested_members(name, attribute):
            kind = type(each)
            declared = [*_declared_in(kind)]
            if declared:
                named = ", ".join(declared)
                yield Error(
                    f"{said} is a {kind.__name__}, which declares {named}: nothing would be held to that.",
                    hint=f"Let {kind.__name__} be a plain class, without a base, and name it: "
                    f"{said.rpartition('.')[2]} = models.{instead}(schema={kind.__name__}).",
                    obj=model,
                    id="dynamo_single.E036",
                )


def _nested_members(said: str, member: Any, instead: str = "MapAttribute") -> Iterator[tuple[str, Any, str]]:
    """Yield a member and its nested members, each with its path and the attribute that accepts a schema."""
    if isinstance(member, Shape):
        for name, each in member.members.items():
            yield from _nested_members(f"{said}.{name}", each)
        return
    yield said, member, instead
    shape = getattr(member, "shape", None)
    if isinstance(shape, Shape):
        yield from _nested_members(said, shape)
    elif isinstance(shape, Elements):
        yield from _nested_members(said, shape.member, "ListAttribute")


def _declared_in(kind: type) -> Iterator[str]:
    for each in kind.__mro__:
        yield from (name for name, value in vars(each).items() if isinstance(value, PynamoDBAttribute))
