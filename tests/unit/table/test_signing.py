"""Signatures equal botocore's byte by byte, and that of AWS's published example."""

from __future__ import annotations

import datetime
from typing import Any
from unittest import mock

import pytest
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials as BotocoreCredentials
from hypothesis import given
from hypothesis import strategies as st

from dynamo_single.table.http.credentials import Credentials
from dynamo_single.table.transport import Signer

WORDS = st.text("abcdefghijklmnopqrstuvwxyzABCDEFGHIJ0123456789/+=", min_size=1, max_size=40)
MOMENTS = st.datetimes(datetime.datetime(2015, 1, 1), datetime.datetime(2099, 12, 31)).map(
    lambda moment: moment.replace(microsecond=0, tzinfo=datetime.UTC)
)
TARGETS = st.sampled_from(["GetItem", "TransactWriteItems"]).map("DynamoDB_20120810.{}".format)


def authorization(lines: str) -> str:
    """The signature among the header lines of a request."""
    return dict(line.split(":", 1) for line in lines.splitlines())["authorization"]


def botocores(
    body: bytes, headers: dict[str, str], credentials: Credentials, moment: datetime.datetime, host: str, region: str
) -> str:
    """The authorization that botocore gives."""
    request: Any = AWSRequest("POST", f"https://{host}/", headers=headers, data=body)
    with mock.patch("botocore.auth.get_current_datetime", return_value=moment.replace(tzinfo=None)):
        SigV4Auth(BotocoreCredentials(*credentials), "dynamodb", region).add_auth(request)
    return str(request.headers["Authorization"])


@given(
    st.binary(max_size=200),
    st.builds(Credentials, WORDS, WORDS, st.none() | WORDS),
    MOMENTS,
    TARGETS,
    st.sampled_from(["eu-west-1", "us-gov-west-1"]),
    st.sampled_from(["dynamodb.eu-west-1.amazonaws.com", "127.0.0.1:8001", "localhost:8001"]),
)
def test_a_signature_is_botocores(
    body: bytes, credentials: Credentials, moment: datetime.datetime, target: str, region: str, host: str
) -> None:
    """This includes any body, credentials, time, region and host."""
    headers = {"content-type": "application/x-amz-json-1.0", "x-amz-target": target}
    signed = Signer(host, region, headers=headers).signed(body, headers, credentials, moment.timestamp())
    assert authorization(signed) == botocores(body, headers, credentials, moment, host, region)


def test_a_signer_follows_a_new_day_and_new_credentials() -> None:
    """The kept key is one day's and one secret's."""
    signer = Signer("dynamodb.eu-west-1.amazonaws.com", "eu-west-1")
    first, second = Credentials("AKID", "one"), Credentials("AKID", "two", "token")
    noon = datetime.datetime(2026, 11, 22, 12, tzinfo=datetime.UTC)
    for credentials, moment in (
        (first, noon),
        (second, noon),
        (second, noon + datetime.timedelta(days=1)),
        (first, noon),
    ):
        signed = signer.signed(b"{}", {}, credentials, moment.timestamp())
        expected = botocores(b"{}", {}, credentials, moment, "dynamodb.eu-west-1.amazonaws.com", "eu-west-1")
        assert authorization(signed) == expected


def test_the_given_headers_stay_as_they_are() -> None:
    """A caller may keep one dict for all requests."""
    headers = {"content-type": "application/x-amz-json-1.0"}
    Signer("h", "eu-west-1", headers=headers).signed(b"", headers, Credentials("a", "b"), 0)
    assert headers == {"content-type": "application/x-amz-json-1.0"}


@pytest.mark.parametrize(
    ("body", "headers", "signature"),
    [
        (b"", {}, "5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b"),
        (b"", {"my-header1": "value1"}, "c5410059b04c1ee005303aed430f6e6645f61f4dc9e1461ec8f8916fdf18852c"),
        (
            b"Param1=value1",
            {"content-type": "application/x-www-form-urlencoded"},
            "ff11897932ad3f4e8b18135d722051e5ac45fc38421b1da7b9d196a0fe09473a",
        ),
    ],
    ids=["post-vanilla", "post-header-key-sort", "post-x-www-form-urlencoded"],
)
def test_a_signature_is_the_one_that_aws_published(body: bytes, headers: dict[str, str], signature: str) -> None:
    """Three of AWS's test suite for Signature Version 4."""
    signer = Signer("example.amazonaws.com", "us-east-1", "service", headers=headers)
    published = Credentials("AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY")
    moment = datetime.datetime(2015, 8, 30, 12, 36, tzinfo=datetime.UTC)
    signed = signer.signed(body, headers, published, moment.timestamp())
    assert authorization(signed).endswith(f"Signature={signature}")
