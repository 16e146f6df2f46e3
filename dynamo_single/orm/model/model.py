"""The base class of models: what an instance is, and which steps its methods take.

The modules of those names read, write and delete; this module connects them to the methods that Django and PynamoDB
call.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, MutableMapping, Sequence, Set
from typing import TYPE_CHECKING, Any, ClassVar, Self

from django.core.checks import CheckMessage
from django.core.exceptions import NON_FIELD_ERRORS, ValidationError
from django.db import connections, models
from django.db.models.base import ModelBase
from django.db.models.signals import post_init, pre_init

from dynamo_single.exceptions import InvalidValue, NotSupported
from dynamo_single.lazy_modules import LazyModule
from dynamo_single.orm.conditions.terms import EVERYTHING, Condition
from dynamo_single.orm.items import decode, encode, refresh
from dynamo_single.orm.items.stored import AttributeValues, StoredItem, pickled_state
from dynamo_single.orm.model.async_methods import AsyncMethods, check_force_insert, save_options
from dynamo_single.orm.model.metaclass import ModelMeta
from dynamo_single.orm.model.movable import Movable
from dynamo_single.orm.model.pynamodb import ItemType, KeyValue, PynamoDBHooks
from dynamo_single.orm.model.pynamodb_model import PynamoDBModel
from dynamo_single.orm.query.manager import Manager
from dynamo_single.orm.requests.atomic_block import Block, current
from dynamo_single.orm.schema import registry
from dynamo_single.orm.schema.fields.fetching import ObjectState
from dynamo_single.orm.schema.keys.values import named
from dynamo_single.orm.schema.types import ConditionArgument, DynamoModel
from dynamo_single.table import names as physical
from dynamo_single.table.flow import run
from dynamo_single.table.request import NewItem

if TYPE_CHECKING:
    from dynamo_single.orm.effects import base as effects
    from dynamo_single.orm.effects.base import CallerConditions
    from dynamo_single.orm.model import validation
    from dynamo_single.orm.requests.updates import Change
    from dynamo_single.orm.where import declared_conditions
    from dynamo_single.orm.write import save
else:
    declared_conditions = LazyModule("dynamo_single.orm.where.declared_conditions")
    effects = LazyModule("dynamo_single.orm.effects.base")
    save = LazyModule("dynamo_single.orm.write.save")
    validation = LazyModule("dynamo_single.orm.model.validation")


class Abstract:
    """``Meta`` of every base class: one object, so that a model that inherits from two has one Meta to a checker."""

    abstract = True


class Model(AsyncMethods, Movable, PynamoDBHooks, PynamoDBModel, DynamoModel, metaclass=ModelMeta):
    """A model whose objects are items of the one table.

    Declare attributes, and the keys in ``class Keys``. All of Django's model API that DynamoDB can support works;
    PynamoDB's class methods (``query``, ``scan``, ``get``, ``batch_get``) and conditions work too and raise PynamoDB's
    own errors.
    """

    partition_key = KeyValue(hash_key=True, attr_name=physical.PARTITION_KEY)
    sort_key = KeyValue(range_key=True, attr_name=physical.SORT_KEY)
    item_type = ItemType(attr_name=physical.ITEM_TYPE)

    if not TYPE_CHECKING:  # the metaclass has its type
        objects = Manager()

    _stored = StoredItem()
    #: The attributes of the primary key, each once.
    _identity: ClassVar[tuple[str, ...]]
    #: The names of the primary key's fields, if forms can check them together.
    _unique_key: ClassVar[tuple[str, ...]]
    #: Whether the model has a ``from_db()`` of its own.
    _has_from_db: ClassVar[bool] = False
    _prefetched_objects_cache: dict[str, Any]

    Meta = Abstract

    def __init__(self, *args: object, _user_instantiated: bool = True, **kwargs: object) -> None:
        if args:
            raise TypeError(
                f"{type(self).__name__}() takes keyword arguments only: PynamoDB and Django give positional ones "
                "different meanings."
            )
        cls = type(self)
        if cls._meta.abstract:
            raise TypeError("Abstract models cannot be instantiated.")
        pre_init.send(sender=cls, args=args, kwargs=kwargs)
        self._state = ObjectState()
        self._stored = None
        for field in self._meta.concrete_fields:
            if field.attname not in kwargs and field.name not in kwargs and hasattr(field, "attribute"):
                self.__dict__[field.attname] = field.get_default()
        settable = self._settable() if kwargs else ()
        for name, value in kwargs.items():
            if name not in settable:
                raise TypeError(cls._unexpected(name))
            setattr(self, name, value)
        post_init.send(sender=cls, instance=self)

    def __getstate__(self) -> dict[str, Any]:
        """Return Django's, which has no names of the table."""
        return pickled_state(self, super().__getstate__())

    def __repr__(self) -> str:
        """Django's; by the ``pk`` if ``__str__`` fails, which would replace the error whose text shows the object."""
        try:
            return models.Model.__repr__(self)
        except Exception:  # a project's __str__ may raise anything; str() of the object still does
            return f"<{named(self)}>"

    def save(
        self,
        *args: object,
        force_insert: bool | tuple[ModelBase, ...] = False,
        force_update: bool = False,
        using: str | None = None,
        update_fields: Iterable[str] | None = None,
        condition: ConditionArgument = None,
    ) -> None:
        """Create or update the item.

        Creating an object requires that no item has its key (``AlreadyExists``); saving a loaded object sends only the
        changes, if there are any. One request; one transaction if a unique attribute is involved. ``force_update``
        computes every key again without a change too, for an index that is younger than the item. The stored item must
        meet ``condition``, a ``Q`` or a condition of PynamoDB (``ConditionNotMet``).
        """
        given = self._to_save(
            *args,
            force_insert=force_insert,
            force_update=force_update,
            using=using,
            update_fields=update_fields,
            condition=condition,
        )
        if given is not None:
            self.save_base(**given)

    def _to_save(
        self,
        *args: object,
        force_insert: bool | tuple[ModelBase, ...] = False,
        force_update: bool = False,
        using: str | None = None,
        update_fields: Iterable[str] | None = None,
        condition: ConditionArgument = None,
    ) -> dict[str, Any] | None:
        """Return the options with which ``save()`` calls ``save_base()``; ``None`` by default."""
        if args:
            given = (force_insert, force_update, using, update_fields)
            force_insert, force_update, using, update_fields = save_options(args, given)
        if using is not None and using not in connections:
            raise NotSupported(
                f"save(using={using!r}): there is no such alias in DATABASES. The table of a model "
                "is chosen by class Meta: table."
            )
        check_force_insert(type(self), force_insert)
        if force_insert and (force_update or update_fields):
            raise ValueError("Cannot force both insert and updating in model saving.")
        self._prepare_related_fields_for_save(operation_name="save")  # type: ignore[attr-defined]  # private to Django
        names = self._update_names(update_fields)
        demanded = EVERYTHING if condition is None else declared_conditions.read_precondition(type(self), condition)
        creates = force_insert or (self._state.adding and not force_update and update_fields is None)
        if creates and condition is not None:
            raise NotSupported(
                f"{self._meta.label} is new, and save(condition=...) is about what is stored: a new object is created "
                "only if there is none with its key, without a condition."
            )
        if names is not None and not names and condition is None:
            return None
        return {
            "using": using,
            "force_insert": bool(force_insert),
            "force_update": force_update,
            "update_fields": names,
            "condition": demanded,
        }

    @classmethod
    def check(cls, **kwargs: object) -> list[CheckMessage]:
        """Django's checks, without W042 about an automatic id: a model has one where E003 names the real mistake."""
        return [message for message in super().check(**kwargs) if message.id != "models.W042"]

    @classmethod
    def _unexpected(cls, name: str) -> str:
        fields = ", ".join(field.name for field in cls._meta.concrete_fields if hasattr(field, "attribute"))
        return f"{cls.__name__}() got an unexpected keyword argument {name!r}. Its attributes are {fields}."

    @classmethod
    def _settable(cls) -> set[str]:
        meta: Any = cls._meta
        fields = meta.concrete_fields
        # Lists, since a generator is entered again for each field.
        private = meta.private_fields
        generic = [field.name for field in private if not field.is_relation or field.many_to_one] if private else ()
        return {"pk", *[f.name for f in fields], *[f.attname for f in fields], *meta._property_names, *generic}

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
                f"fields: {', '.join(unknown)}. There are {', '.join(known)}; move() changes the primary key."
            )
        names = frozenset(known[name] for name in update_fields)
        for name, attribute in registry.attributes_of(cls).items():
            if attribute.computed and name in names:
                first = attribute.origin.partition("__")[0]
                raise NotSupported(
                    f"{name} is computed from {attribute.origin} and saved with it: name {first} in update_fields."
                    if first in known
                    else f"{name} is kept in step with {attribute.origin} and never saved by itself: leave it out of "
                    "update_fields."
                )
        return names

    def save_base(
        self,
        raw: bool = False,
        force_insert: bool | tuple[ModelBase, ...] = False,
        force_update: bool = False,
        using: str | None = None,
        update_fields: Iterable[str] | None = None,
        condition: Condition = EVERYTHING,
    ) -> None:
        """Save with Django's signals around it; ``raw`` (fixtures) replaces what is stored."""
        run(self._saved(raw, force_insert, force_update, using, update_fields, condition))

    def _save_table(
        self,
        raw: bool = False,
        cls: object = None,
        force_insert: bool = False,
        force_update: bool = False,
        using: str | None = None,
        update_fields: Iterable[str] | None = None,
        condition: Condition = EVERYTHING,
    ) -> bool:
        # Django's serializers call ``Model.save_base`` unbound, which ends here.
        if raw:
            # Before 6.1 they do not pass it to the managers of many-to-many relations, which they call next.
            self._state.of_fixture = True  # type: ignore[attr-defined]  # a mark of ours
        return run(self._written(raw, cls, force_insert, force_update, using, update_fields, condition))

    # By keyword only: PynamoDB's condition in the first place would be dropped in silence.
    def delete(  # type: ignore[override]  # Django's are positional too
        self, *, using: str | None = None, keep_parents: bool = False, condition: ConditionArgument = None
    ) -> tuple[int, dict[str, int]]:
        """Delete the item: one request, or one transaction if it holds unique values.

        The stored item must meet ``condition``, as for ``save()`` (``ConditionNotMet``); a missing item is not counted.
        """
        return self.hard_delete(condition=condition)

    async def adelete(self, **options: object) -> tuple[int, dict[str, int]]:  # type: ignore[override]  # as above
        """``delete()``, awaited."""
        return await self._adelete(**options)

    # Django passes this mark on from the first base that has the method, which is PynamoDB's. Templates call neither.
    save.alters_data = delete.alters_data = adelete.alters_data = True  # type: ignore[attr-defined]

    def hard_delete(self, *, condition: ConditionArgument = None) -> tuple[int, dict[str, int]]:
        """Delete the item permanently and release its unique values, with Django's signals.

        Cascading children are permanently deleted first. One transaction if everything fits. ``condition`` is as for
        ``delete()``.
        """
        return run(self._hard_deleted(self._demanding(condition), current()))

    hard_delete.alters_data = True  # type: ignore[attr-defined]  # templates do not call it

    @classmethod
    def _demanding(cls, condition: ConditionArgument) -> CallerConditions:
        return (
            effects.NO_CONDITIONS
            if condition is None
            else effects.CallerConditions(demanded=declared_conditions.read_precondition(cls, condition))
        )

    async def _written_if(
        self, condition: Condition, update_fields: Iterable[str], changes: Sequence[Change], pending: Block | None
    ) -> bool:
        """Save attributes if the stored item meets a condition; ``False`` if it does not, or is gone.

        ``changes`` are applied in addition. Like Django's ``update()``, it does not send signals.
        """
        names = self._update_names(update_fields) or frozenset()

        async def write(terms: CallerConditions) -> bool:
            await save.save(self, save.SaveOptions(names, tuple(changes), given=names, terms=terms), pending)
            return True

        return await save.write_if(self, condition, write, names)

    def derived_objects(self) -> Iterable[Model]:
        """Return the objects of other models that depend only on this one's ``derived_from`` attributes.

        Their items are written, replaced and deleted with this object's, in one transaction.
        """
        return ()

    def is_derived(self) -> bool:
        """Return whether this object is derived from the target of ``derived_by``, without a request.

        If a model also has objects from other sources, it returns ``False`` for them, so that they are not deleted as
        leftovers.
        """
        return bool(self.derived_by)

    def get_deferred_fields(self) -> set[str]:
        """The attributes that were not read yet, after ``only()`` or ``defer()``."""
        return refresh.missing_attributes(self)

    @property
    def attribute_values(self) -> MutableMapping[str, Any]:  # type: ignore[override]  # a dict there
        """PynamoDB's name for the values by attribute; they are in ``vars(obj)``."""
        return AttributeValues(self)

    @classmethod
    def from_db(
        cls, db: str | None, field_names: Collection[str], values: Collection[object], *, fetch_mode: object = None
    ) -> Self:
        """Create an object from loaded values. As in Django, an override is called for each object.

        ``field_names`` and ``values`` contain the loaded attributes, and ``identity`` if the primary key has several
        parts. A value that an override changes counts as set after the read. Related objects use the queryset's fetch
        mode, which it sets itself, whatever ``fetch_mode`` is.
        """
        result: Self = decode.object_of_values(cls, db, list(field_names), values)  # type: ignore[arg-type]  # Django's name
        return result

    @classmethod
    def from_item(cls, item: NewItem) -> Self:
        """The object of a stored item, given as DynamoDB's AttributeValues."""
        result: Self = decode.instance(cls, item)
        return result

    def refresh_from_db(
        self, using: str | None = None, fields: Iterable[str] | None = None, from_queryset: object = None
    ) -> None:
        """Read the object again: one strongly consistent GetItem, or what ``from_queryset`` sends.

        With ``fields`` only these are updated from the item, and an empty list does not send a request; the name of a
        relation from other objects clears its prefetch cache. Without ``fields``, all loaded attributes are updated.
        Conditions of a later save use the state of this read.
        """
        run(refresh.refresh(self, fields, from_queryset))

    @classmethod
    def _read_rest(cls, objects: Sequence[Self]) -> None:
        refresh.read_rest(objects)

    def _forget(self, name: str) -> None:
        refresh.clear_attribute(self, name)

    async def _follow_stored(self, kept: Set[str]) -> bool:
        """Update from the stored item, except for kept or changed values: one GetItem; return ``False`` if it is
        missing or deleted."""
        try:
            fresh = await decode.areload(self)
        except type(self).DoesNotExist:
            return False
        if self._stored is None or (physical.DELETED_AT in fresh._stored) != (physical.DELETED_AT in self._stored):
            return False
        decode.update_from(self, fresh, refresh.changed_in_memory(self) | kept)
        return True

    def clean_fields(self, exclude: Any = None) -> None:
        """Run Django's validation of each field, also of extracted values, then check that the values fit into the
        keys.

        An object that was read in part is read whole first: one GetItem.
        """
        refresh.complete(self)
        extracted = {each.name for each in registry.extracted_of(type(self))}
        excluded = {*(exclude or ()), *extracted}
        errors: dict[str, Any] = {}
        try:
            super().clean_fields(excluded)
        except ValidationError as error:
            errors = error.update_error_dict(errors)
        if errors := {**errors, **validation.extracted_errors(self, {*excluded, *errors})}:
            raise ValidationError(errors)
        try:
            encode.check_keys(self)
        except InvalidValue as error:
            raise ValidationError(error.in_words(), code="invalid_key") from error

    def _perform_unique_checks(self, unique_checks: object) -> dict[str, list[object]]:
        own_key = None if self._stored is None else encode.stored_key(self)
        return validation.unique_errors(self, own_key, unique_checks)

    def validate_constraints(self, exclude: Any = None) -> None:
        """Report violated check constraints, and unique ones that another object prevents: one request."""
        own_key = None if self._stored is None else encode.stored_key(self)
        found = validation.constraint_errors(self, own_key, exclude or ())
        for error in validation.check_errors(self, exclude or ()):
            found.setdefault(NON_FIELD_ERRORS, []).append(error)
        if found:
            raise ValidationError(found)
