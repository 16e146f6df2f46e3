"""What an attribute has in common that follows from another one of the same object: it is computed, and never set.

This module must not know how or when items are written.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from dynamo_single.exceptions import InvalidValue, NotSupported
from dynamo_single.orm.schema.attributes.base import Attribute
from dynamo_single.orm.schema.encoding.secrets import Path


class FollowingAttribute(Attribute[Any, Any]):
    """Mixed into attributes whose value ``current()`` works out of the attribute ``source``, on every write path."""

    computed = True
    #: The attribute that it follows.
    source: str
    #: What messages say of how it follows.
    made = "computed"

    def origins(self) -> Iterator[tuple[Attribute, Path]]:
        """Yield the attribute that it follows."""
        source = getattr(self.field.model, self.source, None)
        if isinstance(source, Attribute):
            yield source, ()

    def make_field(self) -> Any:
        """A field that fixtures leave out, as they hold the source."""
        field: Any = super().make_field()
        field.serialize = False
        return field

    def current(self, values: Mapping[str, object]) -> Any:
        """What the source's value gives now; ``None`` where it gives nothing."""
        raise NotImplementedError

    def __get__(self, instance: object, owner: object) -> Any:
        if instance is None:
            return self
        held = instance.__dict__
        if self.source not in held and self.name in held:
            return held[self.name]  # read without its source
        return self.current({self.source: getattr(instance, self.source)})

    def __set__(self, instance: object, value: object) -> None:
        try:
            if value == getattr(instance, self.name):
                return  # Django's validation sets every value that it has looked at
        except InvalidValue:
            pass  # the source holds another kind of value, which its own write refuses
        raise NotSupported(f"{self.name} is {self.made} from {self.origin} and cannot be set: set {self.origin}.")
