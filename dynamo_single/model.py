"""The base classes of models: what an instance is, and which steps its methods take.

Reading, writing and soft delete are done by the modules of those names; this one only ties them to the methods that
Django and PynamoDB call.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, ClassVar, Self, overload

from django.db import models
from django.db.models.base import ModelBase, ModelState
from django.db.models.signals import post_init, post_save, pre_init, pre_save
from pynamodb.attributes import Attribute as PynamoDBAttribute
from pynamodb.attributes import DiscriminatorAttribute

from dynamo_single import hydration, items, layout, soft_delete, uniqueness, writes
from dynamo_single.attributes import TimestampAttribute
from dynamo_single.exceptions import NotSupported
from dynamo_single.manager import Manager, SoftDeleteManager
from dynamo_single.modeltype import ModelMeta, Options
from dynamo_single.pynamodb_model import PynamoDBModel
from dynamo_single.table import get_table

if TYPE_CHECKING:
    from dynamo_single.pynamodb_model import BatchWrite


class _Abstract:
    # One object for all of them: a model that inherits from two has one Meta to a checker.
    abstract = True


class _KeyValue(PynamoDBAttribute[str]):
    """The partition or the sort key: computed from the instance's values, never set."""

    attr_type = "S"

    @overload
    def __get__(self, instance: None, owner: Any) -> Self: ...
    @overload
    def __get__(self, instance: Any, owner: Any) -> str: ...
    def __get__(self, instance: Any, owner: Any) -> Any:
        return self if instance is None else items.primary_key(instance)[self.attr_name]

    def __set__(self, instance: Any, value: Any) -> None:
        raise NotSupported(f"{self.attr_name} is computed from the attributes that the key template names: set those.")


class _ItemType(DiscriminatorAttribute):
    """The discriminator: which model an item belongs to. It is the class's, so no instance sets it."""

    def register_class(self, cls: type, discriminator: Any) -> None:
        """Remember the class's item type."""
        self._class_map[cls] = discriminator

    def __get__(self, instance: Any, owner: Any) -> Any:
        return self if instance is None else type(instance)

    def __set__(self, instance: Any, value: Any) -> None:
        raise NotSupported("An item's type is its model and cannot be set.")


class Model(PynamoDBModel, models.Model, metaclass=ModelMeta):  # noqa: DJ008 - abstract
    """A model whose objects are items of the one table.

    Declare attributes, and the keys in ``class Keys``. Everything of Django's model API that DynamoDB can answer works;
    PynamoDB's class methods (``query``, ``scan``, ``get``, ``batch_get``) and conditions work too and raise PynamoDB's
    own errors.
    """

    partition_key = _KeyValue(hash_key=True, attr_name=layout.PARTITION_KEY)
    sort_key = _KeyValue(range_key=True, attr_name=layout.SORT_KEY)
    item_type = _ItemType(attr_name=layout.ITEM_TYPE)

    objects: ClassVar[Manager[Self]] = Manager()

    #: The attributes that ``derived_objects()`` makes its objects of.
    derived_from: ClassVar[tuple[str, ...]] = ()
    #: The item as it was last read or written; ``None`` for an object that is not stored yet.
    _stored: dict[str, dict[str, Any]] | None
    _options: ClassVar[Options]
    _prefetched_objects_cache: dict[str, Any]

    Meta = _Abstract

    def __init__(self, *args: Any, _user_instantiated: bool = True, **kwargs: Any) -> None:
        if args:
            raise TypeError(
                f"{type(self).__name__}() takes keyword arguments only: PynamoDB and Django give positional ones "
                "different meanings."
            )
        cls = type(self)
        if cls._meta.abstract:
            raise TypeError("Abstract models cannot be instantiated.")
        pre_init.send(sender=cls, args=args, kwargs=kwargs)
        self._state = ModelState()
        self._stored = None
        self.attribute_values = {}
        for field in self._meta.concrete_fields:
            if field.attname not in kwargs and field.name not in kwargs and hasattr(field, "attribute"):
                self.attribute_values[field.attname] = field.get_default()
        for name, value in kwargs.items():
            if name not in self._settable():
                raise TypeError(f"{cls.__name__}() got an unexpected keyword argument {name!r}.")
            setattr(self, name, value)
        post_init.send(sender=cls, instance=self)

    __repr__ = models.Model.__repr__

    def __getstate__(self) -> dict[str, Any]:
        """Copies and pickles own their values; Django's would share the one dict."""
        state: dict[str, Any] = super().__getstate__()
        state["attribute_values"] = copy.copy(self.attribute_values)
        return state

    # writing

    def save(
        self,
        *,
        force_insert: bool | tuple[ModelBase, ...] = False,
        force_update: bool = False,
        using: str | None = None,
        update_fields: Iterable[str] | None = None,
    ) -> None:
        """Create or update the item.

        A new object is created under the condition that no item has its key (``AlreadyExists``); a loaded one sends
        only what changed, and nothing if nothing did. One request; one transaction if a unique attribute is involved.
        """
        if force_insert and (force_update or update_fields):
            raise ValueError("Cannot force both insert and updating in model saving.")
        self._prepare_related_fields_for_save(operation_name="save")  # type: ignore[attr-defined]  # private to Django
        names = self._update_names(update_fields)
        if names is not None and not names:
            return
        self.save_base(using=using, force_insert=bool(force_insert), force_update=force_update, update_fields=names)

    @classmethod
    def _settable(cls) -> set[str]:
        meta: Any = cls._meta
        fields = meta.concrete_fields
        return {"pk", *(f.name for f in fields), *(f.attname for f in fields), *meta._property_names}

    @classmethod
    def _update_names(cls, update_fields: Iterable[str] | None) -> frozenset[str] | None:
        if update_fields is None:
            return None
        known = {f.name: f.attname for f in cls._meta.concrete_fields if not f.primary_key}
        known |= {attname: attname for attname in known.values()}
        unknown = sorted(set(update_fields) - set(known))
        if unknown:
            raise ValueError(
                "The following fields do not exist in this model, are m2m fields, primary keys, or are non-concrete "
                f"fields: {', '.join(unknown)}"
            )
        return frozenset(known[name] for name in update_fields)

    def save_base(
        self,
        raw: bool = False,
        force_insert: bool | tuple[ModelBase, ...] = False,
        force_update: bool = False,
        using: str | None = None,
        update_fields: Iterable[str] | None = None,
    ) -> None:
        """Save with Django's signals around it; ``raw`` (fixtures) replaces what is stored."""
        cls = self._meta.concrete_model
        names = None if update_fields is None else frozenset(update_fields)
        pre_save.send(sender=cls, instance=self, raw=raw, using=using, update_fields=names)
        updated = self._save_table(raw, cls, bool(force_insert), force_update, using, names)
        self._state.adding = False
        post_save.send(sender=cls, instance=self, created=not updated, update_fields=names, raw=raw, using=using)

    def _save_table(
        self,
        raw: bool = False,
        cls: Any = None,
        force_insert: bool = False,
        force_update: bool = False,
        using: str | None = None,
        update_fields: Iterable[str] | None = None,
    ) -> bool:
        # Django's serializers call ``Model.save_base`` unbound, which ends here.
        if raw:
            return writes.replace(self)
        if force_insert or (self._state.adding and not force_update and update_fields is None):
            writes.insert(self)
            return False
        writes.update(self, None if update_fields is None else frozenset(update_fields))
        return True

    # By keyword only: PynamoDB's condition in the first place would be dropped in silence.
    def delete(  # type: ignore[override]  # Django's are positional too
        self, *, using: str | None = None, keep_parents: bool = False
    ) -> tuple[int, dict[str, int]]:
        """Delete the item: one request, or one transaction if it holds unique values."""
        return self.hard_delete()

    def hard_delete(self) -> tuple[int, dict[str, int]]:
        """Delete the item for good and give its unique values free."""
        count = writes.delete(self)
        self._state.adding = True
        return count, {self._meta.label: count}

    def update(self, *args: Any, **kwargs: Any) -> Any:
        """PynamoDB's ``update(actions)`` is refused: it would leave keys behind that depend on what it changes."""
        raise NotSupported(
            f"{type(self).__name__}.update(actions) is PynamoDB's and knows nothing of the keys that depend on an "
            "attribute. Set the attributes and call save(), or use the queryset's update()."
        )

    def derived_objects(self) -> Iterable[Model]:
        """The objects of other models that follow from this one's ``derived_from`` attributes, and from nothing else.

        Their items are written, replaced and deleted with this object's, in one transaction.
        """
        return ()

    # PynamoDB's own writers (batch_write, TransactWrite) take the item from here.
    @classmethod
    def _refuse_table_change(cls, *args: Any, **kwargs: Any) -> Any:
        raise NotSupported(
            f"The table belongs to all models, so {cls.__name__} neither makes nor deletes it: manage.py dynamo_setup "
            "sets it up."
        )

    create_table = delete_table = update_ttl = _refuse_table_change

    @classmethod
    def _check_plain_write(cls) -> None:
        """PynamoDB's writers send one item: what has to change with it would be left behind."""
        follows = [*uniqueness.unique_attributes(cls), *cls.derived_from]
        if follows:
            raise NotSupported(
                f"PynamoDB's writers do not keep what depends on {', '.join(dict.fromkeys(follows))} of "
                f"{cls._meta.label}: unique values or items of their own. Use save() and delete()."
            )

    @classmethod
    def batch_write(cls, auto_commit: bool = True) -> BatchWrite[Self]:
        """PynamoDB's batch writer, which overwrites; refused where other items depend on the model's."""
        cls._check_plain_write()
        return super().batch_write(auto_commit=auto_commit)

    def get_save_kwargs_from_instance(self, *args: Any, **kwargs: Any) -> Any:
        """For PynamoDB's ``TransactWrite``; refused where other items depend on this one."""
        self._check_plain_write()
        return super().get_save_kwargs_from_instance(*args, **kwargs)  # type: ignore[misc]  # not in the stand-in

    def get_delete_kwargs_from_instance(self, *args: Any, **kwargs: Any) -> Any:
        """For PynamoDB's ``TransactWrite``; refused where other items depend on this one."""
        self._check_plain_write()
        return super().get_delete_kwargs_from_instance(*args, **kwargs)  # type: ignore[misc]  # not in the stand-in

    def get_update_kwargs_from_instance(self, *args: Any, **kwargs: Any) -> Any:
        """Refused as ``update`` is."""
        return self.update()

    def _container_serialize(self, null_check: bool = True) -> dict[str, dict[str, Any]]:
        return items.item_of(self)

    # reading

    def get_deferred_fields(self) -> set[str]:
        """No attribute is deferred: an item is read whole."""
        return set()

    @classmethod
    def from_item(cls, item: dict[str, dict[str, Any]]) -> Self:
        """The object of a stored item, given as DynamoDB's AttributeValues."""
        result: Self = hydration.instance(cls, item)
        return result

    @classmethod
    def _instantiate(cls, attribute_values: dict[str, dict[str, Any]]) -> Self:
        # PynamoDB's hook: whatever it reads becomes an object the same way.
        result: Self = hydration.instance(cls, attribute_values)
        return result

    @classmethod
    def _get_connection(cls) -> Any:
        return get_table(cls._options.alias).pynamodb

    def refresh_from_db(
        self, using: str | None = None, fields: Iterable[str] | None = None, from_queryset: Any = None
    ) -> None:
        """Read the object again: one strongly consistent GetItem."""
        fresh = hydration.reload(self)
        meta: Any = self._meta
        names = {meta.get_field(name).attname for name in fields} if fields is not None else None
        for name, value in fresh.attribute_values.items():
            if names is None or name in names:
                setattr(self, name, value)
        if names is None:
            self._prefetched_objects_cache = {}
        else:
            for name in set(fields or ()) & set(getattr(self, "_prefetched_objects_cache", {})):
                del self._prefetched_objects_cache[name]
        self._stored = fresh._stored
        self._state.adding = False

    def refresh(self, consistent_read: bool = True) -> None:
        """PynamoDB's name for ``refresh_from_db()``."""
        self.refresh_from_db()

    # validation

    def _perform_unique_checks(self, unique_checks: Any) -> dict[str, list[Any]]:
        own_key = None if self._stored is None else items.stored_key(self)
        return uniqueness.errors(self, own_key, unique_checks)


class TimestampedModel(Model):  # noqa: DJ008 - abstract
    """When an object was made and last saved, set on every write path."""

    created_at = TimestampAttribute("created", auto_now_add=True, attr_name=layout.CREATED_AT)
    updated_at = TimestampAttribute("updated", auto_now=True, attr_name=layout.UPDATED_AT)

    Meta = _Abstract


class SoftDeleteModel(Model):  # noqa: DJ008 - abstract
    """Objects that go to the trash on ``delete()`` and come back with ``restore()``.

    ``objects`` are the live ones, ``deleted_objects`` the trash, ``all_objects`` both.
    """

    deleted_at = TimestampAttribute("deleted", null=True, editable=False, attr_name=layout.DELETED_AT)

    objects: ClassVar[Manager[Self]] = SoftDeleteManager("live")
    all_objects: ClassVar[Manager[Self]] = SoftDeleteManager("all")
    deleted_objects: ClassVar[Manager[Self]] = SoftDeleteManager("deleted")

    Meta = _Abstract

    @property
    def is_deleted(self) -> bool:
        """Whether the object is in the trash."""
        return self.deleted_at is not None

    def delete(self, *, using: str | None = None, keep_parents: bool = False) -> tuple[int, dict[str, int]]:  # type: ignore[override]  # as above
        """Move the object to the trash: one transaction. Its unique values are free again; nothing is lost."""
        return soft_delete.delete(self)

    def restore(self) -> None:
        """Take the object out of the trash: one transaction; ``UniqueViolation`` if a unique value was taken since."""
        soft_delete.restore(self)
