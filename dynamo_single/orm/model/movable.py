"""The methods of an object that change its primary key: ``orm/write/move`` does the work."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from asgiref.sync import sync_to_async

from dynamo_single.lazy_modules import LazyModule
from dynamo_single.orm.items.async_safety import creates_plain_objects
from dynamo_single.orm.requests.atomic_block import current
from dynamo_single.orm.schema.types import are_plain
from dynamo_single.table.flow import run

if TYPE_CHECKING:
    from dynamo_single.orm.write import move as moving
else:
    moving = LazyModule("dynamo_single.orm.write.move")


class Movable:
    """The methods of a model that change the primary key of an object."""

    def move(self, **changes: object) -> None:
        """Set attributes and store the object under the primary key that they give, in one transaction with its claims.

        Other unsaved attributes are stored too. Before that it sends a Query for each reference to the model that a key
        supports. Raises ``AlreadyExists`` if there is an item under the key, ``StaleObject`` if another process changed
        the object, and ``NotSupported`` if other objects refer to it.
        """
        run(moving.move(self, changes, current()))

    async def amove(self: Any, **changes: object) -> None:
        """Do what ``move()`` does; an overridden ``move()`` is called in a thread."""
        if are_plain(self.__class__, ("move",)) and creates_plain_objects(type(self)):
            await moving.move(self, changes, current())
        else:
            await sync_to_async(self.move)(**changes)

    def move_tree(self, **changes: object) -> None:
        """Move the object like ``move()``, and update all objects that refer to it by a reference that a key supports.

        Objects with the reference in their primary key move too, and the objects that refer to them are updated as
        well. If all writes fit into one transaction, it sends that, and the Queries that find the objects before and
        after it. Otherwise the object moves first, and transactions of up to a hundred actions follow. To resume an
        interrupted move, repeat the call, or call ``move_tree()`` of the object as it is stored then. ``post_save`` is
        sent for the object alone, after all others are updated.
        """
        run(moving.move(self, changes, current(), tree=True))

    async def amove_tree(self: Any, **changes: object) -> None:
        """Do what ``move_tree()`` does; an overridden ``move_tree()`` is called in a thread."""
        if are_plain(self.__class__, ("move_tree",)) and creates_plain_objects(type(self)):
            await moving.move(self, changes, current(), tree=True)
        else:
            await sync_to_async(self.move_tree)(**changes)

    # Templates call none of them.
    move.alters_data = amove.alters_data = True  # type: ignore[attr-defined]
    move_tree.alters_data = amove_tree.alters_data = True  # type: ignore[attr-defined]
