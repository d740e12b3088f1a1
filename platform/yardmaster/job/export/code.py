"""The code of an exported job in a ConfigMap, file by file, so that it can be read and edited there."""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import count
from typing import Any

MOST_BYTES = 900_000
"""Of what a ConfigMap holds. Kubernetes takes 1 MiB of one, with its names."""
MOST_FILES = 1_000
_KEY = re.compile(r"[A-Za-z0-9._-]{1,200}")


@dataclass(frozen=True)
class Code:
    """The files of a code version by path. `files` None: they are more than a ConfigMap takes."""

    name: str
    files: Mapping[str, bytes] | None

    @property
    def fits(self) -> bool:
        return self.files is not None

    def has(self, path: str) -> bool:
        return path in (self.files or {})


def fits(sizes: Mapping[str, int]) -> bool:
    """Whether files of these sizes go into a ConfigMap, whatever is in them: as Base64 they are a third longer."""
    return (
        len(sizes) <= MOST_FILES
        and sum(len(path) * 2 + size * 4 // 3 + 8 for path, size in sizes.items()) <= MOST_BYTES
    )


def config_map(metadata: Mapping[str, Any], files: Mapping[str, bytes]) -> dict[str, Any]:
    """The object. A key has no slash, so that each file has one of its own."""
    texts: dict[str, str] = {}
    binary: dict[str, str] = {}
    for key, path in keys_of(files).items():
        text = _as_text(files[path])
        if text is None:
            binary[key] = base64.b64encode(files[path]).decode()
        else:
            texts[key] = text
    parts = {"data": texts, "binaryData": binary}
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": dict(metadata),
        **{k: v for k, v in parts.items() if v},
    }


def items_of(files: Mapping[str, bytes]) -> list[dict[str, str]]:
    """For the volume: which key is which file."""
    return [{"key": key, "path": path} for key, path in keys_of(files).items()]


def keys_of(files: Mapping[str, bytes]) -> dict[str, str]:
    """A key for each path, which says it where it can."""
    found: dict[str, str] = {}
    others = []
    for path in sorted(files):
        plain = path.replace("/", "__")
        if _KEY.fullmatch(plain) is not None and plain not in (".", "..") and plain not in found:
            found[plain] = path
        else:
            others.append(path)
    free = (key for number in count() if (key := f"file-{number}") not in found)
    for path in others:
        found[next(free)] = path
    return found


def _as_text(data: bytes) -> str | None:
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        return None
    # YAML has no way to write these, or reads them as the end of a line.
    return None if re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]", text) else text
