"""PynamoDB's ``Model`` as the base class of ours.

At run time it is PynamoDB's own. A checker sees only what our models offer of it, since the rest (``save``, ``delete``,
``DoesNotExist``, ``Meta``) contradicts Django's. It must not know anything of this app.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dynamo_single.table.request import NewItem

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from types import TracebackType
    from typing import Any, Generic, Self, TypeVar

    from pynamodb.expressions.condition import Condition
    from pynamodb.pagination import ResultIterator

    T = TypeVar("T")

    class BatchWrite(Generic[T]):
        def __init__(self, model: type[T], auto_commit: bool = True) -> None: ...
        def save(self, put_item: T) -> None: ...
        def delete(self, del_item: T) -> None: ...
        def commit(self) -> None: ...
        def __enter__(self) -> Self: ...
        def __exit__(
            self,
            kind: type[BaseException] | None,
            error: BaseException | None,
            traceback: TracebackType | None,
        ) -> None: ...

    class PynamoDBModel:
        attribute_values: dict[str, Any]

        @classmethod
        def get(
            cls,
            hash_key: object,
            range_key: object = None,
            consistent_read: bool = False,
            attributes_to_get: Sequence[str] | None = None,
        ) -> Self: ...
        @classmethod
        def batch_get(
            cls,
            items: Iterable[object],
            consistent_read: bool | None = None,
            attributes_to_get: Sequence[str] | None = None,
        ) -> Iterator[Self]: ...
        @classmethod
        def batch_write(cls, auto_commit: bool = True) -> BatchWrite[Self]: ...
        @classmethod
        def query(
            cls,
            hash_key: object,
            range_key_condition: Condition | None = None,
            filter_condition: Condition | None = None,
            consistent_read: bool = False,
            index_name: str | None = None,
            scan_index_forward: bool | None = None,
            limit: int | None = None,
            last_evaluated_key: NewItem | None = None,
            attributes_to_get: Iterable[str] | None = None,
            page_size: int | None = None,
            rate_limit: float | None = None,
        ) -> ResultIterator[Self]: ...
        @classmethod
        def scan(
            cls,
            filter_condition: Condition | None = None,
            segment: int | None = None,
            total_segments: int | None = None,
            limit: int | None = None,
            last_evaluated_key: NewItem | None = None,
            page_size: int | None = None,
            consistent_read: bool | None = None,
            index_name: str | None = None,
            rate_limit: float | None = None,
            attributes_to_get: Sequence[str] | None = None,
        ) -> ResultIterator[Self]: ...
        @classmethod
        def count(
            cls,
            hash_key: object = None,
            range_key_condition: Condition | None = None,
            filter_condition: Condition | None = None,
            consistent_read: bool = False,
            index_name: str | None = None,
            limit: int | None = None,
            rate_limit: float | None = None,
        ) -> int: ...
        @classmethod
        def from_raw_data(cls, data: dict[str, object]) -> Self: ...

else:
    from pynamodb.models import BatchWrite
    from pynamodb.models import Model as PynamoDBModel

__all__ = ["BatchWrite", "PynamoDBModel"]
