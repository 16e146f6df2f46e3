"""Dates of the server's responses, and rejections of a signature because of its date.

AWS describes them at https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-troubleshooting.html.
"""

from __future__ import annotations

from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from typing import Any

from botocore.exceptions import ClientError

from dynamo_single.exceptions import Expired

#: The form of the header ``X-Amz-Date``.
TIMESTAMP = "%Y%m%dT%H%M%SZ"
#: The error codes for a rejected signature; it may be rejected because the clocks differ.
SKEWED = frozenset({"InvalidSignatureException", "RequestExpired", "RequestTimeTooSkewed", "SignatureDoesNotMatch"})
#: The beginning of AWS's message for a signature with a wrong key, which has the same codes.
_WRONG_KEY = "The request signature we calculated does not match"


def served_at(headers: Mapping[str, str]) -> float | None:
    """Return the header ``Date`` of a response in seconds since 1970; ``None`` if it is missing or invalid."""
    date = next((value for name, value in headers.items() if name.lower() == "date"), "")
    try:
        return parsedate_to_datetime(date).timestamp()
    except (TypeError, ValueError):
        return None


def expired(operation: str, error: Exception, deadline: float) -> Expired | None:
    """Return the error of a request whose date was rejected; ``None`` if the failure has another reason.

    ``deadline`` is the deadline of the lease when the request began. If an earlier attempt of a write did not get a
    response, the error stays ``OutcomeUnknown``. It also does for a transaction, because sending its token again with a
    later date could execute the transaction too late.
    """
    refusal = _refused_date(error)
    if refusal is None:
        return None
    told: Mapping[str, Any] = refusal.response
    date = served_at(told.get("ResponseMetadata", {}).get("HTTPHeaders", {}))
    return Expired(
        f"DynamoDB rejected {operation} because it was sent too long after the table's state was read. Nothing was "
        f"written. Begin the operation again. ({told['Error'].get('Message', '')})",
        code=str(told["Error"].get("Code", "")),
        # A second is left to the clocks of different hosts.
        is_wrongful=date is not None and date < int(deadline) - 1,
    )


def _refused_date(error: BaseException | None) -> ClientError | None:
    if not isinstance(error, ClientError):
        return None
    told: Mapping[str, Any] = error.response.get("Error", {})
    is_refused = told.get("Code") in SKEWED and not str(told.get("Message", "")).startswith(_WRONG_KEY)
    return error if is_refused else None
