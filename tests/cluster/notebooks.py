"""A browser's part of the talk with a JupyterLab in a pod: through the portal, at the origin of its session."""

from __future__ import annotations

import socket
from pathlib import Path
from urllib.parse import urlsplit

import httpx2
from websockets.sync.client import ClientConnection, connect
from websockets.typing import Origin

from tests.integration.workbench.jupyter_session import PATIENCE, Jupyter
from tests.real.opened import Opened


class JupyterAtOrigin(Jupyter):
    """One that is ready."""

    def __init__(self, place: Opened) -> None:
        super().__init__("", Path(), place.session)
        self._place = place

    def stranger(self) -> httpx2.Client:
        place = self._place
        headers = {"Host": place.host, "Origin": f"http://{place.host}"}
        client = httpx2.Client(base_url=f"{place.at}{place.prefix}", headers=headers, timeout=PATIENCE)
        name, _, value = place.cookie.partition("=")
        client.cookies.set(name, value)
        return client

    def web_socket(self, path: str, origin: str = "") -> ClientConnection:
        place = self._place
        cookies = "; ".join(f"{name}={value}" for name, value in self.client.cookies.items())
        there = urlsplit(place.at)
        return connect(
            f"ws://{place.host}{place.prefix}{path}", sock=socket.create_connection((there.hostname, there.port)),
            origin=Origin(origin or f"http://{place.host}"),
            additional_headers={"Cookie": cookies}, open_timeout=PATIENCE, compression=None, max_size=None, proxy=None,
        )  # fmt: skip

    def _wait(self) -> None:
        """Nothing: it is ready."""
