"""`s3://` paths in Python code that reads through fsspec (pandas, pyarrow, fsspec itself), mapped to the task's inputs.

A script that was written for a bucket runs unchanged where its path names an input: the bucket, or a folder of the key,
is called like the input or its dataset, and what follows is a path in it. Where the job has a single input, leading
folders of the key are dropped until a file is found. Reading only. What maps to no input is handed to `s3fs`, where
that is installed. TensorFlow opens `s3://` itself and never comes here: preflight says what to write instead.
"""

from __future__ import annotations

import os
from typing import Any, Dict, List, Tuple

from fsspec.spec import AbstractFileSystem

from yardmaster_runner.data.description import is_shard
from yardmaster_runner.data.inputs import Input, inputs
from yardmaster_runner.data.passes import fetched, listed


class MappedFileSystem(AbstractFileSystem):  # type: ignore[misc]  # fsspec is only in the environment of tasks
    """fsspec's file system for `s3` and `s3a` in a task."""

    protocol = ("s3", "s3a")
    root_marker = ""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **{key: value for key, value in options.items() if key in ("skip_instance_cache",)})
        self._for_others = {key: value for key, value in options.items() if key != "skip_instance_cache"}

    def ls(self, path: str, detail: bool = True, **options: Any) -> List[Any]:
        path = self._strip_protocol(path)
        found = mapped(path)
        if found is None:
            return list(self._other(path).ls(path, detail=detail, **options))
        entries = _entries(path.rstrip("/"), *found)
        return entries if detail else [one["name"] for one in entries]

    def info(self, path: str, **options: Any) -> Dict[str, Any]:
        path = self._strip_protocol(path)
        found = mapped(path)
        if found is None:
            return dict(self._other(path).info(path, **options))
        one, rest = found
        where = os.path.join(one.folder, rest)
        if os.path.isfile(where):
            return {"name": path, "size": os.path.getsize(where), "type": "file"}
        sizes = dict(listed(one)) if one.is_streamed else {}
        if rest in sizes:
            return {"name": path, "size": sizes[rest], "type": "file"}
        if os.path.isdir(where) or any(name.startswith(rest + "/") for name in sizes):
            return {"name": path, "size": 0, "type": "directory"}
        raise FileNotFoundError("%s is not in the input %r" % (rest, one.name or one.dataset))

    def _open(self, path: str, mode: str = "rb", **options: Any) -> Any:
        path = self._strip_protocol(path)
        found = mapped(path)
        if found is None:
            return self._other(path)._open(path, mode=mode, **options)
        if mode != "rb":
            message = "s3://%s is an input of the job and cannot be written to. Write below the log or model directory."
            raise PermissionError(message % path)
        one, rest = found
        where = os.path.join(one.folder, rest)
        if one.is_streamed and is_shard(rest) and not os.path.exists(where):
            connection, where = fetched(one, rest)
            try:
                return open(where, "rb")
            finally:
                connection.close()  # an open file stays readable whatever becomes of its name
        return open(where, "rb")

    def _other(self, path: str) -> Any:
        """The file system of a real bucket. Raises `FileNotFoundError` where there is none."""
        try:
            import s3fs
        except ImportError:
            names = ", ".join(sorted(repr(one.name or one.dataset) for one in inputs())) or "none"
            message = "s3://%s maps to no input of this job. Attach the data as an input whose name is the bucket's or "
            message += "a folder's of the path. The job's inputs: %s."
            raise FileNotFoundError(message % (path, names)) from None
        return s3fs.S3FileSystem(**self._for_others)


def mapped(path: str) -> "Tuple[Input, str] | None":
    """The input that `bucket/key` names and the path in it; None where it names none."""
    parts = [part for part in path.split("/") if part]
    known = inputs()
    if any(part in (".", "..") for part in parts):
        return None
    for place, part in enumerate(parts):
        for one in known:
            if part in (one.name, one.dataset):
                return one, "/".join(parts[place + 1 :])
    if len(known) == 1:
        names = {name for name, _ in listed(known[0])} if known[0].is_streamed else set()
        for place in range(1, len(parts)):
            rest = "/".join(parts[place:])
            if os.path.exists(os.path.join(known[0].folder, rest)) or rest in names:
                return known[0], rest
    return None


def _entries(path: str, one: Input, rest: str) -> List[Dict[str, Any]]:
    found: Dict[str, Dict[str, Any]] = {}
    where = os.path.join(one.folder, rest)
    if os.path.isfile(where):
        return [{"name": path, "size": os.path.getsize(where), "type": "file"}]
    if os.path.isdir(where):
        for entry in os.scandir(where):
            is_folder = entry.is_dir()
            size, kind = (0, "directory") if is_folder else (entry.stat().st_size, "file")
            found[entry.name] = {"name": "%s/%s" % (path, entry.name), "size": size, "type": kind}
    before = rest + "/" if rest else ""
    for name, size in listed(one) if one.is_streamed else ():
        if name == rest:
            return [{"name": path, "size": size, "type": "file"}]
        if name.startswith(before):
            head, slash, _ = name[len(before) :].partition("/")
            kind = "directory" if slash else "file"
            found[head] = {"name": "%s/%s" % (path, head), "size": 0 if slash else size, "type": kind}
    if not found and not os.path.isdir(where):
        raise FileNotFoundError("%s is not in the input %r" % (rest, one.name or one.dataset))
    return [found[name] for name in sorted(found)]
