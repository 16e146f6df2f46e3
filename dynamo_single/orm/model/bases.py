"""Base classes that bring attributes along: when and by whom an object was made, and the trash.

What they do is done by the modules of those names. This module must not know how objects are written.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Self

from asgiref.sync import sync_to_async
from django.utils.translation import gettext_lazy as _

from dynamo_single.later import Later
from dynamo_single.orm.conditions.terms import Condition
from dynamo_single.orm.effects.terms import NO_TERMS, Terms
from dynamo_single.orm.items.native import makes_objects
from dynamo_single.orm.model.model import Abstract, Asked, Model
from dynamo_single.orm.query.manager import Manager, SoftDeleteManager
from dynamo_single.orm.requests.block import Block, current
from dynamo_single.orm.schema.attributes import AuthorAttribute, TimestampAttribute, UnicodeAttribute
from dynamo_single.orm.schema.owners import are_plain
from dynamo_single.orm.write.on_delete import involved
from dynamo_single.table import names
from dynamo_single.table.flow import run

if TYPE_CHECKING:
    from dynamo_single.orm.write import trash
else:
    trash = Later("dynamo_single.orm.write.trash")


class TimestampedModel(Model):
    """When an object was made and last saved, set on every write path."""

    created_at = TimestampAttribute(_("created"), auto_now_add=True, attr_name=names.CREATED_AT)
    updated_at = TimestampAttribute(_("updated"), auto_now=True, attr_name=names.UPDATED_AT)

    Meta = Abstract


class AuthoredModel(Model):
    """Who made an object: the user of the context, set once, on every creation path, and never from a value."""

    created_by = AuthorAttribute(verbose_name=_("created by"))

    Meta = Abstract


class SoftDeleteModel(Model):
    """Objects that go to the trash on ``delete()`` and come back with ``restore()``.

    ``objects`` are the live ones, ``deleted_objects`` the trash, ``all_objects`` both.
    """

    deleted_at = TimestampAttribute(_("deleted"), null=True, editable=False, attr_name=names.DELETED_AT)
    #: What an object went to the trash along with: its parent's item type and ``pk``; ``None`` for one by itself.
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
        self, *, using: str | None = None, keep_parents: bool = False, condition: Asked = None
    ) -> tuple[int, dict[str, int]]:
        """Move the object to the trash, and the children that cascade; the counts are by model.

        One request for an object alone; one transaction if it has unique values or children and all of it fits into one
        (100 actions, 4 MB), else several, the object in the first. Repeating it completes what was interrupted.
        """
        return run(self._deleted(self._demanding(condition), current()))

    async def _deleted(self, terms: Terms, pending: Block | None, origin: object = None) -> tuple[int, dict[str, int]]:
        return await trash.delete(self, terms, pending)

    def restore(self) -> tuple[int, dict[str, int]]:
        """Take the object out of the trash, and what went there along with it; the counts are by model.

        As many requests as ``delete()``, the object in the last. ``UniqueViolation`` if a unique value was taken since,
        ``ParentInTrash`` if it belongs to an object in the trash, ``DoesNotExist`` if it is gone for good.
        """
        return run(trash.restore(self, NO_TERMS, current()))

    async def _restored(self, condition: Condition, pending: Block | None) -> tuple[int, dict[str, int]]:
        return await trash.restore(self, Terms(queried=condition), pending)

    async def arestore(self) -> tuple[int, dict[str, int]]:
        """``restore()``, awaited unless a project's class has one of its own."""
        if not (are_plain(type(self), ("restore",)) and all(map(makes_objects, involved(type(self))))):
            return await sync_to_async(self.restore)()
        return await trash.restore(self, NO_TERMS, current())

    restore.alters_data = arestore.alters_data = True  # type: ignore[attr-defined]  # templates call neither
