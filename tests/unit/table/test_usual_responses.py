"""A usual response is parsed without httptools with the same result, and httptools parses all others."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynamo_single.table.http import connections
from dynamo_single.table.http.connections import HTTPResponse, ResponseParser

TYPE = "application/x-amz-json-1.0"
NAMES = st.sampled_from(["Server", "Date", "x-amzn-RequestId", "x-amz-crc32", "Content-Type", "Connection"])
VALUES = st.text("abcdefgh0123456789 /,:;.-", max_size=20).map(str.strip)


def response(body: bytes, *fields: str, first: str = "HTTP/1.1 200 OK", length: str | None = None) -> bytes:
    """The bytes of a response."""
    lines = [first, *fields, f"Content-Length: {len(body) if length is None else length}"]
    return "\r\n".join([*lines, "", ""]).encode() + body


def read(data: bytes, *, usual: bool) -> tuple[HTTPResponse | None, bool] | str:
    """Return the result of a new connection for the bytes, and whether it stays open."""
    parser = ResponseParser()
    with pytest.MonkeyPatch.context() as patch:
        if not usual:
            patch.setattr(connections, "_usual_response", lambda data: None)
        try:
            found = parser.feed(data)
        except ValueError as error:
            return str(error)
    if found is not None:
        found = HTTPResponse(found.status, {name: value.lower() for name, value in found.headers.items()}, found.body)
    return found, parser.keep_alive


@given(
    st.binary(max_size=40),
    st.dictionaries(NAMES, VALUES),
    st.sampled_from(["HTTP/1.1 200 OK", "HTTP/1.1 200 OK", "HTTP/1.1 400 Bad Request", "HTTP/1.0 200 OK"]),
    st.sampled_from([None, None, None, "0", "3"]),
    st.integers(0, 400),
)
def test_responses_are_read_alike(
    body: bytes, fields: dict[str, str], first: str, length: str | None, cut: int
) -> None:
    """This includes any headers, and any end of its bytes."""
    data = response(body, *(f"{name}: {value}" for name, value in fields.items()), first=first, length=length)
    for part in (data, data[:cut]):
        assert read(part, usual=True) == read(part, usual=False)


def test_usual_response_is_read() -> None:
    found = connections._usual_response(response(b"{}", f"Content-Type: {TYPE}", "x-amz-crc32: 2745614147"))
    assert found is not None
    assert (found.status, found.body, found.is_whole) == (200, b"{}", True)


@pytest.mark.parametrize(
    "data",
    [
        response(b"2\r\n{}\r\n0\r\n\r\n", "Transfer-Encoding: chunked"),
        response(b"{}", "Connection: close"),
        response(b"{}", "Content-Length: 2"),
        response(b"{}", "Upgrade: other"),
        response(b"{}", first="HTTP/1.1 500 Internal Server Error"),
        response(b"{}", first="HTTP/1.1 100 Continue"),
        response(b"{}more", length="2"),
        response(b"{", length="2"),
        response(b"{}", length="+2"),
        response(b"{}", "Server: one\r\n two"),
        b"",
        b"HTTP/1.1 200 OK\r\n",
    ],
    ids=[
        "chunked",
        "close",
        "twice",
        "upgrade",
        "error",
        "interim",
        "longer",
        "shorter",
        "sign",
        "folded",
        "end",
        "cut",
    ],
)
def test_other_responses_are_left_to_httptools(data: bytes) -> None:
    assert connections._usual_response(data) is None


def test_response_in_parts_is_read() -> None:
    parser, data = ResponseParser(), response(b"{}", f"Content-Type: {TYPE}")
    assert parser.feed(data[:30]) is None
    found = parser.feed(data[30:])
    assert found is not None
    assert found.body == b"{}"
    assert parser.feed(data) is not None
