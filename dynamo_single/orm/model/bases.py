"""Base classes with attributes: the time and author of an object's creation, and the trash.

The modules of those names implement the behavior. This module does not depend on how objects are written.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Final, Self

from asgiref.sync import sync_to_async
from django.core.signals import setting_changed
from django.utils.translation import gettext_lazy as _

from dynamo_single.conf import table_settings
from dynamo_single.exceptions import ConfigurationError
from dynamo_single.lazy_modules import LazyModule
from dynamo_single.orm.conditions.terms import Condition
from dynamo_single.orm.items.async_safety import creates_plain_objects
from dynamo_single.orm.model.model import Abstract, Model
from dynamo_single.orm.query.manager import Manager, SoftDeleteManager
from dynamo_single.orm.requests.atomic_block import Block, current
from dynamo_single.orm.rollout import knowledge
from dynamo_single.orm.schema import bindings, registry
from dynamo_single.orm.schema.attributes import (
    AuthorAttribute,
    IdAttribute,
    MapAttribute,
    TimestampAttribute,
    UnicodeAttribute,
)
from dynamo_single.orm.schema.keys.template import IndexKey, Key
from dynamo_single.orm.schema.types import ConditionArgument, DynamoModel, are_plain
from dynamo_single.table import names
from dynamo_single.table.flow import run
from dynamo_single.table.shaped import declared

if TYPE_CHECKING:
    from dynamo_single.orm.effects import base as effects
    from dynamo_single.orm.effects.base import CallerConditions
    from dynamo_single.orm.items import unique_rules
    from dynamo_single.orm.schema import recognition
    from dynamo_single.orm.write import on_delete, trash
else:
    effects = LazyModule("dynamo_single.orm.effects.base")
    recognition = LazyModule("dynamo_single.orm.schema.recognition")
    on_delete = LazyModule("dynamo_single.orm.write.on_delete")
    trash = LazyModule("dynamo_single.orm.write.trash")
    unique_rules = LazyModule("dynamo_single.orm.items.unique_rules")

knowledge.set_rules(lambda model: unique_rules.names_by_fingerprint(model))


class TimestampedModel(Model):
    """When an object was made and last saved, set on every write path."""

    created_at = TimestampAttribute(_("created"), auto_now_add=True, attr_name=names.CREATED_AT)
    updated_at = TimestampAttribute(_("updated"), auto_now=True, attr_name=names.UPDATED_AT)

    Meta = Abstract


class AuthoredModel(Model):
    """The author of an object: the user of the context, set once, on every creation path, and never from a value."""

    created_by = AuthorAttribute(verbose_name=_("created by"))

    Meta = Abstract


class SoftDeleteModel(Model):
    """Objects that go to the trash on ``delete()`` and come back with ``restore()``.

    ``objects`` are the live ones, ``deleted_objects`` the trash, ``all_objects`` both.
    """

    deleted_at = TimestampAttribute(_("deleted"), null=True, editable=False, attr_name=names.DELETED_AT)
    #: The parent that an object was deleted with: its item type and ``pk``; ``None`` if it was deleted alone.
    deleted_with = UnicodeAttribute(_("deleted with"), null=True, editable=False, attr_name=names.DELETED_WITH)

    if not TYPE_CHECKING:  # see Model.objects
        objects = SoftDeleteManager("live")
    all_objects: ClassVar[Manager[Self]] = SoftDeleteManager("all")
    deleted_objects: ClassVar[Manager[Self]] = SoftDeleteManager("deleted")

    Meta = Abstract

    @property
    def is_deleted(self) -> bool:
        """Whether the object is in the trash."""
        return self.deleted_at is not None

    def delete(  # type: ignore[override]  # Django's are positional too
        self, *, using: str | None = None, keep_parents: bool = False, condition: ConditionArgument = None
    ) -> tuple[int, dict[str, int]]:
        """Move the object to the trash, and the children that cascade; the counts are by model.

        One request for an object alone; one transaction if it has unique values or children and all of it fits into one
        (100 actions, 4 MB), else several, the object in the first. Repeating it completes what was interrupted.
        """
        return run(self._deleted(self._demanding(condition), current()))

    async def _deleted(
        self, terms: CallerConditions, pending: Block | None, origin: object = None
    ) -> tuple[int, dict[str, int]]:
        return await trash.delete(self, terms, pending)

    def restore(self) -> tuple[int, dict[str, int]]:
        """Restore the object and the objects deleted with it; return counts by model.

        As many requests as ``delete()``, with the object in the last. Raises ``UniqueViolation`` if another object has
        taken a unique value, ``ParentInTrash`` if it belongs to an object in the trash, ``DoesNotExist`` if it was
        permanently deleted.
        """
        return run(trash.restore(self, effects.NO_CONDITIONS, current()))

    async def _restored(self, condition: Condition, pending: Block | None) -> tuple[int, dict[str, int]]:
        return await trash.restore(self, effects.CallerConditions(queried=condition), pending)

    async def arestore(self) -> tuple[int, dict[str, int]]:
        """``restore()``, awaited unless a project's class has one of its own."""
        involved = on_delete.involved_models(type(self))
        if not (are_plain(type(self), ("restore",)) and all(map(creates_plain_objects, involved))):
            return await sync_to_async(self.restore)()
        return await trash.restore(self, effects.NO_CONDITIONS, current())

    restore.alters_data = arestore.alters_data = True  # type: ignore[attr-defined]  # templates call neither


# The base class of records: an identifier, a map of any shape, and the metadata around it.
#
# Its identifier and its keys are made of ``Meta.id_prefix`` when a model is declared.

_PREFIX: Final = re.compile(r"(?:[A-Za-z][A-Za-z0-9_-]*)?")
#: The name of the key that lists all records.
LISTED: Final = "listed"


class Record(TimestampedModel, AuthoredModel, SoftDeleteModel):
    """A map of any shape under an identifier ``<prefix>-<uuid v1>``, with times, its author and a trash.

    ``Meta.id_prefix`` is the prefix, by default the model's name in lower case; if it is empty, identifiers are bare
    UUIDs. You can set identifiers of any other form, such as those of another system. ``data`` contains the content;
    the other attributes are only values for indexes (``ExtractedAttribute``) and the metadata. ``class Data`` declares
    elements of it; see ``MapAttribute``.

    The app creates keys that ``class Keys(models.Record.Keys)`` does not declare: ``primary`` is the identifier alone,
    with a constant sort key; ``listed`` has all records by creation time, on the first index of the table that no
    declared key uses. Without a free index, the records have no list.
    """

    id = IdAttribute(uuid_version=1)
    data = MapAttribute(default=dict, blank=True)
    created_at = TimestampAttribute(_("created"), auto_now_add=True, immutable=True, attr_name=names.CREATED_AT)

    class Keys:
        """Declared keys are not generated."""

    Meta = Abstract

    def __str__(self) -> str:
        return str(self.id)

    @classmethod
    def _before_declaration(cls, name: str, namespace: dict[str, Any], meta: Any) -> None:
        """Complete the declaration of a model, which is not made yet: the metaclass calls it."""
        prefix = getattr(meta, "id_prefix", name.lower())
        if not isinstance(prefix, str) or not _PREFIX.fullmatch(prefix):
            raise ConfigurationError(
                f"{name}.Meta.id_prefix = {prefix!r} cannot begin an identifier: give it a letter and then letters, "
                "digits, '_' or '-', or leave it empty."
            )
        identifier: Any = cls.id
        if identifier.prefix == "" and prefix:
            namespace.setdefault("id", IdAttribute(prefix=prefix, uuid_version=1))
        if "Data" in namespace:
            if "data" in namespace:
                raise ConfigurationError(
                    f"{name} has both class Data and data. Set schema=Data on data, or remove data."
                )
            namespace["data"] = MapAttribute(default=dict, schema=namespace["Data"])
        declared = namespace.get("Keys", cls.Keys)
        namespace["Keys"] = type("Keys", (declared,), _made_keys(declared, (prefix or name).upper(), meta))


def _made_keys(declared: object, prefix: str, meta: object) -> dict[str, object]:
    """The keys that a model does not declare itself."""
    found: dict[str, Any] = {}
    if not isinstance(getattr(declared, "primary", None), Key):
        found["primary"] = Key("{id}", f"#{prefix}")
    if not hasattr(declared, LISTED):
        used = {key.index for key in registry.index_keys(declared).values()}
        free = next((index for index in _indexes(getattr(meta, "table", "default")) if index not in used), None)
        found |= {} if free is None else {LISTED: IndexKey(free, prefix, "{created_at}#{id}")}
    return found


def is_by_id(model: type[DynamoModel]) -> bool:
    """Return whether the identifier alone determines the key of a model's items, as a table whose key is ``id``
    requires."""
    primary, identifier = model._options.primary, registry.attributes_of(model).get("id")
    if not isinstance(identifier, IdAttribute) or identifier.attr_name != names.ID:
        return False
    word = identifier.prefix or model.__name__
    return (primary.partition, primary.sort, primary.sharded) == ("{id}", f"#{word.upper()}", False)


def prefix_of(model: type[DynamoModel]) -> str:
    """Return what the identifiers of records begin with before a ``-``; empty if they may begin with anything."""
    return getattr(registry.attributes_of(model)["id"], "prefix", "")


@bindings.shared
def _sorts() -> tuple[tuple[str, str], ...]:
    """Return the prefixes of the records in tables whose key is ``id``, longest first, each with its sort key."""
    found = {
        prefix_of(model): model._options.primary.sort
        for model in registry.all_models()
        if _has_id_alone(model._options.alias) and is_by_id(model)
    }
    return tuple(sorted(found.items(), key=lambda each: (-len(each[0]), each)))


def _has_id_alone(alias: str) -> bool:
    try:
        return table_settings(alias).key == "id"
    except ConfigurationError:
        return False  # the table's own settings decide


def _forget(*, setting: str, **_: object) -> None:
    if setting == "DYNAMO_SINGLE":
        bindings.begin_generation()


setting_changed.connect(_forget, dispatch_uid="dynamo_single.orm.model.bases")
declared.register(lambda alias: recognition.model_names(alias), _sorts)


def _indexes(alias: str) -> Sequence[str]:
    try:
        return table_settings(alias).indexes
    except ConfigurationError:
        # Models are imported before this app begins, which reports it in one line.
        return ()
