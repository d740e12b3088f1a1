"""Encryption of secrets at rest: AES-256-GCM under a key derived from the portal's secret key.

Every value has a nonce of its own. What it belongs to (its row) is authenticated with it, so that a value that is moved
to another row in the database does not open there. Values sealed under an earlier key of the portal open as long as
that key is listed in `YARDMASTER_EARLIER_SECRET_KEYS`; `manage.py rotate_secrets` seals them again.
"""

from __future__ import annotations

import hashlib
from functools import lru_cache

from Crypto.Cipher import AES
from Crypto.Hash import SHA256
from Crypto.Protocol.KDF import HKDF
from Crypto.Random import get_random_bytes
from django.conf import settings

from apps.errors import Unprocessable

_NONCE, _TAG, _KEY = 12, 16, 32


class CannotOpen(Unprocessable):
    """The value was sealed with a key that this portal does not have, or was changed in the database."""

    code = "secret_unreadable"


def seal(value: bytes, belongs_to: str) -> tuple[bytes, str]:
    """The sealed value and the id of the key: the present one."""
    key = _key_of(settings.SECRET_KEY)
    nonce = get_random_bytes(_NONCE)
    cipher = AES.new(key, AES.MODE_GCM, nonce=nonce, mac_len=_TAG)
    cipher.update(belongs_to.encode())
    content, tag = cipher.encrypt_and_digest(value)
    return nonce + tag + content, key_id(key)


def unseal(sealed: bytes, sealed_with: str, belongs_to: str, name: str) -> bytes:
    """The value. Raises `CannotOpen` with a sentence for the operator; `name` is what people call it."""
    key = next((key for key in _keys() if key_id(key) == sealed_with), None)
    if key is None:
        raise CannotOpen(
            f"The secret {name} was encrypted with another secret key of the portal.",
            remedy="Set its value again, or ask the operator to list the earlier key in "
            "YARDMASTER_EARLIER_SECRET_KEYS and to run `manage.py rotate_secrets`.",
        )
    nonce, tag, content = sealed[:_NONCE], sealed[_NONCE : _NONCE + _TAG], sealed[_NONCE + _TAG :]
    try:
        cipher = AES.new(key, AES.MODE_GCM, nonce=nonce, mac_len=_TAG)
        cipher.update(belongs_to.encode())
        return cipher.decrypt_and_verify(content, tag)
    except ValueError as error:
        remedy = "Set its value again. Ask the operator who changed the portal's database."
        raise CannotOpen(f"The secret {name} was changed in the database.", remedy=remedy) from error


def is_current(sealed_with: str) -> bool:
    """Whether this is the id of the present key."""
    return sealed_with == key_id(_key_of(settings.SECRET_KEY))


def key_id(key: bytes) -> str:
    """What tells keys apart and says nothing of them."""
    return hashlib.sha256(b"yardmaster key id" + key).hexdigest()[:16]


def _keys() -> list[bytes]:
    return [_key_of(one) for one in (settings.SECRET_KEY, *settings.YARDMASTER_EARLIER_SECRET_KEYS)]


@lru_cache(maxsize=16)
def _key_of(secret_key: str) -> bytes:
    key = HKDF(secret_key.encode(), _KEY, b"yardmaster secrets", SHA256, context=b"value key 1")
    assert isinstance(key, bytes), "one key was asked for"
    return key
