"""Which input an `s3://` path means, and what lies there.

An input may say which path it stands for (`s3://bucket/prefix`): then it stands for that one alone. Otherwise the
bucket or a folder of the key is called like the input or its dataset, and what follows is a path in it. Where the job
has a single input, leading folders of the key are dropped until a file is found. Paths here are `bucket/key`, without
`s3://`.
"""

from __future__ import annotations

import os
from typing import Any, Dict, List, Optional, Sequence, Tuple

from yardmaster_runner.data.inputs import Input
from yardmaster_runner.data.passes import listed

SCHEME = "s3://"


def mapped(path: str, known: Sequence[Input]) -> Optional[Tuple[Input, str]]:
    """The input that the path leads into and the path in it; None where it leads into none."""
    parts = [part for part in path.split("/") if part]
    if any(part in (".", "..") for part in parts):
        return None
    whole = "/".join(parts)
    said = [one for one in known if one.stands_for and (whole + "/").startswith(_place_of(one) + "/")]
    if said:
        nearest = max(said, key=lambda one: len(_place_of(one)))
        return nearest, whole[len(_place_of(nearest)) + 1 :]
    others = [one for one in known if not one.stands_for]
    for place, part in enumerate(parts):
        for one in others:
            if part in (one.name, one.dataset):
                return one, "/".join(parts[place + 1 :])
    return _in_only_input(parts, others[0]) if len(known) == len(others) == 1 else None


def leads_to_inputs(path: str, known: Sequence[Input]) -> List[str]:
    """The folders in this one that lead to the paths that inputs stand for."""
    before = path + "/" if path else ""
    places = [_place_of(one) for one in known if one.stands_for]
    return sorted({one[len(before) :].partition("/")[0] for one in places if one.startswith(before)})


def entries_at(path: str, known: Sequence[Input]) -> List[Dict[str, Any]]:
    """What lies there, as fsspec has it: of a folder what is in it, of a file the file. Raises `FileNotFoundError`."""
    found = mapped(path, known)
    entries = {} if found is None else _entries_in(path, *found)
    if path in entries:
        return [entries[path]]
    for name in leads_to_inputs(path, known):
        one = path + "/" + name if path else name
        entries.setdefault(one, _folder(one))
    if not entries and found is not None and not os.path.isdir(os.path.join(found[0].folder, found[1])):
        raise _not_there(*found)
    return [entries[name] for name in sorted(entries)]


def entry_at(path: str, known: Sequence[Input]) -> Dict[str, Any]:
    """The file or folder of this path. Raises `FileNotFoundError`."""
    entries = entries_at(path, known)
    is_file = len(entries) == 1 and entries[0]["name"] == path
    return entries[0] if is_file else _folder(path)


def described(one: Input) -> str:
    """An input as an error shows it."""
    name = repr(one.name or one.dataset)
    return "%s (stands for %s)" % (name, one.stands_for) if one.stands_for else name


def _place_of(one: Input) -> str:
    return one.stands_for[len(SCHEME) :].strip("/")


def _in_only_input(parts: Sequence[str], one: Input) -> Optional[Tuple[Input, str]]:
    names = {name for name, _ in _shards_elsewhere(one)}
    for place in range(1, len(parts)):
        rest = "/".join(parts[place:])
        if os.path.exists(os.path.join(one.folder, rest)) or rest in names:
            return one, rest
    return None


def _shards_elsewhere(one: Input) -> List[Tuple[str, int]]:
    return listed(one) if one.has_shards_elsewhere else []


def _entries_in(path: str, one: Input, rest: str) -> Dict[str, Dict[str, Any]]:
    where = os.path.join(one.folder, rest)
    if os.path.isfile(where):
        return {path: _file(path, os.path.getsize(where))}
    found: Dict[str, Dict[str, Any]] = {}
    for entry in os.scandir(where) if os.path.isdir(where) else ():
        name = "%s/%s" % (path, entry.name)
        found[name] = _folder(name) if entry.is_dir() else _file(name, entry.stat().st_size)
    before = rest + "/" if rest else ""
    for shard, size in _shards_elsewhere(one):
        if shard == rest:
            return {path: _file(path, size)}
        if shard.startswith(before):
            head, slash, _ = shard[len(before) :].partition("/")
            name = "%s/%s" % (path, head)
            found[name] = _folder(name) if slash else _file(name, size)
    return found


def _file(name: str, size: int) -> Dict[str, Any]:
    return {"name": name, "size": size, "type": "file"}


def _folder(name: str) -> Dict[str, Any]:
    return {"name": name, "size": 0, "type": "directory"}


def _not_there(one: Input, rest: str) -> FileNotFoundError:
    return FileNotFoundError("%s is not in the input %r" % (rest, one.name or one.dataset))
