"""A local OpenID Connect provider: a test sets the logged-in account, and the provider signs normally."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any
from urllib.parse import parse_qs, parse_qsl, urlencode, urlsplit

from joserfc import jwt
from joserfc.jwk import RSAKey

#: The client's identifier and secret.
CLIENT_ID = "shop"


class Provider(ThreadingHTTPServer):
    """A provider; ``account`` contains the claims of the logged-in account."""

    daemon_threads = True
    account: dict[str, Any]

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.key = RSAKey.generate_key(2048, {"kid": "1", "use": "sig", "alg": "RS256"})
        self.account = {}
        #: By code: the nonce that the client sent.
        self.codes: dict[str, str] = {}

    @property
    def issuer(self) -> str:
        """The URL of the provider, which is also its issuer."""
        return f"http://127.0.0.1:{self.server_address[1]}"

    def token(self, nonce: str) -> str:
        """A signed ID token."""
        now = int(time.time())
        claims = {"iss": self.issuer, "aud": CLIENT_ID, "iat": now, "exp": now + 300, "nonce": nonce, **self.account}
        return jwt.encode({"alg": "RS256", "kid": "1"}, claims, self.key)


class _Handler(BaseHTTPRequestHandler):
    server: Provider

    def do_GET(self) -> None:
        path, asked = urlsplit(self.path).path, dict(parse_qsl(urlsplit(self.path).query))
        issuer = self.server.issuer
        if path == "/.well-known/openid-configuration":
            self._say(
                {
                    "issuer": issuer,
                    "authorization_endpoint": f"{issuer}/authorize",
                    "token_endpoint": f"{issuer}/token",
                    "jwks_uri": f"{issuer}/keys",
                    "id_token_signing_alg_values_supported": ["RS256"],
                }
            )
        elif path == "/keys":
            self._say({"keys": [self.server.key.as_dict(private=False)]})
        else:
            code = f"code-{len(self.server.codes)}"
            self.server.codes[code] = asked["nonce"]
            self.send_response(302)
            self.send_header(
                "Location", f"{asked['redirect_uri']}?{urlencode({'code': code, 'state': asked['state']})}"
            )
            self.end_headers()

    def do_POST(self) -> None:
        body = parse_qs(self.rfile.read(int(self.headers["Content-Length"])).decode())
        nonce = self.server.codes.pop(body["code"][0])
        self._say({"access_token": "a", "token_type": "Bearer", "id_token": self.server.token(nonce)})

    def _say(self, value: Any) -> None:
        text = json.dumps(value).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, format: str, *args: Any) -> None:
        """Do not log requests."""


@contextmanager
def running() -> Iterator[Provider]:
    """A provider on a free port, until the end of the block."""
    with Provider() as provider:
        thread = Thread(target=provider.serve_forever, daemon=True)
        thread.start()
        try:
            yield provider
        finally:
            provider.shutdown()
            thread.join()
