"""The images that tasks run in: how a job names one, and what the portal wrote down of it at the launch.

Not here: which images there are (the portal's catalogue), and which specifications may name one (`image_rules`).
"""

from __future__ import annotations

import re
from dataclasses import dataclass

LONGEST_NAME = 63
LONGEST_REFERENCE = 500
_NAME = re.compile(r"[a-z0-9](?:[a-z0-9._-]{0,61}[a-z0-9])?", re.ASCII)
_HOST = r"(?:[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?)(?:\.[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?)*(?::[0-9]{1,5})?"
_PART = r"[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*"
_REFERENCE = re.compile(
    rf"(?P<registry>{_HOST})/(?P<repository>{_PART}(?:/{_PART})*)(?::(?P<tag>[A-Za-z0-9_][A-Za-z0-9._-]{{0,127}}))?"
    r"@(?P<digest>sha256:[0-9a-f]{64})",
    re.ASCII,
)


@dataclass(frozen=True)
class PinnedImage:
    """An image of the catalogue as it was when the job was launched. What becomes of the catalogue later changes
    nothing for the job."""

    name: str
    reference: str
    """`registry/repository[:tag]@sha256:…`: always the same bytes."""
    pull_secret: str = ""
    """The name of the secret with which it is pulled; empty: it is public, or the nodes can pull it by themselves."""

    @property
    def digest(self) -> str:
        """`sha256:…`"""
        return self.reference.rpartition("@")[2]


def is_image_name(name: str) -> bool:
    """Whether an image of the catalogue may be called so."""
    return len(name) <= LONGEST_NAME and bool(_NAME.fullmatch(name))


def is_pinned_reference(reference: str) -> bool:
    """Whether this says a registry, a repository and a digest, so that it always means the same bytes."""
    if len(reference) > LONGEST_REFERENCE:
        return False
    found = _REFERENCE.fullmatch(reference)
    return bool(found) and _is_host(found["registry"])  # type: ignore[index]  # found


def _is_host(registry: str) -> bool:
    """As container runtimes tell a registry from the first part of a repository of Docker Hub."""
    return "." in registry or ":" in registry or registry == "localhost"
