"""Every error that the app raises.

All derive from ``DynamoSingleError``. Each also derives from an exception that Django or Python code already handles,
so that ``except IntegrityError`` or ``except ObjectDoesNotExist`` works. Errors of botocore and PynamoDB are the
``__cause__``. This module must not depend on tables, models or requests.
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
    """The base of every error of this app."""


class ConfigurationError(DynamoSingleError, ImproperlyConfigured):
    """A setting, a model or a key template is wrong. Raised at start-up."""


class NotSupported(DynamoSingleError, NotSupportedError):
    """DynamoDB has no exact equivalent for a feature of Django or PynamoDB."""


class NotCountable(NotSupported, TypeError):
    """A cache entry is not an integer and cannot be added to. Django's own caches raise ``TypeError`` too."""


class ImmutableAttribute(NotSupported):
    """An attribute with ``immutable=True`` of a stored object would change. Nothing was written.

    ``label`` is the model's, and ``field`` the attribute's name.
    """

    def __init__(self, *, label: str, field: str) -> None:
        super().__init__(
            f"{label}.{field} is immutable and cannot be changed after the object is created. Nothing was "
            "written. To use another value, create a new object and delete this one."
        )
        self.label = label
        self.field = field

    def __reduce__(self) -> tuple[object, ...]:
        return _immutable, (self.label, self.field)


def _immutable(label: str, field: str) -> ImmutableAttribute:
    return ImmutableAttribute(label=label, field=field)


class FetchBlocked(DynamoSingleError, getattr(exceptions, "FieldFetchBlocked", FieldError)):  # type: ignore[misc]
    """A value that was not read with an object is accessed, and its fetch mode is ``FETCH_RAISE``.

    It derives from Django's ``FieldFetchBlocked``, which exists since Django 6.1.
    """


class NoAccessPattern(NotSupported):
    """No declared key supports the query, and ``allow_scan()`` was not called."""


class KeyNotFilled(NotSupported):
    """The query needs a key, a claim or an attribute that is not complete yet; nothing was read."""


class TooManyMatches(NotSupported):
    """More objects match than the caller allowed in memory. There is no result, not even a partial one."""

    def __init__(self, message: str, *, limit: int) -> None:
        super().__init__(message)
        self.limit = limit


class TooManyHolders(NotSupported):
    """More objects than ``CopiedAttribute(max_holders=...)`` allows would copy a change. Nothing was written."""

    def __init__(self, message: str, *, limit: int) -> None:
        super().__init__(message)
        self.limit = limit


class TooManyReads(NotSupported):
    """A query's filter discarded more items than ``MAX_READS`` or ``allow_reads()`` allows."""

    def __init__(self, message: str, *, limit: int) -> None:
        super().__init__(message)
        self.limit = limit


class UnknownField(DynamoSingleError, FieldError):
    """A query names a field or a lookup that the model does not have."""


class InvalidValue(DynamoSingleError, ValueError):
    """A value has the wrong type or form for its attribute.

    ``words`` is the message for users of forms: a text, or a lazy translation.
    """

    def __init__(self, *args: object, words: object = None) -> None:
        super().__init__(*args)
        self.words = words

    def in_words(self) -> str:
        """Return the message for users, of this error or its cause; otherwise the error's own message."""
        error: BaseException | None = self
        while isinstance(error, InvalidValue):
            if error.words is not None:
                return str(error.words)
            error = error.__cause__
        return str(self)


class TooManyDigits(InvalidValue, InvalidOperation):
    """A number has more than its attribute's ``max_digits``. Django raises ``decimal.InvalidOperation``."""


class UnreadableItem(InvalidValue):
    """A stored item has a value that its attribute cannot read: another type, or an invalid value."""


class MissingValue(InvalidValue, IntegrityError):
    """A required attribute has no value, which SQL databases report as a violation of NOT NULL."""


class EmptyKeyPart(MissingValue):
    """A key needs a value that is missing or empty."""


class DisallowedLookup(DynamoSingleError, FieldError, SuspiciousOperation):
    """A query names a secret after ``without_secrets()``. Nothing was read, and Django responds with status 400."""


class InvalidCursor(DynamoSingleError, SuspiciousOperation):
    """A page's cursor was changed or forged, or belongs to another query. Django responds with status 400."""


class ItemTooLarge(DynamoSingleError, DataError):
    """An item is larger than DynamoDB stores: 400 KB (AWS developer guide, "Quotas in Amazon DynamoDB")."""


class ObjectMissing(DynamoSingleError, ObjectDoesNotExist, PynamoDBDoesNotExist):
    """The base of every model's ``DoesNotExist``."""


class SeveralObjects(DynamoSingleError, MultipleObjectsReturned):
    """The base of every model's ``MultipleObjectsReturned``."""


class UnexpectedItem(DynamoSingleError, DatabaseError):
    """A read found an item of another model."""


class SchemaVersionError(UnexpectedItem):
    """Deprecated: no longer raised. ``FormNotApplied`` is raised while items of earlier schema versions may exist."""


class OutdatedKey(DynamoSingleError, DatabaseError):
    """An item is stored under another key than its model's templates now yield. Nothing was written."""


class FormNotApplied(DynamoSingleError, OperationalError):
    """The schema of the table's items differs from the model's: a migration is not applied."""


class ForeignTable(DynamoSingleError, ImproperlyConfigured, CommandError):
    """Another project has marked the table as its own; nothing was read or written."""


class NotRolledBack(DynamoSingleError, RuntimeError):
    """A block of Django's ``transaction.atomic()`` failed after writes to DynamoDB, or must not contain any."""


class NotRolledBackWarning(RuntimeWarning):
    """The warning for the same event, unless the engine's option ``rollback_after_writes`` makes it an error."""


class AlreadyExists(DynamoSingleError, IntegrityError):
    """An item with this primary key exists. Nothing was written."""


class UniqueViolation(DynamoSingleError, IntegrityError):
    """Another object has this value of a unique attribute or attributes. Nothing was written.

    ``label`` is the model's, and ``fields`` contains the attributes' names. ``field`` and ``value`` are those of a
    single attribute; for several attributes, a text with the names and a tuple of the values.
    """

    def __init__(self, message: str, *, label: str, field: str, value: object, fields: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.label = label
        self.field = field
        self.value = value
        self.fields = fields or (field,)


class CheckViolation(DynamoSingleError, IntegrityError):
    """An object would violate the ``CheckConstraint`` with this ``name``. Nothing was written."""

    def __init__(self, message: str, *, name: str) -> None:
        super().__init__(message)
        self.name = name


class StaleObject(DynamoSingleError, DatabaseError):
    """The stored item has changed since this object was loaded. Nothing was written.

    For an object with a version, ``expected`` is the version that was read and ``found`` the stored one.
    """

    def __init__(self, message: str, *, expected: int | None = None, found: int | None = None) -> None:
        super().__init__(message)
        self.expected = expected
        self.found = found


class ConditionNotMet(DynamoSingleError, DatabaseError):
    """The stored item does not meet the condition of a write. Nothing was written.

    ``current`` is the stored object, or ``None`` if there is none.
    """

    def __init__(self, message: str, *, current: object = None) -> None:
        super().__init__(message)
        self.current = current


class SourceChanged(StaleObject):
    """The source of an object's copy, or an object with a copy of it, changed concurrently. Nothing was written."""


class MissingReference(DynamoSingleError, IntegrityError):
    """The source of an object's copy, or the parent that counts the object, is not stored. Nothing was written."""

    def __init__(self, message: str, *, key: tuple[str, str]) -> None:
        super().__init__(message)
        self.key = key


class StillReferenced(DynamoSingleError, ProtectedError):
    """An object cannot be deleted because others refer to it with ``on_delete=PROTECT``. Nothing was written.

    ``protected_objects`` contains up to a hundred of these objects, as for Django's ``ProtectedError``.
    """

    def __str__(self) -> str:
        return str(self.args[0])


class CopiesDue(DynamoSingleError, DatabaseError):
    """An object was saved, but not all copies of its attributes are updated yet: save it again."""


class PendingWrite(DynamoSingleError, TransactionManagementError):
    """A read concerns writes of an ``atomic()`` block that are not sent yet; nothing was read."""


class RequestFailed(DynamoSingleError, DatabaseError):
    """DynamoDB rejected a request; ``code`` is DynamoDB's error code."""

    def __init__(self, message: str, *, code: str = "") -> None:
        super().__init__(message)
        self.code = code


class BulkError(DynamoSingleError, DatabaseError):
    """Writing many objects failed midway; completed writes stay.

    ``written`` and ``not_tried`` contain the ``pk`` of objects, and ``failed`` the error for each failed ``pk``. An
    object that none of them names did not meet the conditions, or was not read.
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
    """Writing many objects failed midway because of taken primary keys or unique values; completed writes stay."""


class ConditionFailed(RequestFailed):
    """A condition was not met; ``item`` is the stored item if DynamoDB returned it.

    ``retried`` is set if the request was sent more than once, so that an earlier attempt may have succeeded.
    """

    def __init__(
        self, message: str, *, code: str = "", item: dict[str, Any] | None = None, retried: bool = False
    ) -> None:
        super().__init__(message, code=code)
        self.item = item
        self.retried = retried


class TransactionCancelled(RequestFailed):
    """A transaction was cancelled; ``reasons`` has one entry for each of its actions, ``None`` if it passed.

    Each reason is a mapping with ``Code``, ``Message`` and, if DynamoDB returned it, ``Item``.
    """

    def __init__(self, message: str, *, code: str = "", reasons: tuple[dict[str, Any] | None, ...] = ()) -> None:
        super().__init__(message, code=code)
        self.reasons = reasons


class TokenReused(RequestFailed):
    """A transaction with this token but other contents was executed within the last ten minutes."""


class TableUnavailable(RequestFailed, OperationalError, CommandError):
    """The table cannot be used now. Django's commands print the error in one line, without a traceback."""


class TableNotFound(TableUnavailable):
    """The table does not exist."""


class TableMismatch(TableUnavailable):
    """The table has other keys or indexes than the settings name."""


class EndpointUnreachable(TableUnavailable):
    """The endpoint does not respond, or not as DynamoDB does."""


class OutcomeUnknown(EndpointUnreachable):
    """A write was sent without a response of DynamoDB, so that it may have succeeded. Read before you repeat it."""


class Throttled(TableUnavailable):
    """DynamoDB throttles the request, and the retries are used up."""


class Conflict(TableUnavailable):
    """Another transaction was writing the same items, and the retries are used up. Nothing was written."""


class BeginAgain(TableUnavailable):
    """The state of the table changed while an operation was running, which begins again under the new state.

    The app catches the error. If it reaches a project's code, begin the operation again.
    """


class Superseded(BeginAgain):
    """A newer revision replaced the state before a request was sent. Nothing was written."""


class Expired(BeginAgain):
    """DynamoDB rejected a request that was sent too long after the state was read. Nothing was written.

    ``is_wrongful`` is set if the request was not too late by the server's own clock.
    """

    def __init__(self, message: str, *, code: str = "", is_wrongful: bool = False) -> None:
        super().__init__(message, code=code)
        self.is_wrongful = is_wrongful


class AccessDenied(TableUnavailable):
    """The credentials are missing or wrong, or lack a permission."""


class InvalidCredentials(AccessDenied):
    """A key, a secret or a session token contains a line break or a character beyond Latin-1; no request was sent."""


class EngineNotStarted(DynamoSingleError, RuntimeError):
    """A local engine is missing, its port is busy, or it did not start."""


class ParentInTrash(DynamoSingleError, IntegrityError):
    """An object cannot be restored while its parent is in the trash. Nothing was written."""


class AccessOutsideTest(AssertionError):
    """A test sent a request to another table than its test table, or without database access.

    It is not a ``DynamoSingleError``, so that code under test which catches those does not hide it, as with Django's
    own ``DatabaseOperationForbidden``.
    """


class MigrationStopped(DynamoSingleError, CommandError):
    """Work on a table's items ended early. Completed work stays; run it again to continue."""


class MigrationRunning(MigrationStopped):
    """Another operator is running the same work; ``holder`` is that process, as ``host:process``."""

    def __init__(self, message: str, *, holder: str = "") -> None:
        super().__init__(message)
        self.holder = holder


class MigrationIncomplete(MigrationStopped):
    """Work on a table's items is complete, but some items could not be changed.

    ``failed`` is their number, and ``failures`` contains the keys of the first ones, each with the reason.
    """

    def __init__(self, message: str, *, failed: int, failures: tuple[tuple[tuple[str, str], str], ...] = ()) -> None:
        super().__init__(message)
        self.failed = failed
        self.failures = failures
