"""Turn failed requests into errors of the app that contain a fix.

The module uses DynamoDB's error codes and messages and the parameters of the request, and is independent of botocore.
https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Programming.Errors.html lists the codes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from dynamo_single.conf import TableSettings
from dynamo_single.exceptions import (
    AccessDenied,
    ConditionFailed,
    Conflict,
    DynamoSingleError,
    EndpointUnreachable,
    InvalidCredentials,
    ItemTooLarge,
    OutcomeUnknown,
    RequestFailed,
    TableMismatch,
    TableNotFound,
    TableUnavailable,
    Throttled,
    TokenReused,
    TransactionCancelled,
)
from dynamo_single.table import masking
from dynamo_single.table.names import PARTITION_KEY, SORT_KEY
from dynamo_single.table.request import MAX_ITEM_SIZE, Parameters, only_reads

_ACCESS = frozenset(
    {
        "AccessDeniedException",
        "ExpiredTokenException",
        "IncompleteSignatureException",
        "InvalidClientTokenId",
        "InvalidSignatureException",
        "MissingAuthenticationTokenException",
        "UnrecognizedClientException",
    }
)
_THROTTLING = frozenset(
    {
        "LimitExceededException",
        "ProvisionedThroughputExceeded",
        "ProvisionedThroughputExceededException",
        "RequestLimitExceeded",
        "ThrottlingError",
        "ThrottlingException",
    }
)
_CONFLICT = frozenset({"TransactionConflict", "TransactionConflictException"})
_BUSY = frozenset({"ResourceInUseException", "ServiceUnavailable", "TableInUseException"})
#: How the messages of a ValidationException begin if the keys or indexes of the table differ from the settings.
_MISMATCH = (
    "The provided key element does not match the schema",
    "The number of conditions on the keys is invalid",
    "One or more parameter values were invalid: Missing the key ",
    "One or more parameter values were invalid: Type mismatch for key ",
    "One of the required keys was not given a value",
    "Query condition missed key schema element",
    "Query key condition not supported",
)


class Refusal(Struct, frozen=True):
    """An error response of DynamoDB, with its request."""

    settings: TableSettings
    operation: str
    params: Parameters
    code: str
    message: str
    answer: Mapping[str, Any]

    def error(self) -> DynamoSingleError:
        """Return the error to raise."""
        return self._of_request() or self._of_table() or self._plain()

    def _of_request(self) -> DynamoSingleError | None:
        if self.code == "ConditionalCheckFailedException":
            return ConditionFailed(
                f"The condition on {self._item()} does not hold. Nothing was written.",
                code=self.code,
                item=self.answer.get("Item"),
                retried=bool(self.answer.get("ResponseMetadata", {}).get("RetryAttempts")),
            )
        if self.code == "TransactionCanceledException":
            return self._cancelled()
        if self.code == "ValidationException":
            return self._invalid(self.message)
        if self.code == "IdempotentParameterMismatchException":
            token = self.params.get("ClientRequestToken")
            return TokenReused(
                f"A transaction with the token {token!r} was executed within the last ten minutes with other "
                "contents. Nothing was written. Use a different token for each block.",
                code=self.code,
            )
        return None

    def _of_table(self) -> DynamoSingleError | None:
        table, place = self.settings.table_name, self.settings.place
        if self.code == "ResourceNotFoundException":
            setup = self.settings.command("dynamo_setup")
            return TableNotFound(
                f"The table {table!r} does not exist at {place}. Run `{setup}`, or correct the "
                f"table's name in DYNAMO_SINGLE[{self.settings.alias!r}].",
                code=self.code,
            )
        if self.code in _THROTTLING:
            return Throttled(
                f"DynamoDB throttled {self.operation} on {table!r}, also after {self.settings.max_attempts} "
                f"attempts. Try again later, or give the table more capacity. ({self.code}: {self.message})",
                code=self.code,
            )
        if self.code in _ACCESS:
            return access_denied(self.settings, self.operation, f"{self.code}: {self.message}", code=self.code)
        if self.code in _CONFLICT:
            return Conflict(
                f"Another transaction was writing {self._item()}. Nothing was written. Try again. ({self.message})",
                code=self.code,
            )
        if self.code == "InternalServerError" and not only_reads(self.operation):
            # AWS: "Error handling with DynamoDB", HTTP status 500: a write may have succeeded or failed.
            return _unknown_outcome(
                self.operation,
                f"DynamoDB failed while it executed {self.operation} on {table!r} ({self.code}: {self.message})",
                code=self.code,
            )
        if self.code in _BUSY or self.code == "InternalServerError":
            return TableUnavailable(
                f"The table {table!r} at {place} cannot do {self.operation} at this time. Try again shortly. "
                f"({self.code}: {self.message})",
                code=self.code,
            )
        if self.code.isdigit() or self.code in {"", "Unknown"}:
            # DynamoDB always names its errors; a bare HTTP status comes from another server.
            status = self.answer.get("ResponseMetadata", {}).get("HTTPStatusCode", self.code)
            return invalid_response(self.settings, self.operation, f"its HTTP status is {status}")
        return None

    def _plain(self) -> DynamoSingleError:
        return RequestFailed(
            f"DynamoDB refused {self.operation} on {self.settings.table_name!r}: {self.message} ({self.code})",
            code=self.code,
        )

    def _invalid(self, message: str, action: int | None = None) -> DynamoSingleError | None:
        table = self.settings.table_name
        if message.startswith("Item size") and "exceeded the maximum allowed size" in message:
            item = self._item(action)
            return ItemTooLarge(
                f"{item[0].upper()}{item[1:]} is larger than the {MAX_ITEM_SIZE // 1024} KB that DynamoDB stores in "
                "one item. Nothing was written. Split it into several items, or store the large part elsewhere."
            )
        if "does not have the specified index" in message:
            index = self.params.get("IndexName", "the requested one")
            return TableMismatch(
                f"The table {table!r} at {self.settings.place} has no index {index!r}. Run "
                f"`{self.settings.command('dynamo_setup --check')}` to list the differences, and "
                f"`{self.settings.command('dynamo_setup')}` to add the index.",
                code=self.code,
            )
        if "backfilling global secondary index" in message:
            return TableUnavailable(
                f"An index of the table {table!r} is still being built. Try again when "
                f"`{self.settings.command('dynamo_status')}` shows it as active. ({message})",
                code=self.code,
            )
        if message.startswith(_MISMATCH):
            setting = f"DYNAMO_SINGLE[{self.settings.alias!r}]"
            wanted = " and ".join(repr(str(key)) for key in self.settings.shape.keys)
            return TableMismatch(
                f"The table {table!r} at {self.settings.place} has other keys than {wanted}: {message}. "
                f"DynamoDB cannot change the keys of a table. Set another table in {setting}, or correct "
                f"{setting}['KEY'], or PARTITION_KEY and SORT_KEY there. Run "
                f"`{self.settings.command('dynamo_setup --check')}` to list the differences.",
                code=self.code,
            )
        return None

    def _cancelled(self) -> DynamoSingleError:
        """Return the error of a cancelled transaction, or of its cause if there is only one kind.

        If the number of reasons differs from the number of actions, the error does not assign reasons to actions.
        """
        reasons = tuple(
            None if reason.get("Code") in {None, "None"} else dict(reason)
            for reason in self.answer.get("CancellationReasons", ())
        )
        told = [reason for reason in reasons if reason]
        actions = self.params.get("TransactItems")
        fits = actions is None or len(reasons) == len(actions)
        for number, reason in enumerate(reasons):
            if reason and reason["Code"] == "ValidationError":
                error = self._invalid(reason.get("Message") or "", number if fits else None)
                if error is not None:
                    return error
        which = "; ".join(
            (f"action {number} on {self._item(number)}: {reason['Code']}" if fits else f"{reason['Code']}")
            + (f" ({reason['Message']})" if reason.get("Message") else "")
            for number, reason in enumerate(reasons)
            if reason
        )
        if told and all(reason["Code"] in _CONFLICT for reason in told):
            return Conflict(f"Another transaction was in the way. Nothing was written: {which}.", code=told[0]["Code"])
        if told and all(reason["Code"] in _THROTTLING for reason in told):
            return Throttled(f"DynamoDB throttled the transaction: {which}. Nothing was written.", code=told[0]["Code"])
        return TransactionCancelled(
            f"The transaction was cancelled. Nothing was written: {which or self.message}.",
            code=self.code,
            reasons=reasons if fits else (),
        )

    def _item(self, action: int | None = None) -> str:
        params: Parameters = self.params
        actions = params.get("TransactItems", ())
        if action is None and len(actions) == 1:
            action = 0
        if action is not None:
            params = next(iter(actions[action].values()), {}) if action < len(actions) else {}
        key = params.get("Key") or params.get("Item") or {}
        parts = [next(iter(key[name].values()), "") for name in (PARTITION_KEY, SORT_KEY) if name in key]
        if len(parts) == 2:
            parts = [*masking.shown_key(self.settings.alias, *parts)]
        return f"the item {' / '.join(map(repr, parts))}" if parts else "an item"


def unreachable(settings: TableSettings, operation: str, cause: str) -> EndpointUnreachable:
    """Return the error of a request without a connection, which was not sent."""
    advice = (
        f"Start the local engine with `{settings.command('dynamo_local')}`"
        if settings.is_local
        else "Check the network and the region"
    )
    return EndpointUnreachable(
        f"No server responds at {settings.place}, so {operation} was not sent. {advice}, or correct the "
        f"endpoint in DYNAMO_SINGLE[{settings.alias!r}]. ({cause})"
    )


def budget_spent(settings: TableSettings, operation: str, bound: str) -> EndpointUnreachable:
    """Return the error of a request that was not sent, because earlier ones used up the budget."""
    return EndpointUnreachable(
        f"{operation} on {settings.table_name!r} was not sent: earlier requests have used up the time that all of them "
        f"may wait for {settings.place} ({bound}). Nothing was written. Try again, or raise the setting."
    )


def no_response(settings: TableSettings, operation: str, cause: str) -> EndpointUnreachable:
    """Return the error of a request that was sent and got no response."""
    return _unknown_outcome(operation, f"{settings.place} accepted {operation} and did not respond ({cause})")


def invalid_response(settings: TableSettings, operation: str, sign: str) -> EndpointUnreachable:
    """Return the error of a response that is damaged or not from DynamoDB."""
    return _unknown_outcome(
        operation,
        f"The server at {settings.place} is not DynamoDB, or its response to {operation} was damaged: {sign}",
        f" If this happens again, correct the endpoint in DYNAMO_SINGLE[{settings.alias!r}], or start an engine there "
        f"with `{settings.command('dynamo_local')}`.",
    )


def cancelled(settings: TableSettings, operation: str) -> str:
    """Return the note of a write that was cancelled after it was sent."""
    return (
        f"{operation} on {settings.table_name!r} was cancelled while it was running, so it may have been executed. "
        "Read the item before you repeat it."
    )


def _unknown_outcome(operation: str, what: str, advice: str = "", *, code: str = "") -> EndpointUnreachable:
    if only_reads(operation):
        return EndpointUnreachable(f"{what}. Nothing was read; try again.{advice}")
    return OutcomeUnknown(
        f"{what}, so it may have been executed. Read the item before you repeat it.{advice}", code=code
    )


def missing_credentials(settings: TableSettings, operation: str, cause: str) -> AccessDenied:
    """Return the error of a request that was not sent, because botocore found no credentials."""
    if settings.endpoint_url is None:
        local = f"To use a local engine, set its address in DYNAMO_SINGLE[{settings.alias!r}]['ENDPOINT_URL']."
    elif settings.is_local:
        local = "An engine on this machine does not need any, unless the environment sets some."
    else:
        local = "If your own engine does not check them, set the last two to any text."
    return AccessDenied(
        f"There are no credentials for {settings.place}, so {operation} on {settings.table_name!r} was not sent. Give "
        "the machine a role, or set the environment variable AWS_PROFILE, or AWS_ACCESS_KEY_ID and "
        f"AWS_SECRET_ACCESS_KEY. {local} ({cause})"
    )


def unsendable_credentials(settings: TableSettings, operation: str, cause: str) -> InvalidCredentials:
    """Return the error of a request that was not sent, because an HTTP header cannot contain its credentials."""
    return InvalidCredentials(
        f"{cause}, which an HTTP header cannot contain, so {operation} on {settings.table_name!r} was not sent. "
        "Set it again without the line break at the end of a copied or mounted file."
    )


def access_denied(settings: TableSettings, operation: str, cause: str, *, code: str = "") -> AccessDenied:
    """Return the error of credentials that are wrong or do not have the permission."""
    return AccessDenied(
        f"{operation} on {settings.table_name!r} at {settings.place} was not allowed. Credentials come from the AWS "
        f"environment variables, profile or role, and need permission for it. ({cause})",
        code=code,
    )
