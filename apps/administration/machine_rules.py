"""What an administrator may say of a machine of the engine `hosts`, and when it may be changed or removed. Pure.

Not here: what each field may be (`yardmaster.engines.hosts.inventory`), and acting on it (`machines`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from yardmaster.engines.hosts.inventory import read_entry
from yardmaster.errors import Problem
from yardmaster.job.spec_limits import shorten

FIELDS = (
    "name", "address", "port", "user", "cores", "memory", "gpus", "ports", "folder", "python", "task_python",
)  # fmt: skip
RESERVED = "new"
STAYS = ("address", "user", "folder")
"""The portal finds its files and tasks on a machine by these, so they cannot change while tasks are there."""
_REMEDIES = {
    "name": "Choose a name such as gpu-1, with lower case letters, digits, - and .",
    "address": "Enter its private IPv4 address, such as 10.0.0.11.",
    "port": "Enter the port of its SSH server, usually 22.",
    "user": "Enter the account with which the portal logs in, such as train.",
    "cores": "Enter a number such as 16, or leave it empty: then it is measured.",
    "memory": "Enter an amount such as 64Gi, or leave it empty: then it is measured.",
    "gpus": "Enter a number, or names separated by commas, or leave it empty: then they are counted.",
    "ports": "Enter first and last, such as 20000-29999, or leave it empty.",
    "folder": "Enter a path on a local disk, such as /srv/yardmaster.",
    "python": "Enter a path or a name, such as python3.12.",
    "task_python": "Enter a path such as /opt/tf/bin/python, or leave it empty.",
}


def entry_of(texts: Mapping[str, str]) -> dict[str, Any]:
    """What a form says, as the entry of a list. Empty fields are left out; what is no number stays a text, which
    `problems_of` names."""
    entry: dict[str, Any] = {}
    for name in FIELDS:
        text = texts.get(name, "").strip()
        if text:
            entry[name] = _READERS.get(name, str)(text)
    return entry


def texts_of(entry: Mapping[str, Any]) -> dict[str, str]:
    """The form that says this entry."""
    texts = {name: str(entry[name]) for name in FIELDS if name in entry}
    for name, between in (("gpus", ", "), ("ports", "-")):
        if isinstance(entry.get(name), list | tuple):
            texts[name] = between.join(str(one) for one in entry[name])
    return texts


def problems_of(entry: Mapping[str, Any]) -> list[Problem]:
    """Every field that is wrong, with its value and what to do."""
    _, wrong = read_entry(entry)
    problems = [_problem(entry, name, message) for name, message in wrong.items()]
    if entry.get("name") == RESERVED:
        problems.append(_problem(entry, "name", f"name is {RESERVED!r}, which is an address of the portal"))
    for name in sorted({"host_key", "cordoned"} & set(entry)):
        message = f"{name} cannot be set here."
        remedy = "Accept the host key, or drain the machine, on its page."
        problems.append(Problem(name, "not_here", message, remedy, shorten(str(entry[name]))))
    cores, memory = (entry.get(name) for name in ("cores", "memory"))
    if not wrong and (_is_nothing(cores) or _is_nothing(memory)):
        name = "cores" if _is_nothing(cores) else "memory"
        problems.append(_problem(entry, name, f"{name} is {entry[name]!r}, so that no task could run there"))
    return problems


def why_not_removed(name: str, tasks: int, *, is_draining: bool, has_answered: bool) -> str:
    """Why a machine stays in the list; empty: it may go. `has_answered`: tasks may have been sent there."""
    if tasks:
        return f"{_count(tasks)} on {name}. Drain it, and remove it when they have ended."
    if has_answered and not is_draining:
        return f"{name} takes tasks. Drain it first, so that no task starts there meanwhile."
    return ""


def moved_fields(before: Mapping[str, Any], after: Mapping[str, Any], tasks: int) -> list[Problem]:
    """The fields that are changed although tasks are there."""
    if not tasks:
        return []
    remedy = "Drain the machine, and change this when the tasks have ended."
    return [
        Problem(name, "in_use", f"{_count(tasks)} there: {name} must stay {before.get(name, 'as it is')}.", remedy,
                shorten(str(after.get(name, ""))))
        for name in STAYS
        if before.get(name) != after.get(name)
    ]  # fmt: skip


def _count(tasks: int) -> str:
    return "1 task is" if tasks == 1 else f"{tasks} tasks are"


def _problem(entry: Mapping[str, Any], name: str, message: str) -> Problem:
    known = f"The fields of a machine are {', '.join(FIELDS)}."
    value = entry.get(name, "")
    sentence = f"{message[:1].upper()}{message[1:]}".rstrip(".") + "."
    return Problem(shorten(str(name)), "invalid", sentence, _REMEDIES.get(name, known), shorten(str(value)))


def _is_nothing(value: object) -> bool:
    return value is not None and str(value).strip() in ("0", "0.0", "0m")


def _number(text: str) -> int | str:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else text


def _gpus(text: str) -> int | str | list[str]:
    number = _number(text)
    if isinstance(number, int) or not text.strip("+-.0123456789"):
        return number
    return [one.strip() for one in text.split(",") if one.strip()]


def _ports(text: str) -> list[int | str] | str:
    first, dash, last = text.partition("-")
    return [_number(first.strip()), _number(last.strip())] if dash else text


_READERS: Mapping[str, Any] = {"port": _number, "gpus": _gpus, "ports": _ports}
