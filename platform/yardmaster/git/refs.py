"""Which object of a repository a ref means: a branch, a tag or a whole commit id, as `git clone --branch` understands
it, and a commit id besides. Pure.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from dataclasses import dataclass

from yardmaster.git.refusals import Refused

HEAD = b"HEAD"
_COMMIT = re.compile(r"[0-9a-f]{40}")
_PART_OF_COMMIT = re.compile(r"[0-9a-f]{4,39}")
_FOLDERS = (b"refs/heads/", b"refs/tags/")
_PEELED = b"^{}"
_NAMED = 5


@dataclass(frozen=True)
class Found:
    """`wanted`: the object to ask the host for, a commit or a tag of one. `commit`: what is known to be the commit;
    empty: the tag itself will say. `ref`: the ref in full, empty for a commit id."""

    wanted: str
    commit: str
    ref: str


def prefixes_of(ref: str) -> list[bytes]:
    """What the host is asked to list, so that it need not list all refs."""
    if not ref:
        return [HEAD]
    name = ref.encode()
    return [name] if name.startswith(b"refs/") else [one + name for one in _FOLDERS]


def ref_found(ref: str, listed: Mapping[bytes, bytes | None]) -> Found | None:
    """What the ref means among those that the host lists; None: it does not list it."""
    name = ref.encode()
    names = [HEAD] if not ref else [name] if name.startswith(b"refs/") else [one + name for one in _FOLDERS]
    for one in names:
        if oid := listed.get(one):
            peeled = listed.get(one + _PEELED)
            is_tag = one.startswith(b"refs/tags/")
            commit = peeled.decode() if peeled else "" if is_tag else oid.decode()
            return Found(oid.decode(), commit, one.decode())
    return Found(ref, ref, "") if _COMMIT.fullmatch(ref) else None


def ref_missing(ref: str, listed: Mapping[bytes, bytes | None]) -> Refused:
    """Why there is no such ref, with the names that are like it."""
    if not ref:
        message = "The repository has no commit on a default branch."
        return Refused("git_ref_not_found", message, "Name a branch, a tag or a commit.", field="ref")
    names = sorted({_short(one) for one in listed if one.startswith(_FOLDERS) and not one.endswith(_PEELED)})
    near = difflib.get_close_matches(ref, names[:5_000], n=_NAMED, cutoff=0.5)
    message = f"The repository has no branch or tag {ref}."
    if _PART_OF_COMMIT.fullmatch(ref):
        remedy = "Write all 40 digits of a commit id: hosts do not look up a part of it."
    elif near:
        remedy = f"Did you mean {', '.join(near)}?"
    else:
        shown = ", ".join(names[:_NAMED])
        remedy = f"It has {shown}{' …' if len(names) > _NAMED else ''}." if names else "It has no branch and no tag."
    return Refused("git_ref_not_found", message, remedy, ref, field="ref")


def _short(name: bytes) -> str:
    for one in _FOLDERS:
        name = name.removeprefix(one)
    return name.decode("utf-8", "replace")[:100]
