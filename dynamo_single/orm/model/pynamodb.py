"""The methods that PynamoDB calls on a model, and rejections of those that would leave keys or items behind.

A mixin of ``Model``. It must not know Django's side of a model.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial, reduce
from operator import and_
from typing import TYPE_CHECKING, Any, ClassVar, Self, overload

from django.db.models import CheckConstraint
from pynamodb.attributes import Attribute as PynamoDBAttribute
from pynamodb.attributes import DiscriminatorAttribute

from dynamo_single import clock
from dynamo_single.exceptions import NotSupported
from dynamo_single.lazy_modules import LazyModule
from dynamo_single.orm.items import decode, encode
from dynamo_single.orm.items.refresh import complete
from dynamo_single.orm.model.pynamodb_model import BatchWrite
from dynamo_single.orm.requests import atomic_block
from dynamo_single.orm.schema import bindings, registry
from dynamo_single.orm.schema.references import (
    cascading_children,
    checked_references,
    protecting_references,
    resetting_references,
)
from dynamo_single.orm.schema.types import DynamoModel, Options
from dynamo_single.table import names
from dynamo_single.table.flow import run
from dynamo_single.table.pynamodb import PynamodbTable, RenamingPynamodbTable
from dynamo_single.table.request import Item, NewItem
from dynamo_single.table.table import get_table

if TYPE_CHECKING:
    from pynamodb.expressions.condition import Condition

    from dynamo_single.orm.effects import all_effects, compose
    from dynamo_single.orm.items import form as item_forms
    from dynamo_single.orm.model.pynamodb_model import PynamoDBModel as _Base
else:
    all_effects = LazyModule("dynamo_single.orm.effects.all_effects")
    compose = LazyModule("dynamo_single.orm.effects.compose")
    item_forms = LazyModule("dynamo_single.orm.items.form")
    # PynamoDB's class comes after this one among a model's bases.
    _Base = object


#: The place of ``index_name`` among the arguments of PynamoDB's ``query`` and ``count`` after the conditions.
_INDEX_NAME = 1


def _is_hidden(alias: str, item: Item) -> bool:
    """Return whether an item is in the trash or has expired; PynamoDB's readers omit such items."""
    model = registry.model_of_type(alias, item.get(names.ITEM_TYPE, {}).get("S", ""))
    return model is not None and not decode.is_live(model, item)


def _names_in_use(model: type[DynamoModel]) -> dict[str, str]:
    """The physical names that are read during a rename, by the others."""
    rollout = bindings.rollout_of(model)
    return {} if rollout is None else {twin.other: twin.used for twin in rollout.twins}


class KeyValue(PynamoDBAttribute[str]):
    """The partition or the sort key: computed from the instance's values, never set."""

    attr_type = "S"

    @overload
    def __get__(self, instance: None, owner: object) -> Self: ...
    @overload
    def __get__(self, instance: object, owner: object) -> str: ...
    def __get__(self, instance: Any, owner: object) -> Any:
        return self if instance is None else encode.primary_key(instance)[self.attr_name]

    def __set__(self, instance: object, value: object) -> None:
        raise NotSupported(f"{self.attr_name} is computed from the attributes that the key template names: set those.")


class ItemType(DiscriminatorAttribute):
    """The discriminator: which model an item belongs to. It is the class's, so no instance sets it."""

    def register_class(self, cls: type, discriminator: object) -> None:
        """Remember the class's item type."""
        self._class_map[cls] = discriminator

    def __get__(self, instance: object, owner: object) -> Any:
        return self if instance is None else type(instance)

    def __set__(self, instance: object, value: object) -> None:
        raise NotSupported("An item's type is its model and cannot be set.")


class _Batch(BatchWrite[Any]):
    """PynamoDB's batch writer, for deletions without cascades only."""

    def delete(self, del_item: Any) -> None:
        """Add an object to the deletions."""
        del_item._check_plain_deletion()
        super().delete(del_item)


class PynamoDBHooks(_Base):
    """PynamoDB's hooks and writers, on this app's items and its one connection."""

    _options: ClassVar[Options]
    #: The attributes that ``derived_objects()`` makes its objects of.
    derived_from: ClassVar[tuple[str, ...]] = ()
    #: The reference to the source of this object, on models created by ``derived_objects()``; ``is_derived()`` returns
    #: ``False`` for other objects.
    derived_by: ClassVar[str] = ""
    #: Sets of strings whose members are unique like the values of an attribute: the set's name, and the attribute's.
    unique_members: ClassVar[Mapping[str, str]] = {}
    #: For a model with ``derived_by``: whether an item belongs to one object only, and another object cannot overwrite
    #: it.
    derived_exclusive: ClassVar[bool] = False

    def update(self, *args: object, **kwargs: object) -> Any:
        """Reject PynamoDB's ``update(actions)``, which would leave keys behind that depend on its changes."""
        raise NotSupported(
            f"{type(self).__name__}.update(actions) is a PynamoDB method and does not maintain keys that depend "
            "on an attribute. Assign the attributes and call save(), or use the queryset's update()."
        )

    @classmethod
    def _refuse_table_change(cls, *args: object, **kwargs: object) -> Any:
        raise NotSupported(
            f"The table belongs to all models, so {cls.__name__} neither makes nor deletes it: manage.py dynamo_setup "
            "sets it up."
        )

    create_table = delete_table = update_ttl = _refuse_table_change

    @classmethod
    def _check_plain_write(cls) -> None:
        """PynamoDB's writers send one item: what has to change with it would be left behind.

        Reads the state as ``knowledge.ask()``, because PynamoDB's writers do not check how items are written now.
        """
        model: Any = cls  # this is a part of it
        run(compose.taken(model))
        kept = sorted(item_forms.form_of(model).immutable)
        if kept:
            raise NotSupported(
                f"PynamoDB's writers put items over others, whatever {', '.join(kept)} of "
                f"{registry.layout_of(model).label} was created with, and that is immutable. Use save() and delete()."
            )
        if counted := [children.field for _, children in checked_references(model)]:
            named = ", ".join(f"{field.model._meta.label}.{field.name}" for field in counted)
            raise NotSupported(
                f"PynamoDB's writers overwrite items, but {registry.layout_of(model).label} items count the "
                f"objects that refer to them by checked references: {named}. Use save() and delete()."
            )
        if any(isinstance(each, CheckConstraint) for each in model._meta.constraints):
            raise NotSupported(
                f"PynamoDB's writers do not check the CheckConstraint of {registry.layout_of(model).label}. Use save() "
                "and delete()."
            )
        follows = all_effects.linked_attributes(model)
        if follows:
            raise NotSupported(
                f"PynamoDB's writers do not keep what depends on {', '.join(follows)} of "
                f"{registry.layout_of(model).label}: unique values, copies, counters, versions or items of their own. "
                "Use save() and delete()."
            )

    @classmethod
    def _check_plain_deletion(cls) -> None:
        """Reject PynamoDB's deletion of one item if references to it have an ``on_delete``."""
        cls._check_plain_write()
        model: Any = cls
        followed = (*cascading_children(model), *protecting_references(model), *resetting_references(model))
        if followed:
            named = ", ".join(dict.fromkeys(f"{each.model._meta.label}.{each.field.name}" for each in followed))
            raise NotSupported(
                f"PynamoDB's writers delete one item, and a deletion of {registry.layout_of(model).label} has to "
                f"follow the references to it: {named}. Use delete() or hard_delete()."
            )

    @classmethod
    def batch_write(cls, auto_commit: bool = True) -> BatchWrite[Self]:
        """Return PynamoDB's batch writer, which overwrites; reject it if other items depend on the model's.

        Its ``delete()`` is refused where references to the model have an ``on_delete``, too.
        """
        cls._check_plain_write()
        return _Batch(cls, auto_commit)

    def get_save_kwargs_from_instance(self, *args: object, **kwargs: object) -> Any:
        """Return the action for PynamoDB's ``TransactWrite``; reject it if other items depend on this one."""
        self._check_plain_write()
        return super().get_save_kwargs_from_instance(*args, **kwargs)  # type: ignore[misc]  # not in the stand-in

    def get_delete_kwargs_from_instance(self, *args: object, **kwargs: object) -> Any:
        """Return the action for PynamoDB's ``TransactWrite``; reject it if other items depend on this one or its
        effects."""
        self._check_plain_deletion()
        return super().get_delete_kwargs_from_instance(*args, **kwargs)  # type: ignore[misc]  # not in the stand-in

    def get_update_kwargs_from_instance(self, *args: object, **kwargs: object) -> Any:
        """Refused as ``update`` is."""
        return self.update()

    def _container_deserialize(self, attribute_values: NewItem) -> None:
        obj: Any = self
        decode.update_from(obj, decode.instance(type(self), attribute_values), ())
        obj._state.adding = False

    def _container_serialize(self, null_check: bool = True) -> NewItem:
        complete(self)
        return item_forms.item_of(self)

    @classmethod
    def _instantiate(cls, attribute_values: NewItem) -> Self:
        # PynamoDB's hook: whatever it reads becomes an object the same way.
        result: Self = decode.instance(cls, attribute_values)
        return result

    if not TYPE_CHECKING:  # their arguments are PynamoDB's

        @classmethod
        def query(
            cls,
            hash_key: object,
            range_key_condition: Condition | None = None,
            filter_condition: Condition | None = None,
            *args: object,
            **options: object,
        ) -> Any:
            """PynamoDB's ``query`` of live objects; an ``index_name`` that no index class has is refused."""
            index = args[_INDEX_NAME] if len(args) > _INDEX_NAME else options.get("index_name")
            cls._refuse_index("query", index)
            return super().query(hash_key, range_key_condition, cls._live(filter_condition), *args, **options)

        @classmethod
        def scan(cls, filter_condition: Condition | None = None, *args: object, **options: object) -> Any:
            """PynamoDB's ``scan`` of live objects."""
            return super().scan(cls._live(filter_condition), *args, **options)

        @classmethod
        def count(
            cls,
            hash_key: object = None,
            range_key_condition: Condition | None = None,
            filter_condition: Condition | None = None,
            *args: object,
            **options: Any,
        ) -> int:
            """PynamoDB's ``count`` of live objects under a key; an ``index_name`` is refused as by ``query()``."""
            if hash_key is None:
                raise NotSupported(
                    f"{cls.__name__}.count() without a hash key is the number of all items of the table, which all "
                    f"models share: {cls.__name__}.objects.count() counts this model's."
                )
            index = args[_INDEX_NAME] if len(args) > _INDEX_NAME else options.get("index_name")
            cls._refuse_index("count", index)
            return super().count(hash_key, range_key_condition, cls._live(filter_condition), *args, **options)

        @classmethod
        def get_operation_kwargs_from_class(
            cls, hash_key: object, range_key: object = None, condition: Condition | None = None
        ) -> Any:
            """For PynamoDB's transactions; a condition on another object holds of live ones only."""
            asked = condition if condition is None else cls._live(condition)
            return super().get_operation_kwargs_from_class(hash_key, range_key, asked)

    @classmethod
    def _live(cls, condition: Condition | None) -> Condition | None:
        """A condition of PynamoDB, and that an object is neither in the trash nor past its time to live."""
        model: Any = cls  # this is a part of it
        attributes, expires = registry.attributes_of(model), registry.layout_of(model).expires
        found = [] if condition is None else [condition]
        if registry.DELETED_AT in attributes:
            found.append(attributes[registry.DELETED_AT].does_not_exist())
        if expires is not None:
            found.append(attributes[expires].does_not_exist() | (attributes[expires] > clock.now()))
        return reduce(and_, found) if found else None

    @classmethod
    def _refuse_index(cls, method: str, index: object) -> None:
        indexes: Any = getattr(cls, "_indexes", {})
        if index is not None and index not in indexes:
            asked = f"{cls.__name__}.objects.using_index({index!r}).filter(...)"
            raise NotSupported(
                f"{cls.__name__}.{method}(index_name={index!r}) takes an index that is declared as a class of "
                f"PynamoDB, and keys are declared in class Keys here: {asked}."
            )

    @classmethod
    def _get_connection(cls) -> PynamodbTable:
        if atomic_block.current() is not None:
            raise NotSupported(
                f"PynamoDB's own calls, here on {cls.__name__}, ignore atomic() blocks: they would read the "
                "state before the block, and write immediately. Use the querysets, save() and delete(), or "
                "call it outside the block."
            )
        model: Any = cls  # this is a part of it
        table = get_table(cls._options.alias)
        connection = table.pynamodb
        if bindings.rollout_of(model) is not None:
            # Its attributes have their declared names, and each request has the names of its time.
            connection = RenamingPynamodbTable(table.settings, table.call, partial(_names_in_use, model))
        connection.hide(partial(_is_hidden, cls._options.alias))
        return connection

    def refresh(self, consistent_read: bool = True) -> None:
        """PynamoDB's name for ``refresh_from_db()``."""
        obj: Any = self
        obj.refresh_from_db()
