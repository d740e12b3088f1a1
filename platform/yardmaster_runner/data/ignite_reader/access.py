"""How a script comes in: the addresses of servers, user and password, and TLS with a certificate of its own."""

from __future__ import annotations

import datetime
import os
import re
import socket
import ssl
from dataclasses import dataclass, field
from typing import Callable, List, Optional, Tuple

from yardmaster_runner.data.ignite_reader.certificate import refusal
from yardmaster_runner.data.ignite_reader.errors import IgniteCertificateError, IgniteDataError
from yardmaster_runner.data.ignite_reader.wire import FEATURE_NODE_ENDPOINTS

Address = Tuple[str, int]
CERTIFICATE = re.compile(rb"-----BEGIN CERTIFICATE-----.+?-----END CERTIFICATE-----", re.DOTALL)
DEFAULT_PORT = 10800
LARGEST = (1 << 31) - 1
"""Bytes of an answer: what its length can say."""


@dataclass(frozen=True)
class Access:
    """What every connection is made with. `tls` None: in the clear."""

    addresses: Tuple[Address, ...]
    username: Optional[str] = None
    password: Optional[str] = field(default=None, repr=False)
    tls: Optional[ssl.SSLContext] = field(default=None, repr=False)
    timeout: float = 60.0
    dial: Callable[[Address, float], socket.socket] = socket.create_connection
    """How an address is connected to, within so many seconds. Raises `OSError`."""
    largest: int = LARGEST
    """Bytes of an answer; a server that announces more is left."""
    features: int = 1 << FEATURE_NODE_ENDPOINTS
    """Optional parts of the protocol that are asked for, as bits."""


def addresses_of(host: str, port: int) -> Tuple[Address, ...]:
    """The servers that `host` names: one, or several after commas; each may have a port of its own after a colon.
    Raises `IgniteDataError`."""
    found: List[Address] = []
    for one in filter(None, (part.strip() for part in host.split(","))):
        name, colon, own = one.rpartition(":")
        if not colon or one.count(":") > 1:  # an IPv6 address has several, and no port
            found.append((one.strip("[]"), port))
        elif own.isdigit() and 0 < int(own) < 65536:
            found.append((name, int(own)))
        else:
            raise IgniteDataError("host is %r: expected names or addresses, each with a port after a colon" % host)
    if not found:
        raise IgniteDataError("host is empty: give the name or the address of an Ignite server")
    return tuple(found)


def tls_context(
    certfile: Optional[str],
    keyfile: Optional[str] = None,
    cert_password: Optional[str] = None,
    cafile: Optional[str] = None,
) -> Optional[ssl.SSLContext]:
    """The script's own certificate from `certfile` (PEM; its key there or in `keyfile`, the key's password), and which
    servers are believed: those with a certificate of a CA in `cafile`, else of one that follows the script's own in
    `certfile`, else of one that the system trusts. The server's name is not compared: nodes are reached by addresses.

    None: no TLS is wanted. Raises `IgniteCertificateError`."""
    if not certfile and not cafile:
        if keyfile or cert_password:
            raise IgniteCertificateError("keyfile and cert_password are given without certfile: give certfile, too.")
        return None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_REQUIRED
    if certfile:
        _load_own(context, certfile, keyfile, cert_password)
    _load_trusted(context, certfile, cafile)
    return context


def _load_own(context: ssl.SSLContext, certfile: str, keyfile: Optional[str], password: Optional[str]) -> None:
    for path in filter(None, (certfile, keyfile)):
        if not os.path.isfile(path):
            raise IgniteCertificateError("There is no file %s. Give the path of a PEM file." % path)
    _check_dates(certfile)
    try:
        # A password is given in any case: without one OpenSSL would ask at the terminal.
        context.load_cert_chain(certfile, keyfile, password or "")
    except (OSError, ValueError) as error:
        message = "The certificate in %s cannot be used: %s. It needs a certificate and its key in PEM format"
        with open(keyfile or certfile, "rb") as file:
            if b"ENCRYPTED" in file.read():
                message += ", and the key needs a password: cert_password is %s" % ("wrong" if password else "missing")
        raise IgniteCertificateError((message + ".") % (certfile, _words(error))) from error


def _check_dates(certfile: str) -> None:
    with open(certfile, "rb") as file:
        found = CERTIFICATE.search(file.read())
    if found is None:
        raise IgniteCertificateError("%s has no certificate in PEM format." % certfile)
    try:
        said = refusal(found.group().decode("ascii"), datetime.datetime.now(datetime.timezone.utc))
    except ValueError as error:
        raise IgniteCertificateError("The certificate in %s cannot be read: %s." % (certfile, error)) from error
    if said:
        raise IgniteCertificateError("The certificate in %s cannot be used: %s. Give a new one." % (certfile, said))


def _load_trusted(context: ssl.SSLContext, certfile: Optional[str], cafile: Optional[str]) -> None:
    try:
        if cafile:
            context.load_verify_locations(cafile)
            return
        with open(certfile or "", "rb") as file:
            others = CERTIFICATE.findall(file.read())[1:]
        if others:
            context.load_verify_locations(cadata=b"\n".join(others).decode("ascii") + "\n")
        else:
            context.load_default_certs()
    except (OSError, ValueError) as error:
        message = "The CA's certificates in %s cannot be read: %s. They must be in PEM format."
        raise IgniteCertificateError(message % (cafile or certfile, _words(error))) from error


def _words(error: Exception) -> str:
    return str(error) or type(error).__name__
