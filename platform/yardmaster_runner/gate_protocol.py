"""How the portal and the gate of a service's task prove themselves to each other, before a byte of a user passes. Pure.

The address of a task may become another's at any moment, and other programs of a machine may reach its port. So both
sides show that they know the key (`service_token`), and neither sends it:

    portal → gate    YMG1 <portal's nonce>\\n
    gate → portal    <gate's nonce> <HMAC(key, "gate <place> <portal's nonce> <gate's nonce>")>\\n
    portal → gate    <HMAC(key, "portal <place> <portal's nonce> <gate's nonce>")>\\n

The place is the address and port of the gate's end of the connection, as each side's kernel has it: a program at
another address that passes these lines between the portal and the real gate gets a proof from neither.

What follows on the connection belongs to the program behind the gate. The portal need not wait after its second line:
what it sends next may come in the same packet. Nonces are 32 hexadecimal digits, proofs 64.
"""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import re
import secrets
from typing import Any, Optional

LONGEST_LINE = 128
"""Bytes of one line of it, with its end; what sends more is not the portal or a gate."""
PROOF = 65
"""Bytes of the portal's second line."""
SECONDS = 5.0
"""In which all of it has to be done."""
_GREETING = re.compile(rb"YMG1 ([0-9a-f]{32})\n")
_ANSWER = re.compile(rb"([0-9a-f]{32}) ([0-9a-f]{64})\n")
_PROOF = re.compile(rb"([0-9a-f]{64})\n")


def new_nonce() -> str:
    """32 hexadecimal digits that were never used before."""
    return secrets.token_hex(16)


def place_of(end: Any) -> str:
    """The gate's end of a connection, as `getpeername` says it to the portal and `getsockname` to the gate. Raises
    `OSError` where it is no address of a network."""
    try:
        host = ipaddress.ip_address(str(end[0]).partition("%")[0])
        port = int(end[1])
    except (ValueError, IndexError) as error:
        raise OSError("a connection without an address: %r" % (end,)) from error
    return "[%s]:%d" % (getattr(host, "ipv4_mapped", None) or host, port)


def greeting(portal_nonce: str) -> bytes:
    """The portal's first line."""
    return b"YMG1 %s\n" % portal_nonce.encode()


def nonce_in(line: bytes) -> Optional[str]:
    """The portal's nonce in its first line; None where the line is something else."""
    found = _GREETING.fullmatch(line)
    return None if found is None else found.group(1).decode()


def answer(key: str, place: str, portal_nonce: str, gate_nonce: str) -> bytes:
    """The gate's line."""
    return b"%s %s\n" % (gate_nonce.encode(), _mac(key, "gate", place, portal_nonce, gate_nonce))


def proof_of_portal(key: str, place: str, portal_nonce: str, line: bytes) -> Optional[bytes]:
    """The portal's second line, for the gate's `line`; None where that does not prove that a gate at this place knows
    the key."""
    found = _ANSWER.fullmatch(line)
    if found is None:
        return None
    gate_nonce = found.group(1).decode()
    if not hmac.compare_digest(found.group(2), _mac(key, "gate", place, portal_nonce, gate_nonce)):
        return None
    return _mac(key, "portal", place, portal_nonce, gate_nonce) + b"\n"


def proves(key: str, place: str, portal_nonce: str, gate_nonce: str, line: bytes) -> bool:
    """Whether the portal's second line proves that it knows the key."""
    found, right = _PROOF.fullmatch(line), _mac(key, "portal", place, portal_nonce, gate_nonce)
    return found is not None and hmac.compare_digest(found.group(1), right)


def _mac(key: str, side: str, place: str, portal_nonce: str, gate_nonce: str) -> bytes:
    said = "%s %s %s %s" % (side, place, portal_nonce, gate_nonce)
    return hmac.new(key.encode(), said.encode(), hashlib.sha256).hexdigest().encode()
