"""The images that jobs may name, and the catalogue for administrators."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from yardmaster_client.models import read
from yardmaster_client.transport import Transport


@dataclass(frozen=True)
class Image:
    """An image of the catalogue. `strategies`: none means all; `packages`: None means that they are not known.
    `pull_secret`: only administrators see it."""

    id: str
    name: str
    reference: str = ""
    digest: str = ""
    python: str = ""
    tensorflow: str = ""
    strategies: tuple[str, ...] = ()
    gpus: bool = False
    description: str = ""
    pull_secret: str = ""
    everyone: bool = True
    namespaces: tuple[str, ...] = ()
    enabled: bool = True
    packages: tuple[str, ...] | None = None
    created_at: datetime | None = None
    changed_at: datetime | None = None


class Images:
    """The catalogue of images."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def list(self, *, namespace: str | None = None) -> Iterator[Image]:
        """Those that you may use, or that this namespace may use, the newest first."""
        return (read(Image, row) for row in self._transport.pages("images/", namespace=namespace))

    def get(self, name: str) -> Image:
        return read(Image, self._transport.get(f"images/{name}/"))

    def create(self, name: str, reference: str, **facts: Any) -> Image:
        """Add an image (administrators). `facts`: python, tensorflow, strategies, gpus, description, pull_secret,
        everyone, namespaces, enabled, packages."""
        return read(Image, self._transport.post("images/", {"name": name, "reference": reference, **facts}))

    def change(self, name: str, **facts: Any) -> Image:
        """Change what is said of it (administrators). Jobs that are queued or running keep what they have."""
        return read(Image, self._transport.patch(f"images/{name}/", facts))

    def delete(self, name: str) -> None:
        """Remove it from the catalogue (administrators)."""
        self._transport.delete(f"images/{name}/")
