"""The client's address of a login, with and without proxies."""

from __future__ import annotations

import pytest
from django.test import RequestFactory

from dynamo_single.contrib.accounts.conf import AccountSettings
from dynamo_single.contrib.accounts.limits import lockout


@pytest.mark.parametrize(
    ("remote", "headers", "header", "proxies", "expected"),
    [
        ("198.51.100.7", {}, None, 1, "198.51.100.7"),
        ("198.51.100.7", {"X-Forwarded-For": "1.2.3.4"}, None, 1, "198.51.100.7"),
        ("10.0.0.1", {"X-Forwarded-For": "1.2.3.4"}, "X-Forwarded-For", 1, "1.2.3.4"),
        ("10.0.0.1", {"X-Forwarded-For": "9.9.9.9, 1.2.3.4"}, "X-Forwarded-For", 1, "1.2.3.4"),
        ("10.0.0.1", {"X-Forwarded-For": "9.9.9.9, 1.2.3.4, 10.0.0.2"}, "X-Forwarded-For", 2, "1.2.3.4"),
        ("10.0.0.1", {"X-Forwarded-For": "1.2.3.4"}, "X-Forwarded-For", 2, "10.0.0.1"),
        ("10.0.0.1", {"X-Forwarded-For": "made up"}, "X-Forwarded-For", 1, "10.0.0.1"),
        ("10.0.0.1", {}, "X-Forwarded-For", 1, "10.0.0.1"),
        ("10.0.0.1", {"X-Real-Ip": " 1.2.3.4 "}, "X-Real-IP", 1, "1.2.3.4"),
        ("2001:db8:1:2:3:4:5:6", {}, None, 1, "2001:db8:1:2::/64"),
        ("2001:db8:1:2:ffff::1", {}, None, 1, "2001:db8:1:2::/64"),
        ("::ffff:198.51.100.7", {}, None, 1, "198.51.100.7"),
        ("10.0.0.1", {"X-Forwarded-For": "1.2.3.4:5678"}, "X-Forwarded-For", 1, "1.2.3.4"),
        ("10.0.0.1", {"X-Forwarded-For": "[2001:db8:1:2::5]:5678"}, "X-Forwarded-For", 1, "2001:db8:1:2::/64"),
        ("10.0.0.1", {"X-Forwarded-For": "[2001:db8:1:2::5]"}, "X-Forwarded-For", 1, "2001:db8:1:2::/64"),
        ("2001:db8::1234", {}, None, 1, "2001:db8::/64"),
        ("", {}, None, 1, "unknown"),
    ],
)
def test_the_address(remote: str, headers: dict[str, str], header: str | None, proxies: int, expected: str) -> None:
    """The connection's, or what the trusted proxies wrote into the header; of IPv6 the network."""
    asked = RequestFactory().post("/", REMOTE_ADDR=remote, headers=headers)
    settings = AccountSettings(client_address_header=header, trusted_proxies=proxies)
    assert lockout.client_address(asked, settings) == expected
