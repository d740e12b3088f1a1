"""A passkey in software, for tests: it answers the portal's challenges as a browser does, and lies where it is told."""

from __future__ import annotations

import hashlib
import json
import re
import struct
from dataclasses import dataclass, field
from typing import Any

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from django.test import Client
from fido2 import cbor
from fido2.cose import ES256
from fido2.utils import websafe_encode

HOST = "http://localhost:8080"


@dataclass
class SoftKey:
    """Its user is asked for a finger or a PIN where `verifies`; its counter goes up, unless it is copied."""

    verifies: bool = True
    origin: str = HOST
    counter: int = 0
    id: bytes = b"passkey-of-a-test"
    handle: str = ""
    _secret: Any = field(default_factory=lambda: ec.generate_private_key(ec.SECP256R1()))

    def made(self, options: dict[str, Any]) -> str:
        """The answer to the options of a page that adds a passkey."""
        asked = options["creation_options"]["publicKey"]
        self.handle = asked["user"]["id"]
        key = cbor.encode(ES256.from_cryptography_key(self._secret.public_key()))
        credential = bytes(16) + struct.pack(">H", len(self.id)) + self.id + key
        attestation = {"fmt": "none", "attStmt": {}, "authData": self._facts(asked["rp"]["id"], 0x40) + credential}
        said, kept = self._said("webauthn.create", asked["challenge"]), cbor.encode(attestation)
        return self._answer({"clientDataJSON": websafe_encode(said), "attestationObject": websafe_encode(kept)})

    def used(self, options: dict[str, Any]) -> str:
        """The answer to the options of a page that signs in or confirms."""
        asked = options["request_options"]["publicKey"]
        self.counter += 1
        facts, said = self._facts(asked["rpId"]), self._said("webauthn.get", asked["challenge"])
        signature = self._secret.sign(facts + hashlib.sha256(said).digest(), ec.ECDSA(hashes.SHA256()))
        response = {
            "clientDataJSON": websafe_encode(said), "authenticatorData": websafe_encode(facts),
            "signature": websafe_encode(signature), "userHandle": self.handle,
        }  # fmt: skip
        return self._answer(response)

    def _said(self, kind: str, challenge: str) -> bytes:
        return json.dumps({"type": kind, "challenge": challenge, "origin": self.origin, "crossOrigin": False}).encode()

    def _facts(self, host: str, more: int = 0) -> bytes:
        flags = 0x01 | (0x04 if self.verifies else 0) | more
        return hashlib.sha256(host.encode()).digest() + bytes([flags]) + struct.pack(">I", self.counter)

    def _answer(self, response: dict[str, str]) -> str:
        name = websafe_encode(self.id)
        extensions = {"credProps": {"rk": True}}
        return json.dumps({
            "id": name, "rawId": name, "type": "public-key", "response": response,
            "clientExtensionResults": extensions,
        })  # fmt: skip


def options_of(client: Client, path: str) -> dict[str, Any]:
    """What a page hands to the browser."""
    page = client.get(path).content.decode()
    found = re.search(r'<script id="passkey-options" type="application/json">(.*?)</script>', page)
    assert found is not None, page[-2000:]
    known: dict[str, Any] = json.loads(found.group(1))
    return known


def challenge(client: Client) -> dict[str, Any]:
    """What signing in without a password starts with."""
    known: dict[str, Any] = client.get("/accounts/2fa/webauthn/login/", headers={"accept": "application/json"}).json()
    return known
