"""A model's data beyond Django's ``_meta``: its keys and the storage of its attributes.

A declared layout is made once per model class; ``bindings`` makes others of it while items are being changed. It must
not know requests or the table.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import force_setattr

from dynamo_single.orm.schema.keys.reach import Reach
from dynamo_single.orm.schema.keys.secret_values import Path
from dynamo_single.orm.schema.keys.shards import split_partition
from dynamo_single.orm.schema.keys.template import IndexKey, Key, Template
from dynamo_single.table.names import key_names
from dynamo_single.table.request import AttributeValue

if TYPE_CHECKING:
    from dynamo_single.orm.schema.keys.shards import Sharding


class IndexCondition(Struct, frozen=True):
    """The condition that selects the live items of an index.

    ``text`` contains the condition in stored values. It contains ``"0"``, ``"1"``... instead of the attributes' names,
    so a rename does not change it. ``orm/conditions/lowering`` reads it.
    """

    text: str
    attributes: tuple[str, ...]

    def __call__(self) -> IndexCondition:
        """Return itself, for a key with a known condition."""
        return self


class AccessKey(Struct, frozen=True):
    """A partition key and a sort key template, on the table itself (``index is None``) or on one of its indexes."""

    name: str
    index: str | None
    partition: Template
    sort: Template
    #: The attributes that the two templates name, each once, in order: worked out of them, whatever is given.
    variables: tuple[str, ...] = ()
    #: The attributes that the key requires. Attributes with a position for missing values are not required.
    required_variables: tuple[str, ...] = ()
    #: The division of each partition into shards; ``None`` for an unsharded key.
    sharding: Sharding | None = None
    #: A function that returns the condition of the index's items; a declared one is read once the model is complete.
    make_condition: Callable[[], IndexCondition] | None = None

    def __post_init__(self) -> None:
        parts = (*self.partition.parts, *self.sort.parts)
        force_setattr(self, "variables", tuple(dict.fromkeys(part.name for part in parts)))
        force_setattr(self, "required_variables", tuple(dict.fromkeys(part.name for part in parts if not part.place)))

    @classmethod
    def of(
        cls,
        name: str,
        declared: Key | IndexKey,
        bound: Callable[[str, str], Template],
        sharding: Sharding | None,
        make_condition: Callable[[], IndexCondition] | None = None,
    ) -> AccessKey:
        """Return the key of a declaration; ``bound`` parses a template and binds it to the model's attributes.

        It gets the template and the app's own name of the key attribute.
        """
        index = declared.index if isinstance(declared, IndexKey) else None
        sharding = sharding if declared.sharded else None
        partition, sort = map(bound, (declared.partition, declared.sort), key_names(index))
        return cls(name, index, partition, sort, sharding=sharding, make_condition=make_condition)

    @property
    def condition(self) -> IndexCondition | None:
        """The condition of the live items in the index, if not all; raises ``ConfigurationError`` for an invalid
        one."""
        return None if self.make_condition is None else self.make_condition()

    @property
    def named_attributes(self) -> tuple[str, ...]:
        """The attributes that the templates and the condition name, each once."""
        condition = self.condition
        return self.variables if condition is None else tuple(dict.fromkeys((*self.variables, *condition.attributes)))

    @property
    def source_attributes(self) -> tuple[str, ...]:
        """The attributes that determine a key: the attributes it names, and the attributes that determine the shard."""
        sharding = self.sharding
        return self.named_attributes if sharding is None else (*self.named_attributes, sharding.attribute, sharding.at)

    def has_partition(self, text: str) -> bool:
        """Return whether the key can have this partition, in some shard."""
        return self.partition.matches(text if self.sharding is None else split_partition(text)[0])


class AttributeInfo(Struct, frozen=True):
    """The stored form of an attribute.

    ``required`` means that each stored item has a non-empty value, which makes a key with the attribute complete.
    """

    name: str
    stored: str
    type: str
    required: bool
    serialize: Callable[[Any], AttributeValue]
    #: How its values are written in a key; other kinds than text are stored as S too, but are never empty.
    kind: str = "text"
    #: Whether the value at a path inside the value is a secret; without it the names decide.
    hides: Callable[[Path], bool] | None = None

    @property
    def is_text(self) -> bool:
        """Whether the value is text, which can be empty."""
        return self.type == "S" and self.kind == "text"


class Twin(Struct, frozen=True):
    """Another physical name of an attribute, while it is being renamed: ``used`` is what is read.

    ``is_before`` marks the old name. ``is_kept`` means that writes to one name also go to the other, which is otherwise
    removed.
    """

    used: str
    other: str
    is_before: bool = False
    is_kept: bool = True


class ModelLayout(Struct, frozen=True, eq=False):
    """One model's keys and attributes, by Python name."""

    label: str
    item_type: str
    alias: str
    attributes: Mapping[str, AttributeInfo]
    primary: AccessKey
    indexes: tuple[AccessKey, ...] = ()
    soft_delete: bool = False
    trash: AccessKey | None = None
    expires: str | None = None
    neighbours: Callable[[], Iterable[ModelLayout]] = tuple
    #: The attributes that are being renamed: see ``bindings``.
    twins: tuple[Twin, ...] = ()
    #: The division of the sharded keys; ``None`` for a model without any.
    sharding: Sharding | None = None

    #: The limits of each key of a table with a shape of its own, by its index.
    reaches: Mapping[str | None, Reach] = MappingProxyType({})

    #: The declared layout, if it differs from this layout.
    declared: ModelLayout | None = None

    # The other fields are derived from the fields above; arguments for them are ignored.
    #: The attributes of ``pk``, in the order of the primary key.
    identity: tuple[str, ...] = ()
    #: The keys on indexes, for live items and for the trash.
    index_keys: tuple[AccessKey, ...] = ()
    #: Every key that live items are read by, the table's first.
    keys: tuple[AccessKey, ...] = ()
    #: The layout as it is declared, of which there is one for each model class.
    origin: ModelLayout = None  # type: ignore[assignment]  # set below, as it may be this one

    def __post_init__(self) -> None:
        force_setattr(self, "identity", self.primary.variables)
        force_setattr(self, "index_keys", self.indexes if self.trash is None else (*self.indexes, self.trash))
        force_setattr(self, "keys", (self.primary, *self.indexes))
        force_setattr(self, "origin", self.declared or self)

    def __repr__(self) -> str:
        return f"<ModelLayout of {self.label}>"
