"""Job files: a job specification in YAML or JSON as people write it, and what turns it into a request.

A file holds the specification and may add `namespace`, `engine` and `accept_never_fits`. `code` may be a version's id,
a name or `name@version`; an input may say `dataset: name` (or `name@version`, or an id) in place of `dataset_version`.
Which values are valid is the portal's to say; here only what a file is.
"""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import yaml

MOST_VALUES = 100_000
MOST_CHARACTERS = 1 << 20


class JobFileError(Exception):
    """The file is no job. `line` and `column` count from 1, where known."""

    def __init__(self, file: Path, message: str, line: int | None = None, column: int | None = None) -> None:
        self.line, self.column = line, column
        place = f"{file}:{line}:{column}" if line else str(file)
        super().__init__(f"{place}: {message}")


@dataclass(frozen=True)
class JobFile:
    """What a file said."""

    spec: dict[str, Any]
    namespace: str | None = None
    engine: str | None = None
    accept_never_fits: bool = False
    """Queue it also where it can never start as limits and machines are now."""


def read_job_file(file: Path, changes: Iterable[str] = ()) -> JobFile:
    """The file's job, with `changes` such as `roles.worker.replicas=3` applied. Raises `JobFileError`."""
    try:
        text = file.read_text(encoding="utf-8")
    except OSError as error:
        raise JobFileError(file, f"cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise JobFileError(file, "is not a text in UTF-8") from error
    return job_from_text(text, file, changes)


def changed(spec: Mapping[str, Any], changes: Iterable[str]) -> dict[str, Any]:
    """A copy of a specification with changes such as `roles.worker.replicas=3`. Raises `JobFileError`."""
    data = copy.deepcopy(dict(spec))
    for change in changes:
        _apply(Path("changes"), data, change)
    return data


def job_from_text(text: str, file: Path, changes: Iterable[str] = ()) -> JobFile:
    """The job that a text says; `file` names it in errors, and by its ending says whether it is YAML or JSON."""
    data = _from_json(file, text) if file.suffix == ".json" else _from_yaml(file, text)
    if not isinstance(data, dict):
        raise JobFileError(file, "holds no mapping: a job file begins with lines such as `name: my-job`", 1, 1)
    for change in changes:
        _apply(file, data, change)
    for key in ("namespace", "engine"):
        if not isinstance(data.get(key), str | None):
            raise JobFileError(file, f"`{key}` must be a text")
    if not isinstance(data.get("accept_never_fits", False), bool):
        raise JobFileError(file, "`accept_never_fits` must be true or false")
    namespace, engine = data.pop("namespace", None), data.pop("engine", None)
    return JobFile(data, namespace, engine, data.pop("accept_never_fits", False))


def with_entry(
    job: JobFile, entry_point: str | None, command: str | None, tf1: bool | None, image: str | None = None
) -> JobFile:
    """The job with another entry point or command, which takes the place of the file's own, whichever that is; and
    another image."""
    spec = dict(job.spec)
    if command is not None:
        spec = {key: value for key, value in spec.items() if key not in ("entry_point", "arguments", "parameters")}
        spec["command"] = command
    if entry_point is not None:
        if command is None:
            spec.pop("command", None)
        spec["entry_point"] = entry_point
    if tf1 is not None:
        spec["tf1"] = tf1
    if image is not None:
        spec["image"] = image
    return replace(job, spec=spec)


def with_preset(job: JobFile, preset: Mapping[str, Any]) -> JobFile:
    """The job with what a preset of the portal says and the file does not: whole keys, and within roles each amount.
    Raises ValueError where the file has another strategy."""
    said, spec = preset["spec"], dict(job.spec)
    if spec.get("strategy", said.get("strategy")) != said.get("strategy"):
        raise ValueError(
            f"The job file has the strategy {spec['strategy']}, and the preset {preset['name']} {said.get('strategy')}."
        )
    own = spec.get("roles")
    filled = {**said, **spec}
    if isinstance(own, dict) and isinstance(said.get("roles"), dict):
        names = [*own, *(name for name in said["roles"] if name not in own)]
        filled["roles"] = {name: _filled(own.get(name), said["roles"].get(name)) for name in names}
    return replace(job, spec=filled, engine=job.engine or preset["engine"] or None)


def _filled(own: Any, said: Any) -> Any:
    if own is None:
        return said
    return {**said, **own} if isinstance(own, dict) and isinstance(said, dict) else own


class _Loader(yaml.SafeLoader):
    """YAML with plain JSON values: no dates, sets or bytes, `yes` and `on` are texts, and no key twice."""

    yaml_constructors = {
        tag: construct
        for tag, construct in yaml.SafeLoader.yaml_constructors.items()
        if tag is None or tag.rpartition(":")[2] in {"null", "bool", "int", "float", "str", "seq", "map"}
    }

    yaml_implicit_resolvers = {
        first: [(tag, pattern) for tag, pattern in resolvers if not tag.endswith((":timestamp", ":bool"))]
        for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        seen: set[str] = set()
        for key, _ in node.value:
            if key.tag.endswith(":merge"):
                continue
            if not isinstance(key, yaml.ScalarNode):
                raise yaml.constructor.ConstructorError(None, None, "a key must be a text", key.start_mark)
            if key.value in seen:
                message = f"the key {key.value!r} is repeated"
                raise yaml.constructor.ConstructorError(None, None, message, key.start_mark)
            seen.add(key.value)
        return super().construct_mapping(node, deep)


_Loader.add_implicit_resolver("tag:yaml.org,2002:bool", re.compile(r"^(?:true|false)$"), ["t", "f"])


def documents_from_text(text: str, file: Path) -> list[Any]:
    """All documents of a YAML text, within the bounds of a job file. Raises `JobFileError`."""
    return _documents(file, text, _nodes)


def _from_yaml(file: Path, text: str) -> Any:
    found = _documents(file, text, lambda loader: [loader.get_single_node()])
    return found[0] if found else None


def _nodes(loader: _Loader) -> Iterator[yaml.Node | None]:
    while loader.check_node():
        yield loader.get_node()


def _documents(file: Path, text: str, nodes_of: Callable[[_Loader], Iterable[yaml.Node | None]]) -> list[Any]:
    try:
        loader = _Loader(text)
        try:
            nodes = [node for node in nodes_of(loader) if node is not None]
            known: dict[int, _Size] = {}
            sizes = [_size_of(node, known) for node in nodes]
            if sum(one.values for one in sizes) > MOST_VALUES:
                raise JobFileError(file, f"holds more than {MOST_VALUES} values, counting each alias in full", 1, 1)
            if sum(one.characters for one in sizes) > MOST_CHARACTERS:
                message = f"holds more than {MOST_CHARACTERS} characters, counting each alias in full"
                raise JobFileError(file, message, 1, 1)
            return [loader.construct_document(node) for node in nodes]
        finally:
            loader.dispose()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = (mark.line + 1, mark.column + 1) if mark else (None, None)
        raise JobFileError(file, error.problem or "is not YAML", *place) from error
    except (yaml.YAMLError, RecursionError, ValueError, OverflowError, LookupError) as error:
        raise JobFileError(file, f"is not YAML: {error}") from error


class _Size(NamedTuple):
    values: int
    characters: int


def _size_of(node: yaml.Node, known: dict[int, _Size]) -> _Size:
    """What a node stands for once every alias in it is written out: a page of text can be a billion values."""
    if id(node) not in known:
        known[id(node)] = _Size(MOST_VALUES, 0)  # until it is known: what holds itself has no end
        inner = [one for pair in node.value for one in pair] if isinstance(node, yaml.MappingNode) else node.value
        parts = inner if isinstance(node, yaml.CollectionNode) else []
        sizes = [_size_of(one, known) for one in parts]
        own = len(node.value) if isinstance(node, yaml.ScalarNode) else 0
        values, characters = sum(one.values for one in sizes), sum(one.characters for one in sizes)
        known[id(node)] = _Size(1 + values, own + characters)
    return known[id(node)]


def _from_json(file: Path, text: str) -> Any:
    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for key, value in pairs:
            if key in found:
                raise JobFileError(file, f"the key {key!r} is repeated")
            found[key] = value
        return found

    try:
        return json.loads(text, object_pairs_hook=once)
    except json.JSONDecodeError as error:
        raise JobFileError(file, error.msg, error.lineno, error.colno) from error
    except RecursionError as error:
        raise JobFileError(file, "is nested too deep") from error


def _apply(file: Path, data: dict[str, Any], change: str) -> None:
    """Set one value: `a.b.c=value`, the value in YAML. Mappings on the way are made; lists take positions.
    `a.b+=value` adds one text, as it stands, to a list."""
    path, equals, text = change.partition("=")
    if equals and path.endswith("+"):
        _add(file, data, path[:-1], text)
        return
    keys = path.split(".")
    if not equals or not all(keys):
        raise JobFileError(file, f"--set {change}: write a path and a value, such as roles.worker.replicas=3")
    value = _from_yaml(file, text)
    place: Any = data
    for number, key in enumerate(keys):
        last = number == len(keys) - 1
        if isinstance(place, dict):
            if last:
                place[key] = value
            else:
                place = place.setdefault(key, {})
        elif isinstance(place, list) and key.isdecimal() and int(key) < len(place):
            if last:
                place[int(key)] = value
            else:
                place = place[int(key)]
        else:
            raise JobFileError(file, f"--set {change}: there is no {'.'.join(keys[: number + 1])}")


def _add(file: Path, data: dict[str, Any], path: str, text: str) -> None:
    place: Any = data
    *before, last = path.split(".")
    for key in before:
        place = place.setdefault(key, {}) if isinstance(place, dict) else None
    found = place.setdefault(last, []) if isinstance(place, dict) else None
    if not isinstance(found, list):
        raise JobFileError(file, f"--set {path}+={text}: there is no list {path}")
    found.append(text)
