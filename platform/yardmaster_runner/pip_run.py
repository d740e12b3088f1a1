"""One run of pip, and what its failure means in plain words. Not here: which packages are asked for."""

from __future__ import annotations

import contextlib
import glob
import json
import os
import re
import signal
import ssl
import subprocess
from importlib.util import find_spec
from typing import Any, Callable, Dict, List, Sequence
from urllib.parse import quote, urlsplit, urlunsplit

LONGEST_REPORT = 32 << 20
LAST_LINES = 60
LONGEST_MESSAGE = 900
OFFLINE = "this portal installs no packages, it is offline. Use what the image has, or ask an administrator"
AWAY = "the package index does not answer. Try again later, or ask an administrator"
_AWAY = re.compile(
    r"Max retries exceeded|too many 50\d error|Read timed out|50\d Server Error|Connection (?:refused|reset)"
)
_HIDDEN = re.compile(r"Looking in |\[notice\]|WARNING: Running pip as|Saved |Requirement already satisfied")
_CAUSES = re.compile(r"(?:The user requested|\s{4}\S)")
_SOURCE = re.compile(r" \(from -[rc] \S+ \(line \d+\)\)|->-[rc] \S+ \(line \d+\)")
_ADDRESS = re.compile(r"https?://\S+/task/index/files/[^/\s]+/([^/\s]+)")
_UNFINISHED = re.compile(r"\d(?:a|b|rc|\.dev)\d")


class PipFailed(Exception):
    """Nothing was installed that may be used. The message says why, and what helps."""


class PipRun:
    """pip in the environment of `python`, with the portal's package index at this address. `folder` is for its files;
    `say` shows a line of its output. Not `online`: the portal has no index, and pip finds nothing there."""

    def __init__(
        self, *, python: str, folder: str, index: str, token: str, say: Callable[[str], None], online: bool
    ) -> None:
        self._python = python
        self._folder = folder
        self._index = _with_token(index, token)
        self._say = say
        self._online = online
        self._tail: List[str] = []

    def install(self, lines: Sequence[str], constraints: Sequence[str]) -> List[Dict[str, str]]:
        """Install what these requirement lines need and the environment has not. Returns the name, version and SHA-256
        of each distribution that was installed. Raises `PipFailed` and OSError."""
        report = os.path.join(self._folder, "report.json")
        command = [
            *_pip(self._python), "install", "--no-input", "--disable-pip-version-check", "--no-cache-dir",
            "--progress-bar", "off", "--report", report, "--only-binary", ":all:",
            "--constraint", self._write("constraints.txt", constraints),
            "--requirement", self._write("requirements.txt", lines),
        ]  # fmt: skip
        if exit_code := self._run(command):
            raise PipFailed(why(self._tail, exit_code, online=self._online))
        return _lock(report)

    def _run(self, command: Sequence[str]) -> int:
        """Its exit code. Whatever ends us ends it."""
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            env=self._environment(), cwd=self._folder, start_new_session=True,
        )  # fmt: skip
        assert process.stdout is not None
        try:
            for raw in process.stdout:
                line = raw.decode("utf-8", "replace").rstrip()[:1000]
                self._tail = [*self._tail[-LAST_LINES:], line]
                if line and not _HIDDEN.match(line):
                    self._say("pip: %s" % shown(line))
            return process.wait()
        finally:
            if process.returncode is None:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait()
            process.stdout.close()

    def _environment(self) -> Dict[str, str]:
        """Without the machine's own settings of pip: where packages come from is the portal's to say."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("PIP_", "YARDMASTER_"))}
        kept.update({"PIP_INDEX_URL": self._index, "PIP_CONFIG_FILE": os.devnull, "PYTHONNOUSERSITE": "1"})
        parts = urlsplit(self._index)
        if parts.scheme == "http":
            kept["PIP_TRUSTED_HOST"] = parts.netloc.rpartition("@")[2]
        elif certificates := os.environ.get("SSL_CERT_FILE") or ssl.get_default_verify_paths().cafile:
            kept["PIP_CERT"] = certificates
        return kept

    def _write(self, name: str, lines: Sequence[str]) -> str:
        path = os.path.join(self._folder, name)
        with open(path, "w", encoding="utf-8") as file:
            file.writelines(line + "\n" for line in lines)
        return path


def shown(line: str) -> str:
    """A line of pip's without what only we know: files of ours, and the portal's addresses."""
    return _ADDRESS.sub(r"\1", _SOURCE.sub("", line))


def why(lines: Sequence[str], exit_code: int, *, online: bool = True) -> str:
    """What pip's last lines say, in words for who wrote the requirements."""
    text = "\n".join(lines)
    if "ResolutionImpossible" in text or "conflicting dependencies" in text:
        causes = [line.strip() for line in lines if _CAUSES.match(line)]
        return _short("no set of versions fits all of them. " + "; ".join(causes) + ". Change or remove one of these")
    if found := re.search(r"No matching distribution found for ([^\n]+)", text):
        if not online:
            return _short("%s: %s" % (found.group(1).strip(), OFFLINE))
        if _AWAY.search(text):
            return AWAY
        return _no_match(found.group(1).strip(), text)
    if "In --require-hashes mode" in text:
        lacking = ", ".join(found.strip() for found in re.findall(r"^\s{4}(\S.*)$", text, re.MULTILINE)[:5])
        remedy = "Write them with version and hash as well, or leave the hashes out"
        return _short(
            "some requirements have hashes, so all need them, and these have none: %s. %s" % (lacking, remedy)
        )
    if "HASHES DO NOT MATCH" in text or "hash mismatch" in text.lower():
        return "a file of the index has not the SHA-256 that was written for it"
    if "No space left" in text or "Errno 28" in text:
        return "the disk of the task is full"
    if found := re.search(r"Invalid requirement: ([^\n]+)", text):
        return _short("%s is no requirement as pip reads them" % found.group(1))
    if _AWAY.search(text):
        return AWAY
    errors = [line[7:] for line in lines if line.startswith("ERROR: ")]
    return _short(errors[-1] if errors else "pip ended with exit code %d" % exit_code)


def _no_match(requirement: str, text: str) -> str:
    versions = re.search(r"from versions: ([^)\n]*)\)", text)
    if needed_by := re.search(r"satisfies the requirement \S+ \(from ([^)\n:]+)\) \(from versions", text):
        requirement = "%s (needed by %s)" % (requirement, needed_by.group(1))
    listed = [one.strip() for one in versions.group(1).split(",")] if versions else []
    listed = [one for one in listed if one and one != "none"]
    listed = [one for one in listed if not _UNFINISHED.search(one)] or listed
    if not listed:
        hint = "the index has no wheel of it for this Python. Check the name"
        return _short("%s: %s; a package without wheels needs a line --no-binary NAME" % (requirement, hint))
    return _short(
        "%s: the index has no such version for this Python. It has %s" % (requirement, ", ".join(listed[-8:]))
    )


def _short(text: str) -> str:
    return text if len(text) <= LONGEST_MESSAGE else text[: LONGEST_MESSAGE - 1].rstrip() + "…"


def _lock(report: str) -> List[Dict[str, str]]:
    if not os.path.exists(report):
        return []
    if os.path.getsize(report) > LONGEST_REPORT:
        raise PipFailed("pip's report is larger than %d bytes" % LONGEST_REPORT)
    with open(report, encoding="utf-8") as file:
        rows: List[Dict[str, Any]] = json.load(file).get("install") or []
    found = []
    for row in rows:
        hashes = ((row.get("download_info") or {}).get("archive_info") or {}).get("hashes") or {}
        name, version = row["metadata"]["name"], row["metadata"]["version"]
        found.append({"name": str(name), "version": str(version), "sha256": str(hashes.get("sha256") or "")})
    return sorted(found, key=lambda one: one["name"].lower())


def _pip(python: str) -> List[str]:
    """The image's pip; without one, the wheel that Python itself brings."""
    if find_spec("pip") is not None:
        return [python, "-m", "pip"]
    bundled = find_spec("ensurepip")
    if bundled is not None and bundled.origin is not None:
        wheels = glob.glob(os.path.join(os.path.dirname(bundled.origin), "_bundled", "pip-*.whl"))
        if wheels:
            return [python, os.path.join(sorted(wheels)[-1], "pip")]
    raise PipFailed("the image of this task has no pip. Add it to the image")


def _with_token(url: str, token: str) -> str:
    parts = urlsplit(url)
    return urlunsplit(parts._replace(netloc="task:%s@%s" % (quote(token, safe=""), parts.netloc)))
