"""A small OpenID provider whose answers a test chooses: discovery, authorize, token and keys, over HTTP.

For what a real one cannot be made to say, such as when its user signed in. Not here: dex (`openid`).
"""

from __future__ import annotations

import base64
import json
import secrets
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import jwt
from cryptography.hazmat.primitives.asymmetric import rsa

CLIENT = "yardmaster"


@dataclass
class PlainProvider:
    """`claims` go into every ID token, over what is true; None leaves one out. `asked` is what the last way there
    asked."""

    issuer: str = ""
    subject: str = "ada-there"
    claims: dict[str, Any] = field(default_factory=dict)
    asked: dict[str, str] = field(default_factory=dict)
    _key: rsa.RSAPrivateKey = field(default_factory=lambda: rsa.generate_private_key(65537, 2048))
    _codes: dict[str, dict[str, Any]] = field(default_factory=dict)

    def sign_in(self, address: str, **claims: Any) -> str:
        """What a browser does there: the user signs in now, or as `claims` say. Returns the address it is led back
        to."""
        self.asked = {key: values[0] for key, values in parse_qs(urlsplit(address).query).items()}
        now = int(time.time())
        said = {
            "iss": self.issuer, "aud": CLIENT, "sub": self.subject, "iat": now, "exp": now + 600, "auth_time": now,
            "nonce": self.asked["nonce"], "preferred_username": self.subject, **self.claims, **claims,
        }  # fmt: skip
        code = secrets.token_hex(8)
        self._codes[code] = {key: value for key, value in said.items() if value is not None}
        return f"{self.asked['redirect_uri']}?{urlencode({'code': code, 'state': self.asked['state']})}"

    def token(self, code: str) -> dict[str, Any] | None:
        """What a code is exchanged for, once."""
        claims = self._codes.pop(code, None)
        if claims is None:
            return None
        id_token = jwt.encode(claims, self._key, algorithm="RS256", headers={"kid": "1"})
        return {"access_token": secrets.token_hex(8), "token_type": "Bearer", "expires_in": 600, "id_token": id_token}

    def document(self, path: str) -> dict[str, Any] | None:
        """What the provider says of itself, and its keys."""
        if path == "/keys":
            numbers = self._key.public_key().public_numbers()
            key = {"kty": "RSA", "kid": "1", "alg": "RS256", "use": "sig", "n": _b64(numbers.n), "e": _b64(numbers.e)}
            return {"keys": [key]}
        if path == "/.well-known/openid-configuration":
            return {
                "issuer": self.issuer, "authorization_endpoint": f"{self.issuer}/auth",
                "token_endpoint": f"{self.issuer}/token", "jwks_uri": f"{self.issuer}/keys",
                "token_endpoint_auth_methods_supported": ["client_secret_post"],
            }  # fmt: skip
        return None


def _b64(number: int) -> str:
    data = number.to_bytes((number.bit_length() + 7) // 8, "big")
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


@contextmanager
def plain_provider() -> Iterator[PlainProvider]:
    """One that listens until the end."""
    provider = PlainProvider()

    class Answers(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if not self.path.startswith("/auth?"):
                self._say(provider.document(self.path))
                return
            self.send_response(302)  # a browser is there: its user signs in at once
            self.send_header("Location", provider.sign_in(self.path))
            self.send_header("Content-Length", "0")
            self.end_headers()

        def do_POST(self) -> None:
            form = parse_qs(self.rfile.read(int(self.headers["Content-Length"])).decode())
            self._say(provider.token(form["code"][0]))

        def _say(self, found: dict[str, Any] | None) -> None:
            body = json.dumps(found or {"error": "invalid_grant"}).encode()
            self.send_response(400 if found is None else 200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *words: object) -> None:
            """Nothing: tests have no use for it."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Answers)
    provider.issuer = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield provider
    finally:
        server.shutdown()
        server.server_close()
