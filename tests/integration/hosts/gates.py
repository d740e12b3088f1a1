"""The portal's way to a session on a machine, for tests that have no proxy: through the session's gate."""

from __future__ import annotations

import contextlib
import socket
import tempfile
import threading
from collections.abc import Iterator

from yardmaster.engines.base import Address
from yardmaster_runner.gate_protocol import greeting, new_nonce, place_of, proof_of_portal


@contextlib.contextmanager
def gate_at(address: Address, token: str) -> Iterator[str]:
    """A unix socket whose connections lead through the session's gate, as those of the portal do. `token`: that of the
    service."""
    with tempfile.TemporaryDirectory() as folder, socket.socket(socket.AF_UNIX) as server:
        server.bind(f"{folder}/s")
        server.listen()
        threading.Thread(target=_pass_all, args=(server, address, token), daemon=True).start()
        yield f"{folder}/s"
        server.shutdown(socket.SHUT_RDWR)


def _pass_all(server: socket.socket, address: Address, token: str) -> None:
    with contextlib.suppress(OSError):
        while True:
            browser = server.accept()[0]
            threading.Thread(target=_pass_one, args=(browser, address, token), daemon=True).start()


def _pass_one(browser: socket.socket, address: Address, token: str) -> None:
    with contextlib.suppress(OSError), browser, socket.create_connection((address.host, address.port)) as gate:
        nonce = new_nonce()
        gate.sendall(greeting(nonce))
        proof = proof_of_portal(token, place_of(gate.getpeername()), nonce, gate.recv(200))
        assert proof is not None
        gate.sendall(proof)
        threading.Thread(target=_pass_bytes, args=(browser, gate), daemon=True).start()
        _pass_bytes(gate, browser)


def _pass_bytes(source: socket.socket, target: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while data := source.recv(1 << 16):
            target.sendall(data)
        target.shutdown(socket.SHUT_WR)
