"""The portal's task API, call by call (docs/protocols.md, section 5), for one task. Nothing is retried here."""

from __future__ import annotations

import gzip
from dataclasses import dataclass
from typing import Any, Dict, FrozenSet, List, Mapping, Optional, Sequence, Tuple

from yardmaster_runner.answers import PortalAway
from yardmaster_runner.portal import TIMEOUT, Portal

WORTH_COMPRESSING = 4096


@dataclass(frozen=True)
class Wishes:
    """What the portal wants of a task, as it answers a report."""

    stop: bool
    """The script is to be stopped."""
    shells: Tuple[str, ...] = ()
    """Terminals that users wait for, by id."""
    commands: FrozenSet[str] = frozenset()
    """Those of them that run one command each, without a terminal."""
    release: bool = False
    """The task is held open, and is not to be any longer."""
    watched: bool = False
    """A TensorBoard shows the job."""
    followed: bool = False
    """Its log is being read as it comes."""
    stacks: int = 0
    """How often users have asked for the stacks of this task's threads."""


class TaskApi:
    """All calls of one task. `timeout` bounds each network step and may be lowered near the end of the task's life."""

    def __init__(self, portal: Portal, role: str, index: int) -> None:
        self.portal = portal
        self.timeout = TIMEOUT
        self.who = {"role": role, "index": index}

    def order(self) -> Dict[str, Any]:
        answer = self.portal.call("GET", "task/order/", self.who, timeout=self.timeout)
        _field(answer, "spec", dict)
        return answer

    def files(self, version: str, after: str) -> Dict[str, Any]:
        """The files of a version behind this path, as many as are given at once, with fresh read URLs."""
        query = {**self.who, "after": after}
        answer = self.portal.call("GET", "task/versions/%s/files/" % version, query, timeout=self.timeout)
        _field(answer, "files", list)
        return answer

    def report(self, facts: Mapping[str, Any]) -> Wishes:
        """Tell the portal how the task is; what it wants of the task."""
        answer = self.portal.call("POST", "task/report/", body={**self.who, **facts}, timeout=self.timeout)
        stop = bool(_field(answer, "stop", bool))
        shells = answer.get("shells")
        rows = [one for one in shells if isinstance(one, dict)] if isinstance(shells, list) else []
        rows = [one for one in rows if isinstance(one.get("id"), str)]
        commands = frozenset(one["id"] for one in rows if one.get("command") is True)
        opens = tuple(one["id"] for one in rows)
        release, watched, followed = (answer.get(name) is True for name in ("release", "watched", "followed"))
        stacks = answer.get("stacks")
        return Wishes(stop, opens, commands, release, watched, followed, stacks if isinstance(stacks, int) else 0)

    def log_place(self, writer: int) -> Tuple[int, Optional[int]]:
        """The portal's next line, and the line after the newest that this writer wrote; None: it has none of them, or
        the writer is 0, which no writer is."""
        answer = self.portal.call("GET", "task/log/", {**self.who, "writer": writer}, timeout=self.timeout)
        next_line = int(_field(answer, "next_line", int))
        if writer and "mine" not in answer:
            return next_line, next_line  # an older portal, which knows of no writers
        mine = answer.get("mine")
        return next_line, mine if isinstance(mine, int) else None

    def log_write(
        self,
        writer: int,
        first: int,
        lines: int,
        data: bytes,
        times: Sequence[Tuple[int, int]],
        *,
        is_tail: bool = False,
    ) -> str:
        """Write whole lines from line `first` on. Refused with 409 where they do not continue what the portal has.
        Returns why the portal's log is full, "" where it is not: it has then not taken these lines, unless they are the
        task's last ones (`is_tail`), of which it keeps some and counts the others."""
        headers = {
            "Content-Type": "application/octet-stream",
            "X-Times": ",".join("%d:%d" % mark for mark in times),
        }
        if len(data) > WORTH_COMPRESSING and not self.portal.is_near:
            data = gzip.compress(data, 1)
            headers["Content-Encoding"] = "gzip"
        query = {**self.who, "first_line": first, "lines": lines, "writer": writer, "tail": int(is_tail)}
        return self._log_post("task/log/", query, raw=data, headers=headers)

    def log_gap(self, writer: int, first: int, lines: int, size: int) -> str:
        """Mark lines that are lost; they count as written. Refused as a write is, and returns the same."""
        query = {**self.who, "first_line": first, "writer": writer}
        return self._log_post("task/log/gap/", query, body={"lines": lines, "bytes": size})

    def log_open(self, line: int, text: str) -> None:
        """Show readers the line that is not finished, in the place of the one shown before. It is not kept."""
        query = {**self.who, "line": line}
        self.portal.call("POST", "task/log/open/", query, body={"text": text}, timeout=self.timeout)

    def log_end(self, lines: int) -> None:
        query = {**self.who, "lines": lines}
        answer = self.portal.call("POST", "task/log/end/", query, raw=b"", timeout=self.timeout)
        _field(answer, "next_line", int)

    def environment(self, facts: Mapping[str, Any]) -> Dict[str, Any]:
        """The environment with these packages: where it can be read, or whose turn it is to make it."""
        answer = self.portal.call("POST", "task/environment/", body={**self.who, **facts}, timeout=self.timeout)
        _field(answer, "state", str)
        return answer

    def packages(self, lock: Sequence[Mapping[str, str]]) -> Dict[str, Any]:
        """Note with the job what was installed for it."""
        return self.portal.call("POST", "task/packages/", body={**self.who, "lock": lock}, timeout=self.timeout)

    def agree(self, name: str, value: str) -> str:
        """What the tasks of this attempt have agreed on under this name: the first value that one of them gave."""
        body = {**self.who, "name": name, "value": value}
        answer = self.portal.call("POST", "task/agreed/", body=body, timeout=self.timeout)
        return str(_field(answer, "value", str))

    def begin_upload(self, kind: str, facts: Mapping[str, Any]) -> Dict[str, Any]:
        """`kind` is `checkpoints`, `model`, `outputs`, `published` or `environment/archive`. The upload as section 4
        describes it."""
        answer = self.portal.call("POST", "task/%s/" % kind, body=facts, timeout=self.timeout)
        return dict(_field(answer, "upload", dict))

    def nothing_published(self) -> None:
        """Tell the portal that this task has nothing to publish."""
        self.portal.call("POST", "task/published/", body=self.who, timeout=self.timeout)

    def event_files(self, *, is_shared: bool) -> List[Mapping[str, Any]]:
        """The event files that the portal has of this attempt, of this task or of the folder that the tasks share."""
        query = {**self.who, "shared": int(is_shared)}
        answer = self.portal.call("GET", "task/outputs/", query, timeout=self.timeout)
        return list(_field(answer, "files", list))

    def board(self, cursor: str, only: Sequence[str] = ()) -> Dict[str, Any]:
        """The event files that a TensorBoard shows and that changed since `cursor`; empty: all of them. `only` names
        folders: of no other one files are listed."""
        query = {**self.who, "cursor": cursor, **({"only": ",".join(only)} if only else {})}
        answer = self.portal.call("GET", "task/board/", query, timeout=self.timeout)
        _field(answer, "cursor", str)
        _field(answer, "folders", list)
        _field(answer, "files", list)
        return answer

    def part_urls(
        self, upload: str, wanted: Sequence[Tuple[int, int, str]]
    ) -> Dict[Tuple[int, int], Mapping[str, Any]]:
        """Where to send these parts, each a file's index, the part's number and its SHA-256."""
        body = {"parts": [{"file": file, "part": part, "sha256": sha256} for file, part, sha256 in wanted]}
        answer = self.portal.call("POST", "task/uploads/%s/parts/" % upload, body=body, timeout=self.timeout)
        return {(int(one["file"]), int(one["part"])): one for one in _field(answer, "urls", list)}

    def complete_upload(self, upload: str) -> bool:
        """Put the files together; False while the portal is still at it (ask again)."""
        answer = self.portal.call("POST", "task/uploads/%s/complete/" % upload, body={}, timeout=self.timeout)
        return bool(_field(answer, "state", str) != "completing")

    def _log_post(self, path: str, query: Mapping[str, Any], **content: Any) -> str:
        answer = self.portal.call("POST", path, query, timeout=self.timeout, **content)
        _field(answer, "next_line", int)
        full = answer.get("full")
        return str(full.get("detail") or "its log is full") if isinstance(full, dict) else ""


def _field(answer: Mapping[str, Any], name: str, kind: type) -> Any:
    """An answer without what it must have is no answer: something between us and the portal made it."""
    value = answer.get(name)
    if not isinstance(value, kind):
        raise PortalAway("an answer without %s" % name)
    return value
