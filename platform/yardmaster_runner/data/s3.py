"""`s3://` paths in Python code that reads through fsspec (pandas, pyarrow, fsspec itself), mapped to the task's inputs.

A script that was written for a bucket runs unchanged where its path leads to an input (`s3_paths` decides). Reading
only. What leads to no input is handed to `s3fs`, where that is installed. TensorFlow opens `s3://` itself and never
comes here: preflight says what to write instead.
"""

from __future__ import annotations

import os
from typing import Any, Dict, List

from fsspec.spec import AbstractFileSystem

from yardmaster_runner.data.description import is_shard
from yardmaster_runner.data.inputs import inputs
from yardmaster_runner.data.passes import fetched
from yardmaster_runner.data.s3_paths import described, entries_at, entry_at, leads_to_inputs, mapped


class MappedFileSystem(AbstractFileSystem):  # type: ignore[misc]  # fsspec is only in the environment of tasks
    """fsspec's file system for `s3` and `s3a` in a task."""

    protocol = ("s3", "s3a")
    root_marker = ""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **{key: value for key, value in options.items() if key in ("skip_instance_cache",)})
        self._for_others = {key: value for key, value in options.items() if key != "skip_instance_cache"}

    def ls(self, path: str, detail: bool = True, **options: Any) -> List[Any]:
        path = self._strip_protocol(path).strip("/")
        known = inputs()
        if mapped(path, known) is None and not leads_to_inputs(path, known):
            return list(self._other(path).ls(path, detail=detail, **options))
        entries = entries_at(path, known)
        return entries if detail else [one["name"] for one in entries]

    def info(self, path: str, **options: Any) -> Dict[str, Any]:
        path = self._strip_protocol(path).strip("/")
        known = inputs()
        if mapped(path, known) is None and not leads_to_inputs(path, known):
            return dict(self._other(path).info(path, **options))
        return entry_at(path, known)

    def _open(self, path: str, mode: str = "rb", **options: Any) -> Any:
        path = self._strip_protocol(path)
        found = mapped(path, inputs())
        if found is None:
            return self._other(path)._open(path, mode=mode, **options)
        if mode != "rb":
            message = "s3://%s is an input of the job and cannot be written to. Write below the log or model directory."
            raise PermissionError(message % path)
        one, rest = found
        where = os.path.join(one.folder, rest)
        if one.has_shards_elsewhere and is_shard(rest) and not os.path.exists(where):
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
            names = ", ".join(sorted(described(one) for one in inputs())) or "none"
            message = "s3://%s maps to no input of this job. Attach the data as an input that stands for the path "
            message += "(stands_for), or has the name of the bucket or of a folder in the path. The job's inputs: %s."
            raise FileNotFoundError(message % (path, names)) from None
        return s3fs.S3FileSystem(**self._for_others)
