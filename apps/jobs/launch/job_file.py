"""The job of the launch form as a job file, the way a person would write it, and as a command; and read back.

Files are read by the client's own reader, so that a file means the same here and on the command line. Not here: what
makes a job valid (`yardmaster.job.spec_json`), and which names there are (`choices`).
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import yaml

from yardmaster.errors import Problem, SpecRejected
from yardmaster.job.spec import Role, RoleSpec, Strategy, TrainingSpec
from yardmaster.job.spec_json import spec_to_json, too_large
from yardmaster.job.strategy import only_serves
from yardmaster.sandbox.function import NoResult, Sandbox
from yardmaster_client.jobfile import JobFile, JobFileError, job_from_text

LONGEST_FILE = 256 << 10
_SMALL_FILE = 4 << 10
"""Characters that are read within a tenth of a second, whatever they are, with no more than `_FEW_BRACKETS`: nesting is
what costs most."""
_FEW_BRACKETS = 100
_READER = Sandbox("apps.jobs.launch.job_file:read_file", packages=["yaml"], seconds=8)
_END = "JOB"
_TOP_LEVEL = re.compile(r"([a-z_]{1,40})\s*:")
_DEFAULTS = spec_to_json(TrainingSpec("job", Strategy.SINGLE, {Role.WORKER: RoleSpec()}, uuid.UUID(int=0), "train.py"))
_ALWAYS = ("name", "strategy", "roles", "code", "entry_point")
_OF_SCRIPT = ("code", "entry_point")
_WITHOUT_SCRIPT = [one.value for one in Strategy if only_serves(one)]
_INPUT_DEFAULTS = {"name": "", "mode": "folder", "share": "all", "stands_for": "", "source": "store"}
_WIDTH = 1_000


class _Dumper(yaml.SafeDumper):
    """Mappings of plain values on one line, everything else on lines of its own."""

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        super().increase_indent(flow, False)  # the dashes of a list stand below their key, not beside it


class _OnOneLine(dict[str, Any]):
    pass


_Dumper.add_representer(
    _OnOneLine,
    lambda dumper, data: dumper.represent_mapping("tag:yaml.org,2002:map", data.items(), flow_style=True),
)


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.Node:
    """Whatever YAML may take for the end of a line is written out: folded, it would come back as a space."""
    style = None if text.isprintable() else '"'
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _text)


def job_as_yaml(
    spec: Mapping[str, Any], *, namespace: str = "", engine: str = "", names: Mapping[str, str] | None = None
) -> str:
    """The job file. What has its default is left out; versions are called by `names` (id: `name@number`)."""
    names = names or {}
    data: dict[str, Any] = {"name": spec.get("name", "")}
    data |= {key: value for key, value in (("namespace", namespace), ("engine", engine)) if value}
    for key in _DEFAULTS:
        if (
            key in _OF_SCRIPT
            and not spec.get(key)
            and (spec.get("program") or spec.get("command") or spec.get("strategy") in _WITHOUT_SCRIPT)
        ):
            continue
        if key in spec and key not in ("name", "version") and (key in _ALWAYS or spec[key] != _DEFAULTS[key]):
            data[key] = _written(key, spec[key], names)
    kept = {key: value for key, value in data.items() if value not in ({}, []) or key == "requirements"}
    return yaml.dump(kept, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=_WIDTH)


def command_of(text: str) -> str:
    """A command that launches this job file, whole, from any shell."""
    end = _END
    while end in text.split("\n"):
        end += "_"
    return f"yardmaster jobs launch /dev/stdin --follow <<'{end}'\n{text.rstrip()}\n{end}"


def job_of_yaml(text: str) -> JobFile:
    """The job that a file's text says, with its names as they stand there. Raises `SpecRejected` where it says none."""
    if (size := len(text.encode())) > LONGEST_FILE:
        raise SpecRejected([too_large(size, LONGEST_FILE, _sizes_of(text))])
    found = read_bounded(text, read_file, _READER, "Try again, with fewer values and less nesting.")
    if "error" in found:
        raise SpecRejected([Problem("", "bad_value", found["error"], "Correct the text, or change the form.")])
    return JobFile(found["spec"], found["namespace"], found["engine"])


def read_bounded(text: str, read: Callable[[str], dict[str, Any]], sandbox: Sandbox, remedy: str) -> dict[str, Any]:
    """What `read` makes of a YAML text of at most `LONGEST_FILE`: of a small one here, else in the `sandbox`,
    which calls the same function. Raises `SpecRejected` where that takes too long."""
    is_small = len(text) <= _SMALL_FILE and text.count("[") + text.count("{") <= _FEW_BRACKETS
    try:
        found: dict[str, Any] = read(text) if is_small else sandbox.call(text, wait=12.0)
    except NoResult as error:
        message = "Reading the text takes too long, or too many such texts are being read."
        raise SpecRejected([Problem("", "too_hard", message, remedy)]) from error
    return found


def _sizes_of(text: str) -> dict[str, int]:
    """About how long each field at the top level is, in bytes: the text is too long to be read as YAML."""
    sizes: dict[str, int] = {}
    key = ""
    for line in text.splitlines(keepends=True):
        if found := _TOP_LEVEL.match(line):
            key = found[1]
        if key:
            sizes[key] = sizes.get(key, 0) + len(line.encode())
    return sizes


def read_file(text: str) -> dict[str, Any]:
    """`spec`, `namespace` and `engine` of a job file, or `error`: what is wrong with it. Runs in a sandboxed process
    where the text is not small: YAML of 256 KiB can take a minute to read."""
    try:
        file = job_from_text(text, Path("job.yaml"))
    except JobFileError as error:
        return {"error": _said(error)}
    return {"spec": file.spec, "namespace": file.namespace, "engine": file.engine}


def _written(key: str, value: Any, names: Mapping[str, str]) -> Any:
    match key:
        case "code":
            return names.get(value, value)
        case "roles":
            return {role: _OnOneLine(_without_no_image(one)) for role, one in value.items()}
        case "inputs":
            return [_OnOneLine(_input(one, names)) for one in value]
        case "spark":
            return _OnOneLine(value)
        case "connection":
            return _OnOneLine({one: text for one, text in value.items() if text})
        case "secrets":
            return [_OnOneLine(one) for one in value]
        case "paths" | "success":
            return {one: text for one, text in value.items() if text != _DEFAULTS[key].get(one)}
    return value


def _without_no_image(role: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in role.items() if key != "image" or value}


def _input(one: Mapping[str, str], names: Mapping[str, str]) -> dict[str, str]:
    if "model_version" in one:
        return dict(one)
    version = one.get("dataset_version", "")
    if "dataset" in one:
        return dict(one)
    rest = {key: one[key] for key, default in _INPUT_DEFAULTS.items() if one.get(key, default) != default}
    return ({"dataset": names[version]} if version in names else {"dataset_version": version}) | rest


def _said(error: JobFileError) -> str:
    """The reader's sentence, with the line in words instead of a file's name."""
    message = str(error).partition(": ")[2]
    where = f"Line {error.line}: " if error.line else ""
    return f"{where}{message[:1].upper() if not where else message[:1]}{message[1:]}."
