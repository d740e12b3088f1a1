"""What differs between versions of models: metrics, signatures, arguments, data, code, size. Rows in, a table out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from apps.registry.models import ModelVersion
from yardmaster.quantity import format_bytes

ROWS = 500
_LOOKED_AT = ("accuracy", "auc", "f1", "acc", "loss", "error")
_SOURCE = {"entry_point": "Entry point", "strategy": "Strategy", "engine": "Engine", "image": "Image"}


@dataclass(frozen=True)
class ComparedRow:
    """One property of all versions; `values` in their order, empty where a version has none."""

    name: str
    values: tuple[str, ...]

    @property
    def differs(self) -> bool:
        return len(set(self.values)) > 1


@dataclass(frozen=True)
class ComparedPart:
    """Properties of one kind."""

    title: str
    rows: tuple[ComparedRow, ...]

    @property
    def differences(self) -> int:
        return sum(row.differs for row in self.rows)


def compare(versions: Sequence[ModelVersion]) -> list[ComparedPart]:
    """The parts that any of the versions has, each with its rows."""
    readers: list[tuple[str, Callable[[ModelVersion], dict[str, str]]]] = [
        ("Metrics", _metrics),
        ("Signatures", _signatures),
        ("Training", _training),
        ("Arguments", _arguments),
        ("Files", _files),
    ]
    parts = [ComparedPart(title, _rows([read(one) for one in versions])) for title, read in readers]
    return [part for part in parts if part.rows]


def _rows(columns: Sequence[dict[str, str]]) -> tuple[ComparedRow, ...]:
    names = list(dict.fromkeys(name for column in columns for name in column))[:ROWS]
    return tuple(ComparedRow(name, tuple(column.get(name, "") for column in columns)) for name in names)


def _metrics(version: ModelVersion) -> dict[str, str]:
    return {metric_name(one): metric_value(one) for one in version.metrics}


def metric_name(metric: dict[str, Any]) -> str:
    """The tag, after the run where there is one."""
    return f"{metric['run']}/{metric['tag']}" if metric["run"] not in ("", ".") else str(metric["tag"])


def by_note(metrics: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The metrics, those first that people look at first: accuracy before loss, of an evaluation before of training."""
    return sorted(metrics, key=lambda one: (_rank(metric_name(one).lower()), metric_name(one)))


def _rank(name: str) -> tuple[int, bool]:
    kind = next((at for at, word in enumerate(_LOOKED_AT) if word in name), len(_LOOKED_AT))
    return kind, not any(word in name for word in ("val", "eval", "test"))


def metric_value(metric: dict[str, Any]) -> str:
    """Short enough for a table."""
    return "not a number" if metric["value"] is None else f"{metric['value']:.6g}"


def _signatures(version: ModelVersion) -> dict[str, str]:
    found: dict[str, str] = {}
    for signature in (version.contents or {}).get("signatures", []):
        for side in ("inputs", "outputs"):
            for tensor in signature[side]:
                found[f"{signature['name']}: {side[:-1]} {tensor['name']}"] = tensor_words(tensor)
    return found


def tensor_words(tensor: dict[str, Any]) -> str:
    """`float32 [?, 64]`; a rank that is not known is `[…]`."""
    shape = tensor["shape"]
    inside = "…" if shape is None else ", ".join("?" if one is None else str(one) for one in shape)
    return f"{tensor['dtype']} [{inside}]".strip()


def _training(version: ModelVersion) -> dict[str, str]:
    source = version.source
    rows = {"Job": version.job_name, "Attempt": str(version.attempt), "Code": named_version(source.get("code"))}
    for one in source.get("inputs", []):
        rows[f"Input {one.get('as') or ''}".strip()] = named_version(one)
    rows |= {title: str(source.get(key) or "") for key, title in _SOURCE.items()}
    return {title: value for title, value in rows.items() if value}


def named_version(one: dict[str, Any] | None) -> str:
    """`digits@3`, or the id where the name was not kept."""
    if not one:
        return ""
    return f"{one['name']}@{one['number']}" if one.get("name") else str(one.get("version", ""))


def _arguments(version: ModelVersion) -> dict[str, str]:
    """By flag: `--lr=0.1` and `--lr 0.1` are the same row."""
    rows: dict[str, str] = {}
    flag = ""
    for number, argument in enumerate(version.source.get("arguments", []), start=1):
        name, equals, value = argument.partition("=")
        if argument.startswith("-") and not _is_number(argument):
            rows[name] = value if equals else "set"
            flag = "" if equals else name
        elif flag:
            rows[flag], flag = argument, ""
        else:
            rows[f"Argument {number}"] = argument
    return rows


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _files(version: ModelVersion) -> dict[str, str]:
    contents = version.contents or {}
    made_with = f"{contents.get('framework', '')} {contents.get('framework_version', '')}".strip()
    rows = {"Size": format_bytes(version.size), "Files": str(version.file_count), "Format": contents.get("format", "")}
    return {name: value for name, value in (rows | {"Framework": made_with}).items() if value}
