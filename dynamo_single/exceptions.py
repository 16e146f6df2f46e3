"""Every error that the app raises.

One base, ``DynamoSingleError``; each error also derives from what Django or Python code already catches, so that
``except IntegrityError`` or ``except ObjectDoesNotExist`` keeps working. botocore's and PynamoDB's errors are the
``__cause__``. This module must not know tables, models or requests.
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import InvalidOperation
from typing import Any

from django.core import exceptions
from django.core.exceptions import (
    FieldError,
    ImproperlyConfigured,
    MultipleObjectsReturned,
    ObjectDoesNotExist,
    SuspiciousOperation,
)
from django.core.management.base import CommandError
from django.db import DatabaseError, DataError, IntegrityError, NotSupportedError, OperationalError
from django.db.models import ProtectedError
from django.db.transaction import TransactionManagementError
from pynamodb.exceptions import DoesNotExist as PynamoDBDoesNotExist


class DynamoSingleError(Exception):
    """Base of every error of this app."""


class ConfigurationError(DynamoSingleError, ImproperlyConfigured):
    """A setting, a model or a key template is wrong; raised at start-up."""


class NotSupported(DynamoSingleError, NotSupportedError):
    """Something of Django or PynamoDB that DynamoDB has no exact answer for."""


class NotCountable(NotSupported, TypeError):
    """A cache entry is no integer, so that nothing can be added to it; Django's own caches raise ``TypeError`` too."""


class ImmutableAttribute(NotSupported):
    """A stored object's attribute that is declared ``immutable=True`` is to be changed; nothing was written.

    ``label`` is the model's, ``field`` the attribute's name.
    """

    def __init__(self, *, label: str, field: str) -> None:
        super().__init__(
            f"{label}.{field} is immutable: it has the value that it was created with, and no write changes it; "
            "nothing was written. Leave it as it is, or create another object with the other value and delete this one."
        )
        self.label = label
        self.field = field

    def __reduce__(self) -> tuple[object, ...]:
        return _immutable, (self.label, self.field)


def _immutable(label: str, field: str) -> ImmutableAttribute:
    return ImmutableAttribute(label=label, field=field)


class FetchBlocked(DynamoSingleError, getattr(exceptions, "FieldFetchBlocked", FieldError)):  # type: ignore[misc]
    """Something that was not read with an object is touched, and its fetch mode is ``FETCH_RAISE``.

    It derives from Django's ``FieldFetchBlocked``, which Django has since 6.1.
    """


class NoAccessPattern(NotSupported):
    """No declared key can answer the query, and scanning was not allowed."""


class KeyNotFilled(NotSupported):
    """Only a key, a claim or an attribute answers the query that not every item has yet; nothing was read."""


class TooManyMatches(NotSupported):
    """More objects match than the caller allowed to be worked on in memory; nothing was cut off, there is no result."""

    def __init__(self, message: str, *, limit: int) -> None:
        super().__init__(message)
        self.limit = limit


class TooManyHolders(NotSupported):
    """More objects than ``CopiedAttribute(max_holders=...)`` allows would copy a change; nothing was written."""

    def __init__(self, message: str, *, limit: int) -> None:
        super().__init__(message)
        self.limit = limit


class TooManyReads(NotSupported):
    """A query's filter left out more items, read for nothing, than ``MAX_READS`` or ``allow_reads()`` allows."""

    def __init__(self, message: str, *, limit: int) -> None:
        super().__init__(message)
        self.limit = limit


class UnknownField(DynamoSingleError, FieldError):
    """A query names a field or a lookup that the model does not have."""


class InvalidValue(DynamoSingleError, ValueError):
    """A value has the wrong type or form for its attribute.

    ``words`` says so for the people who fill in forms: a text, or what becomes one in the language that is active.
    """

    def __init__(self, *args: object, words: object = None) -> None:
        super().__init__(*args)
        self.words = words

    def in_words(self) -> str:
        """What forms say: the words of this error, or of the one that it was raised from; else its message."""
        error: BaseException | None = self
        while isinstance(error, InvalidValue):
            if error.words is not None:
                return str(error.words)
            error = error.__cause__
        return str(self)


class TooManyDigits(InvalidValue, InvalidOperation):
    """A number has more than the ``max_digits`` of its attribute; Django raises ``decimal.InvalidOperation``."""


class UnreadableItem(InvalidValue):
    """A stored item holds what its attribute cannot read: another type, or no value of this one."""


class MissingValue(InvalidValue, IntegrityError):
    """An attribute that is required has no value; SQL databases call that a violation of NOT NULL."""


class EmptyKeyPart(MissingValue):
    """A key needs a value that is missing or empty."""


class DisallowedLookup(DynamoSingleError, FieldError, SuspiciousOperation):
    """A query names a secret after ``without_secrets()``; nothing was read, and Django responds with status 400."""


class InvalidCursor(DynamoSingleError, SuspiciousOperation):
    """A page's cursor was changed or forged, or is not of this query; Django answers it with status 400."""


class ItemTooLarge(DynamoSingleError, DataError):
    """An item is larger than DynamoDB stores (400 KB)."""


class ObjectMissing(DynamoSingleError, ObjectDoesNotExist, PynamoDBDoesNotExist):
    """Base of every model's ``DoesNotExist``."""


class SeveralObjects(DynamoSingleError, MultipleObjectsReturned):
    """Base of every model's ``MultipleObjectsReturned``."""


class UnexpectedItem(DynamoSingleError, DatabaseError):
    """A read met an item that is not of the model that was asked for."""


class SchemaVersionError(UnexpectedItem):
    """An item is of a schema version that this code cannot read: a newer one, or one that no upgrade leads on from.

    So is one whose upgrade failed. Nothing was written.
    """


class OutdatedKey(DynamoSingleError, DatabaseError):
    """An item is stored under another key than its model's templates give by now; nothing was written."""


class FormNotApplied(DynamoSingleError, OperationalError):
    """The table's items have another form than the model: a migration is not applied. Nothing was read or written."""


class ForeignTable(DynamoSingleError, ImproperlyConfigured, CommandError):
    """Another project has marked the table as its own; nothing was read or written."""


class NotRolledBack(DynamoSingleError, RuntimeError):
    """A block of Django's ``transaction.atomic()`` failed after writes to DynamoDB, or must not write there at all."""


class NotRolledBackWarning(RuntimeWarning):
    """The same where the engine's option ``rollback_after_writes`` does not make it an error."""


class AlreadyExists(DynamoSingleError, IntegrityError):
    """An item with this primary key exists; nothing was written."""


class UniqueViolation(DynamoSingleError, IntegrityError):
    """Another object holds this value of a unique attribute, or these of several; nothing was written.

    ``label`` is the model's, ``fields`` are the attributes' names. ``field`` and ``value`` are those of the one
    attribute; of several, the names in one text and a tuple of the values.
    """

    def __init__(self, message: str, *, label: str, field: str, value: object, fields: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.label = label
        self.field = field
        self.value = value
        self.fields = fields or (field,)


class StaleObject(DynamoSingleError, DatabaseError):
    """The stored item is not as this object was loaded; nothing was written.

    Of an object with a version, ``expected`` is the one that was read and ``found`` the one that is stored.
    """

    def __init__(self, message: str, *, expected: int | None = None, found: int | None = None) -> None:
        super().__init__(message)
        self.expected = expected
        self.found = found


class ConditionNotMet(DynamoSingleError, DatabaseError):
    """The stored item does not meet the condition that was given with a write; nothing was written.

    ``current`` is the object as it is stored, or ``None`` if it is not.
    """

    def __init__(self, message: str, *, current: object = None) -> None:
        super().__init__(message)
        self.current = current


class SourceChanged(StaleObject):
    """What an object copies, or the objects that copy from it, changed while it was written; nothing was written."""


class MissingReference(DynamoSingleError, IntegrityError):
    """An object copies from, or is counted by, another one that is not stored; nothing was written."""

    def __init__(self, message: str, *, key: tuple[str, str]) -> None:
        super().__init__(message)
        self.key = key


class StillReferenced(DynamoSingleError, ProtectedError):
    """An object cannot be deleted since others refer to it by ``on_delete=PROTECT``; nothing was written.

    ``protected_objects`` are these others, up to a hundred of them, as of Django's ``ProtectedError``.
    """

    def __str__(self) -> str:
        return str(self.args[0])


class CopiesDue(DynamoSingleError, DatabaseError):
    """An object is saved, and not every copy of its attributes has followed yet: save it again."""


class PendingWrite(DynamoSingleError, TransactionManagementError):
    """A read concerns what an ``atomic()`` block has written and not sent yet; nothing was read."""


class RequestFailed(DynamoSingleError, DatabaseError):
    """DynamoDB refused a request; ``code`` is DynamoDB's own error code."""

    def __init__(self, message: str, *, code: str = "") -> None:
        super().__init__(message)
        self.code = code


class BulkError(DynamoSingleError, DatabaseError):
    """Writing many objects failed midway; what is written stays.

    ``written`` and ``not_tried`` are the ``pk`` of objects, ``failed`` the error of each ``pk`` that failed. An object
    of which nothing is reported did not meet the conditions, or was not read.
    """

    def __init__(
        self,
        message: str,
        *,
        written: tuple[object, ...],
        failed: Mapping[Any, Exception],
        not_tried: tuple[object, ...] = (),
    ) -> None:
        super().__init__(message)
        self.written = written
        self.failed = failed
        self.not_tried = not_tried


class BulkIntegrityError(BulkError, IntegrityError):
    """Writing many objects failed midway, by primary keys and unique values that are taken; what is written stays."""


class ConditionFailed(RequestFailed):
    """A condition did not hold; ``item`` is the stored item, where DynamoDB returned it.

    ``retried`` says that the request was sent more than once, so that an earlier one may have been carried out.
    """

    def __init__(
        self, message: str, *, code: str = "", item: dict[str, Any] | None = None, retried: bool = False
    ) -> None:
        super().__init__(message, code=code)
        self.item = item
        self.retried = retried


class TransactionCancelled(RequestFailed):
    """A transaction was cancelled as a whole; ``reasons`` has one entry for each of its actions, ``None`` if it passed.

    Each reason is a mapping with ``Code``, ``Message`` and, where DynamoDB returned it, ``Item``.
    """

    def __init__(self, message: str, *, code: str = "", reasons: tuple[dict[str, Any] | None, ...] = ()) -> None:
        super().__init__(message, code=code)
        self.reasons = reasons


class TokenReused(RequestFailed):
    """A transaction with this token was carried out within the last ten minutes, with other contents."""


class TableUnavailable(RequestFailed, OperationalError, CommandError):
    """The table cannot be used at present; Django's commands say so in one line, without a traceback."""


class TableNotFound(TableUnavailable):
    """The table does not exist."""


class TableMismatch(TableUnavailable):
    """The table exists with other keys or indexes than the settings name."""


class EndpointUnreachable(TableUnavailable):
    """Nothing answers at the endpoint, or what answers is not DynamoDB."""


class OutcomeUnknown(EndpointUnreachable):
    """A write was sent and no answer of DynamoDB came: it may have been carried out. Read before you repeat it."""


class Throttled(TableUnavailable):
    """DynamoDB asks to slow down, and the retries are used up."""


class Conflict(TableUnavailable):
    """Another transaction was writing the same items, and the retries are used up; nothing was written."""


class AccessDenied(TableUnavailable):
    """The credentials are missing, wrong or lack a permission."""


class InvalidCredentials(AccessDenied):
    """A key, a secret or a session token has a line break, or a letter beyond Latin-1: nothing was sent."""


class EngineNotStarted(DynamoSingleError, RuntimeError):
    """A local engine is missing, its port is busy, or it did not come up."""


class ParentInTrash(DynamoSingleError, IntegrityError):
    """An object cannot be restored while the one that it belongs to is in the trash; nothing was written."""


class AccessOutsideTest(AssertionError):
    """A test sent a request to a table that is not its own, or where Django lets it reach no database.

    Not a ``DynamoSingleError``: code under test that catches those must not hide it, as with Django's own
    ``DatabaseOperationForbidden``.
    """


class MigrationStopped(DynamoSingleError, CommandError):
    """Work on a table's items ended before it was done; what is done stays, and running it again goes on from there."""


class MigrationRunning(MigrationStopped):
    """Another operator carries the same work out at present; ``holder`` says who, as ``host:process``."""

    def __init__(self, message: str, *, holder: str = "") -> None:
        super().__init__(message)
        self.holder = holder


class MigrationIncomplete(MigrationStopped):
    """Work on a table's items went through, and some of them could not be changed.

    ``failed`` is how many, ``failures`` are the keys of the first ones with the reason of each.
    """

    def __init__(self, message: str, *, failed: int, failures: tuple[tuple[tuple[str, str], str], ...] = ()) -> None:
        super().__init__(message)
        self.failed = failed
        self.failures = failures
