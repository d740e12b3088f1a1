"""What changed from one revision of a template to the next, in words. Pure.

A revision is flattened to labels with a value each (`Worker replicas`: `2`), and the labels are compared; arguments,
which are a sequence, are compared as one. Not here: what a template may say.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from typing import Any

MOST_TEXT = 120
MOST_COMPARED = 10_000
"""Pairs of arguments that are compared one by one: to align a thousand with a thousand takes half a minute."""
MOST_CHANGES = 50
_WITH_WORDS = frozenset({"arguments", "environment", "roles", "inputs", "code"})
"""Keys of a specification that are written in words of their own."""
_WORDS = {"cpu": "CPU", "gpus": "GPUs"}


@dataclass(frozen=True)
class Said:
    """What a revision says, as it is stored. `latest`, `named`: by the keys of what it names (`code`, `inputs.0`)."""

    spec: Mapping[str, Any]
    engine: str = ""
    latest: Mapping[str, str] = field(default_factory=dict)
    named: Mapping[str, str] = field(default_factory=dict)
    parameters: Sequence[Mapping[str, Any]] = ()


def changes(before: Said, after: Said) -> list[str]:
    """One sentence for each difference, the arguments first; none where both say the same. Of many the first, and how
    many more there are."""
    found = _all_changes(before, after)
    more = len(found) - MOST_CHANGES
    return [*found[:MOST_CHANGES], f"{more} more changes"] if more > 1 else found


def _all_changes(before: Said, after: Said) -> list[str]:
    old, new = dict(_labels(before)), dict(_labels(after))
    found = _arguments(list(before.spec.get("arguments") or ()), list(after.spec.get("arguments") or ()))
    for label in dict.fromkeys([*old, *new]):
        if label not in new:
            found.append(f"{label} removed; it was {_text(old[label])}")
        elif label not in old:
            found.append(f"{label} added: {_text(new[label])}")
        elif type(old[label]) is not type(new[label]) or old[label] != new[label]:
            found.append(f"{label} changed{_from_to(old[label], new[label])}")
    return found


def _from_to(old: Any, new: Any) -> str:
    was, now = _text(old), _text(new)
    return f" from {was} to {now}" if was != now else f"; it begins, or reads, as before: {now}"


def _arguments(old: list[str], new: list[str]) -> list[str]:
    found = []
    old, new = _without_same_ends(old, new)
    if len(old) * len(new) > MOST_COMPARED:
        return [f"Arguments changed{_from_to(old, new)}"]
    for tag, i, j, k, m in SequenceMatcher(a=old, b=new, autojunk=False).get_opcodes():
        gone, come = _text(old[i:j]), _text(new[k:m])
        if tag == "replace":
            found.append(f"Arguments changed{_from_to(old[i:j], new[k:m])}")
        elif tag == "delete":
            found.append(f"Arguments removed: {gone}")
        elif tag == "insert":
            found.append(f"Arguments added: {come}")
    return found


def _without_same_ends(old: list[str], new: list[str]) -> tuple[list[str], list[str]]:
    begin, shorter = 0, min(len(old), len(new))
    while begin < shorter and old[begin] == new[begin]:
        begin += 1
    end = 0
    while end < shorter - begin and old[-1 - end] == new[-1 - end]:
        end += 1
    return old[begin : len(old) - end], new[begin : len(new) - end]


def _labels(one: Said) -> Iterator[tuple[str, Any]]:
    """Each with its value as it is: cut texts would hide a difference behind their ends."""
    spec = one.spec
    for name, value in (spec.get("environment") or {}).items():
        yield f"Variable {_short(name)}", value
    if spec.get("code"):
        yield "Code", _version(one, "code", spec["code"])
    for index, given in enumerate(spec.get("inputs") or ()):
        version = given.get("dataset_version") or given.get("model_version") or ""
        yield f"Input {index + 1}", _version(one, f"inputs.{index}", version)
        for key, value in given.items():
            if key not in ("dataset_version", "model_version"):
                yield from _values(f"Input {index + 1}", key, value)
    for role, given in (spec.get("roles") or {}).items():
        for key, value in given.items():
            yield from _values(role.capitalize(), key, value)
    yield "Engine", one.engine or "the default one"
    for key, value in spec.items():
        if key not in _WITH_WORDS:
            yield from _values("", key, value)
    for parameter in one.parameters:
        name = _short(str(parameter.get("name", "")))
        for key, value in parameter.items():
            if key != "name":
                yield from _values(f"Parameter {name}", key, value)


def _values(of: str, key: str, value: Any) -> Iterator[tuple[str, Any]]:
    """What is absent, none or empty is not said: it counts as the same."""
    if value is not None and value != "" and value != [] and value != {}:
        words = _WORDS.get(key) or _short(key).replace("_", " ")
        yield (f"{of}, {words}" if of else words[:1].upper() + words[1:]), value


def _version(one: Said, key: str, version: str) -> str:
    """Its name where it was known when the revision was saved."""
    if key in one.latest:
        name = one.named.get(key, "").rpartition(", version ")[0]
        return f"the latest version of {name}" if name else "the latest version"
    return one.named.get(key) or str(version)


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, (list, tuple)):
        return _short(" ".join(str(one) for one in value))
    if isinstance(value, Mapping):
        return _short(", ".join(f"{name} = {_text(one)}" for name, one in value.items()))
    return _short(str(value)) or "the empty text"


def _short(text: str) -> str:
    return text if len(text) <= MOST_TEXT else f"{text[: MOST_TEXT - 1]}…"
