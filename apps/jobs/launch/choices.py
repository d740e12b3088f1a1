"""What a person may choose from in the launch form: code and its scripts, datasets, models, by id and by name, and
engines. Reads only."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from django.db.models import QuerySet
from django.utils.text import Truncator

from apps.accounts.models import User
from apps.code.models import CodeVersion
from apps.code.selectors import CODE
from apps.datasets.selectors import DATASETS
from apps.jobs.engines.configured import missing_for_spark
from apps.jobs.engines.listing import engines_for
from apps.namespaces.models import Namespace
from apps.namespaces.priorities import classes_for
from apps.registry.selectors import MODELS
from apps.uploads.versioned.listed import Listed, versions_listed
from apps.uploads.versioned.selectors import (
    VersionStore,
    collections_visible,
    files_in,
    versions_of,
    versions_visible,
)
from yardmaster.errors import Problem, SpecRejected
from yardmaster.job.spec import Strategy

STORES: Mapping[str, VersionStore[Any, Any]] = {"code": CODE, "dataset": DATASETS, "model": MODELS}
"""By the word for one thing of theirs."""
MOST_VERSIONS = 200
MOST_SCRIPTS = 500
_USUAL = ("train.py", "main.py", "run.py", "trainer.py")
_NO_TRAINING = ("setup.py", "conftest.py", "__init__.py", "noxfile.py")


@dataclass(frozen=True)
class Choice:
    """One version of code, of a dataset or of a model."""

    id: str
    name: str
    number: int
    namespace: str
    is_newest: bool
    row: Listed | None = field(default=None, repr=False, compare=False)
    """The version itself."""

    @property
    def reference(self) -> str:
        """As a job file of the same namespace names it."""
        return f"{self.name}@{self.number}"

    @property
    def title(self) -> str:
        """As a select shows it."""
        return f"{_cut(self.name, 60)}, version {self.number}{' (newest)' if self.is_newest else ''}"


def choices_of(user: User, chosen: Mapping[str, Iterable[str]], most: int = MOST_VERSIONS) -> dict[str, list[Choice]]:
    """Of each store that `chosen` names (`STORES`) the newest versions that the user may see, and the chosen ones
    whatever their age: the newest first. One statement for all of them."""
    wanted: list[QuerySet[Any]] = []
    for noun, ids in chosen.items():
        visible = versions_visible(STORES[noun], user)
        newest = visible.order_by("-pk").values("pk")[:most]
        wanted += [STORES[noun].versions._default_manager.filter(pk__in=newest)] if most else [visible.none()]
        wanted.append(visible.filter(pk__in={key for key in map(_uuid, ids) if key is not None}))
    rows = versions_listed(wanted)
    return {noun: _choices([*rows[2 * at], *rows[2 * at + 1]]) for at, noun in enumerate(chosen)}


def priority_choices(user: User, namespace: Namespace) -> list[tuple[str, str]]:
    """The priority classes that jobs of the user in this namespace may have: names, and what a select shows."""
    return [
        (one.name, Truncator(f"{one.name} ({one.value}) {one.description}".strip()).chars(80))
        for one in classes_for(user, namespace)
    ]


def grouped(choices: Sequence[Choice], namespace: str) -> list[tuple[str, list[tuple[str, str]]]]:
    """The options of a select, by the name of the code or dataset: the newest version first, and the names of this
    namespace before those of others."""
    groups: dict[tuple[bool, str], list[Choice]] = {}
    for choice in choices:
        is_other = choice.namespace != namespace
        name = f"{choice.name} ({choice.namespace})" if is_other else choice.name
        groups.setdefault((is_other, _cut(name, 80)), []).append(choice)
    ordered = sorted(groups.items(), key=lambda item: item[0][0])
    return [
        (name, [(one.id, one.title) for one in sorted(rows, key=lambda one: -one.number)])
        for (_, name), rows in ordered
    ]


def references(choices: Iterable[Choice], namespace: str) -> dict[str, str]:
    """Version ids with the names that a job file of this namespace may use for them."""
    return {one.id: one.reference for one in choices if one.namespace == namespace}


def newest_in(choices: Iterable[Choice], namespace: str) -> Choice | None:
    """The version that was made last in this namespace."""
    return next((one for one in choices if one.namespace == namespace), None)


def newest_of(user: User, noun: str, thing_id: str) -> str:
    """The newest version's id of one thing; empty where there is none that the user may see."""
    if (key := _uuid(thing_id)) is None:
        return ""
    rows = versions_visible(STORES[noun], user).filter(parent=key)
    found = rows.order_by("-number").values_list("pk", flat=True).first()
    return "" if found is None else str(found)


def code_version(user: User, version_id: str) -> CodeVersion | None:
    """This version of code, where the user may see it."""
    if (key := _uuid(version_id)) is None:
        return None
    return versions_visible(CODE, user).filter(pk=key).first()


def scripts_of(user: User, version_id: str) -> list[str]:
    """The scripts and notebooks of this version, where the user may see it."""
    version = code_version(user, version_id)
    return [] if version is None else scripts_in(one.path for one in files_in(version))


def scripts_in(paths: Iterable[str]) -> list[str]:
    """The scripts and notebooks among the files of a code version, the likeliest to be run first: shallow ones before
    deep ones."""
    scripts = [path for path in paths if path.endswith((".py", ".ipynb"))]
    return sorted(scripts, key=lambda path: (path.count("/"), path))[:MOST_SCRIPTS]


def likely_script(scripts: Sequence[str], strategy: str) -> str:
    """The script that this strategy would most likely run: one named after it, one with a usual name, one whose name
    has "train" in it, the first."""
    scripts = [path for path in scripts if path.endswith(".py")]
    wanted = (f"{strategy}.py", *_USUAL) if strategy in [one.value for one in Strategy] else _USUAL
    for name in wanted:
        for path in scripts:
            if path.rpartition("/")[2] == name:
                return path
    some = [path for path in scripts if not _is_no_training(path.rpartition("/")[2])]
    trains = [path for path in some if "train" in path.rpartition("/")[2]]
    return next(iter([*trains, *some]), "")


def _is_no_training(name: str) -> bool:
    return name in _NO_TRAINING or name.startswith("test_") or name.endswith("_test.py")


def likely_entry(scripts: Sequence[str], strategy: str) -> str:
    """The same; a notebook where there is no script."""
    return likely_script(scripts, strategy) or next(iter(scripts), "")


def versions_resolve(user: User, spec: Mapping[str, Any], namespace: Namespace) -> dict[str, Any]:
    """The specification of a job file with `name@number` replaced by version ids. Raises `SpecRejected` for names that
    mean nothing, or more than one thing."""
    resolved = dict(spec)
    problems: list[Problem] = []
    if isinstance(spec.get("code"), str) and spec["code"] and _uuid(spec["code"]) is None:
        resolved["code"] = _named(user, CODE, spec["code"], namespace, "code", problems)
    if isinstance(spec.get("inputs"), list):
        resolved["inputs"] = [
            _input(user, one, namespace, f"inputs.{number}", problems) for number, one in enumerate(spec["inputs"])
        ]
    if problems:
        raise SpecRejected(problems)
    return resolved


def _input(user: User, one: Any, namespace: Namespace, field: str, problems: list[Problem]) -> Any:
    if isinstance(one, str):
        one = {"dataset": one}
    kind = next((kind for kind in ("dataset", "model") if isinstance(one, dict) and isinstance(one.get(kind), str)), "")
    if not kind:
        return one
    reference = one[kind]
    rest = {key: value for key, value in one.items() if key != kind}
    if _uuid(reference) is None:
        reference = _named(user, STORES[kind], reference, namespace, f"{field}.{kind}_version", problems)
    return rest | {f"{kind}_version": reference}


def _named(
    user: User, store: VersionStore[Any, Any], reference: str, namespace: Namespace, field: str, problems: list[Problem]
) -> str:
    """The id of the version: in this namespace first, then wherever exactly one thing has the name."""
    name, at, number = reference.rpartition("@")
    if not at:
        name, number = reference, ""
    visible = collections_visible(store, user).filter(name=name)[:MOST_VERSIONS]
    things = sorted(visible, key=lambda one: one.namespace_id != namespace.pk)
    if len(things) > 1 and things[0].namespace_id != namespace.pk:
        message = f"{store.noun.capitalize()} of this name is in several namespaces."
        problems.append(Problem(field, "ambiguous", message, "Give the version's id.", reference[:100]))
        return ""
    versions = versions_of(store, things[0]).order_by("-number") if things else None
    if versions is not None and number not in ("", "latest"):
        versions = versions.filter(number=int(number)) if number.isdecimal() and len(number) < 10 else versions.none()
    found = versions.first() if versions is not None else None
    if found is None:
        message = f"There is no {store.noun} of this name and number, or it is not visible to you."
        remedy = "Fetch it with From Git, below Code." if reference.startswith("git+") else "Choose one in the form."
        problems.append(Problem(field, "unknown_version", message, remedy, reference[:100]))
        return ""
    return str(found.pk)


def _choices(found: Iterable[Listed]) -> list[Choice]:
    rows = sorted(set(found), key=lambda row: row.pk, reverse=True)
    newest: dict[uuid.UUID, int] = {}
    for row in rows:
        newest[row.parent_id] = max(newest.get(row.parent_id, 0), row.number)
    return [
        Choice(str(row.pk), row.name, row.number, row.namespace, row.number == newest[row.parent_id], row)
        for row in rows
    ]


def _cut(text: str, most: int) -> str:
    """At most so many characters of it. Few names are longer, and asking whether costs a hundredth of cutting."""
    return text if len(text) <= most else Truncator(text).chars(most)


def _uuid(text: str) -> uuid.UUID | None:
    try:
        return uuid.UUID(text)
    except (ValueError, AttributeError):
        return None


def engine_choices(user: User, asked: str) -> dict[str, Any]:
    """The engines to choose from, and what is to be said of the one that is meant."""
    engines = engines_for(user)
    meant = next((one for one in engines if (one.name == asked if asked else one.is_default)), None)
    return {
        "engines": engines,
        "refusal": None if meant is None or meant.allowed else meant,
        "devices": meant.devices if meant else (),
        "missing_for_spark": missing_for_spark(meant.name) if meant else "",
        "unreached": meant if meant and meant.allowed and meant.tasks_reach_portal is False else None,
    }
