"""The files of a version as folders that fold. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Leaf:
    """A file."""

    name: str
    path: str
    size: int


@dataclass
class Branch:
    """A folder. `is_open`: what is looked at lies below it."""

    name: str
    path: str = ""
    is_open: bool = False
    branches: list[Branch] = field(default_factory=list)
    leaves: list[Leaf] = field(default_factory=list)


def tree_of(files: Iterable[tuple[str, int]], chosen: str = "") -> Branch:
    """Folders and files (path, size) in the order of their names, with the way to `chosen` open."""
    top = Branch("", is_open=True)
    folders = {"": top}
    for path, size in sorted(files):
        folder, _, name = path.rpartition("/")
        _folder(folders, folder, chosen).leaves.append(Leaf(name, path, size))
    for branch in folders.values():
        branch.branches.sort(key=lambda one: one.name)
    return top


def _folder(folders: dict[str, Branch], path: str, chosen: str) -> Branch:
    """The folder at this path, made with those above it where it is new. Paths may be 256 deep: no recursion."""
    missing = []
    while path not in folders:
        missing.append(path)
        path = path.rpartition("/")[0]
    branch = folders[path]
    for path in reversed(missing):
        made = Branch(path.rpartition("/")[2], path, is_open=chosen.startswith(f"{path}/"))
        branch.branches.append(made)
        folders[path] = branch = made
    return branch


@dataclass(frozen=True)
class Row:
    """One step through the tree: a folder begins, a file, or a folder ends (`kind` is `open`, `file` or `close`)."""

    kind: str
    branch: Branch | None = None
    leaf: Leaf | None = None


def rows_of(top: Branch) -> list[Row]:
    """The tree in the order of the page, folders first: a template walks it without calling itself."""
    rows: list[Row] = []
    waiting: list[Row | Branch] = _last_first(top)
    while waiting:
        one = waiting.pop()
        if isinstance(one, Branch):
            rows.append(Row("open", branch=one))
            waiting.append(Row("close"))
            waiting.extend(_last_first(one))
        else:
            rows.append(one)
    return rows


def _last_first(branch: Branch) -> list[Row | Branch]:
    """What lies in a folder, in reverse: the last is taken first."""
    inside: list[Row | Branch] = [*branch.branches, *(Row("file", leaf=leaf) for leaf in branch.leaves)]
    return inside[::-1]
