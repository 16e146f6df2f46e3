"""Requests are retried like in botocore's standard mode, with pauses of the same length."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any
from unittest import mock

import botocore.session
import pytest
from botocore.awsrequest import AWSResponse
from botocore.retries import standard
from botocore.retries.quota import RetryQuota as BotocoreQuota
from hypothesis import given
from hypothesis import strategies as st

from dynamo_single.table.http.retries import Failure, RetryQuota, pause_after

CODES = (
    *standard.ThrottledRetryableChecker._THROTTLED_ERROR_CODES,
    *standard.TransientRetryableChecker._TRANSIENT_ERROR_CODES,
    "ConditionalCheckFailedException",
    "InternalServerError",
    "TransactionCanceledException",
    "TransactionConflictException",
    "ValidationException",
    "500",
)
STATUSES = (400, 403, 404, 413, 500, 501, 502, 503, 504)
#: Codes with the HTTP statuses; 429 comes from a proxy, which names no error of DynamoDB.
REFUSALS = st.tuples(st.sampled_from(CODES), st.sampled_from(STATUSES)) | st.just(("429", 429))
WISHES = st.none() | st.integers(0, 60_000)


@pytest.fixture(scope="module")
def operation() -> Any:
    """botocore's description of an operation, with the errors that it knows."""
    return botocore.session.get_session().get_service_model("dynamodb").operation_model("GetItem")


def context_of(operation: Any, code: str, status: int, wish: int | None, attempt: int = 1) -> Any:
    """A failed attempt as botocore has it."""
    headers = {} if wish is None else {"x-amz-retry-after": str(wish)}
    response = AWSResponse("http://h/", status, headers, SimpleNamespace(stream=lambda: iter(())))  # type: ignore[arg-type]
    return standard.RetryContext(attempt, operation, {"Error": {"Code": code}}, response)


def throttling_detector() -> Any:
    """Return botocore's detector of throttling."""
    return standard.ThrottlingErrorDetector(standard.RetryEventAdapter())


@given(refusal=REFUSALS)
def test_an_attempt_follows_where_botocores_does(operation: Any, refusal: tuple[str, int]) -> None:
    """This includes any code and HTTP status."""
    code, status = refusal
    botocores = standard.StandardRetryConditions(max_attempts=3).is_retryable(context_of(operation, code, status, None))
    assert Failure(code, status).passing == botocores


def test_an_attempt_follows_where_no_answer_came() -> None:
    """A connection that failed may work the next time."""
    assert Failure().passing


@given(refusal=REFUSALS, wish=WISHES, attempt=st.integers(1, 12), chance=st.floats(0, 1, exclude_max=True))
def test_a_pause_is_as_long_as_botocores(
    operation: Any, refusal: tuple[str, int], wish: int | None, attempt: int, chance: float
) -> None:
    """The probability is the same, and the server's requested pause is used."""
    code, status = refusal
    botocores = standard.ExponentialBackoff(
        random=lambda: chance, service_name="dynamodb", throttling_detector=throttling_detector()
    ).delay_amount(context_of(operation, code, status, wish, attempt))
    with mock.patch("random.random", return_value=chance):
        ours = pause_after(Failure(code, status, None if wish is None else wish / 1000), attempt)
    assert ours == pytest.approx(botocores)


@given(st.lists(st.tuples(REFUSALS, st.booleans()), max_size=120))
def test_the_quota_is_botocores(operation: Any, failures: list[tuple[tuple[str, int], bool]]) -> None:
    """Both the cost of another attempt and the refund of a successful one are equal."""
    ours, botocores = RetryQuota(), BotocoreQuota()
    checker = standard.RetryQuotaChecker(botocores, throttling_detector())
    for (code, status), succeeds in failures:
        context = context_of(operation, code, status, None)
        spent = ours.spend(Failure(code, status))
        assert bool(spent) == checker.acquire_retry_quota(context)
        if succeeds:
            ours.earn(spent)
            checker.release_retry_quota(context.request_context, SimpleNamespace(status_code=200))
        assert ours.left == botocores.available_capacity


def test_the_quota_never_grows_beyond_its_beginning() -> None:
    """Success earns nothing that was not spent."""
    quota = RetryQuota()
    quota.earn(0)
    quota.earn(14)
    assert quota.left == RetryQuota.CAPACITY
