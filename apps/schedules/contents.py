"""What a template says: read and checked when it is saved, and made a job's specification when it is launched.

The user who saves a template must be able to launch it at that moment: it is checked as a launch is, with their rights,
so that no one can put what they may not see into a template that runs for others. Not here: rows (`templates`).
"""

from __future__ import annotations

import uuid
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from django.db.models import Exists, OuterRef, QuerySet

from apps.accounts.models import User
from apps.code.selectors import CODE
from apps.datasets.selectors import DATASETS
from apps.jobs.checking import checked_spec
from apps.jobs.engines.configured import engine_chosen
from apps.jobs.models import Job
from apps.jobs.state.specs import asked_spec
from apps.namespaces.models import Namespace
from apps.registry.selectors import MODELS
from apps.schedules.models import TemplateRevision
from apps.uploads.versioned.selectors import VersionStore, collections_visible, parent_of
from yardmaster.errors import Problem, SpecRejected
from yardmaster.job.spec import TrainingSpec
from yardmaster.job.spec_json import spec_to_json
from yardmaster.job.spec_stored import stored_spec
from yardmaster.job.template_filling import filled, place_problems
from yardmaster.job.template_parameters import (
    Parameter,
    Value,
    parameters_from_json,
    parameters_to_json,
    sample_values,
)

_STORES: Mapping[str, VersionStore[Any, Any]] = {"code": CODE, "dataset": DATASETS, "model": MODELS}


@dataclass(frozen=True)
class Content:
    """One revision: `spec` as JSON with `{{name}}`, `latest` and `named` as the columns of `TemplateRevision`."""

    spec: Mapping[str, Any]
    engine: str = ""
    latest: Mapping[str, str] = field(default_factory=dict)
    named: Mapping[str, str] = field(default_factory=dict)
    parameters: tuple[Parameter, ...] = ()

    def columns(self) -> dict[str, Any]:
        return {
            "spec": dict(self.spec), "engine": self.engine, "latest": dict(self.latest), "named": dict(self.named),
            "parameters": parameters_to_json(self.parameters),
        }  # fmt: skip


@dataclass(frozen=True)
class Reference:
    """A version that a specification names. `key`: `code` or `inputs.<n>`."""

    key: str
    kind: str
    version: uuid.UUID

    @property
    def field(self) -> str:
        return self.key if self.kind == "code" else f"{self.key}.{self.kind}_version"


def content_of_revision(revision: TemplateRevision) -> Content:
    parameters = parameters_from_json(revision.parameters)
    return Content(revision.spec, revision.engine, revision.latest, revision.named, parameters)


def spec_of_job(job: Job) -> dict[str, Any]:
    """The job's specification as a template holds it, without what was decided at its launch."""
    return spec_to_json(stored_spec(job.spec))


def content_checked(
    *, user: User, namespace: Namespace, spec: object, engine: str, latest: Collection[str], parameters: object
) -> Content:
    """The content that this says. `latest`: keys of references that are taken in their latest version. Raises
    `SpecRejected` with everything that would refuse a launch of it, where every parameter has its default."""
    declared = parameters_from_json(parameters)
    plain = spec_to_json(asked_spec(spec))
    problems = place_problems(plain, [one.name for one in declared])
    references = {one.key: one for one in references_of(plain)}
    for key in latest:
        if key not in references:
            message, remedy = "The job has no such code or input.", f"Use {', '.join(references) or 'none'}."
            problems.append(Problem("latest", "unknown_reference", message, remedy, str(key)[:60]))
    found = _versions(user, references.values())
    problems += [_gone(one, "") for key, one in references.items() if key not in found]
    if problems:
        raise SpecRejected(problems)
    content = Content(
        plain, engine, {key: str(parent_of(found[key]).pk) for key in latest},
        {key: _name(one) for key, one in found.items()}, declared,
    )  # fmt: skip
    checked_spec(user, namespace, spec_to_launch(user, content, sample_values(declared)), engine_chosen(user, engine))
    return content


def spec_to_launch(user: User, content: Content, values: Mapping[str, Value], *, name: str = "") -> TrainingSpec:
    """The specification with these values and the latest versions that the user can see. Raises `SpecRejected`, which
    names what is gone."""
    spec, problems = resolved(user, content)
    if problems:
        raise SpecRejected(problems)
    if name:
        spec = {**spec, "name": name}
    return asked_spec(filled(spec, values))


def resolved(user: User, content: Content) -> tuple[dict[str, Any], list[Problem]]:
    """The specification with the latest versions in their places, and what of it is gone. Two queries for each kind of
    what it names."""
    references = list(references_of(content.spec))
    followed = [one for one in references if one.key in content.latest]
    fixed = [one for one in references if one.key not in content.latest]
    found = _versions(user, fixed) | _newest(user, {one: content.latest[one.key] for one in followed})
    problems = [_gone(one, content.named.get(one.key, "")) for one in references if one.key not in found]
    return with_versions(content.spec, {key: one.pk for key, one in found.items()}), problems


def with_versions(spec: Mapping[str, Any], versions: Mapping[str, uuid.UUID]) -> dict[str, Any]:
    """The specification with these versions, by key. Pure."""
    changed = dict(spec)
    if "code" in versions:
        changed["code"] = str(versions["code"])
    inputs = [dict(one) for one in spec.get("inputs") or ()]
    for index, one in enumerate(inputs):
        if (key := f"inputs.{index}") in versions:
            one["model_version" if "model_version" in one else "dataset_version"] = str(versions[key])
    return {**changed, "inputs": inputs}


def references_of(spec: Mapping[str, Any]) -> Iterable[Reference]:
    """The versions that a checked specification names. Pure."""
    if spec.get("code"):
        yield Reference("code", "code", uuid.UUID(spec["code"]))
    for index, one in enumerate(spec.get("inputs") or ()):
        kind = "model" if "model_version" in one else "dataset"
        yield Reference(f"inputs.{index}", kind, uuid.UUID(one[f"{kind}_version"]))


def reference_names(user: User, spec: Mapping[str, Any]) -> dict[str, str]:
    """What the versions that a specification names are called, by key; without those that the user may not see."""
    return {key: _name(one) for key, one in _versions(user, references_of(spec)).items()}


def _name(version: Any) -> str:
    return f"{parent_of(version).name}, version {version.number}"


def _versions(user: User, references: Iterable[Reference]) -> dict[str, Any]:
    """Those of the versions that the user may see, by key."""
    found: dict[str, Any] = {}
    for kind, some in _by_kind(references).items():
        rows = _rows(kind, user).filter(pk__in={one.version for one in some})
        versions = {one.pk: one for one in rows.select_related("parent")}
        found |= {one.key: versions[one.version] for one in some if one.version in versions}
    return found


def _newest(user: User, collections: Mapping[Reference, str]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for kind, some in _by_kind(collections).items():
        store = _STORES[kind]
        newer = store.versions._default_manager.filter(
            store.live_versions, parent=OuterRef("parent"), number__gt=OuterRef("number")
        )
        rows = _rows(kind, user).filter(~Exists(newer), parent_id__in={collections[one] for one in some})
        newest = {str(one.parent_id): one for one in rows}
        found |= {one.key: newest[collections[one]] for one in some if collections[one] in newest}
    return found


def _rows(kind: str, user: User) -> QuerySet[Any]:
    store = _STORES[kind]
    rows: QuerySet[Any] = store.versions._default_manager.filter(store.live_versions)
    return rows.filter(parent__in=collections_visible(store, user).order_by().values("pk"))


def _by_kind(references: Iterable[Reference]) -> dict[str, list[Reference]]:
    found: dict[str, list[Reference]] = {}
    for one in references:
        found.setdefault(one.kind, []).append(one)
    return found


def _gone(one: Reference, name: str) -> Problem:
    what = f"The {one.kind} {name}".strip() if name else f"This {one.kind} version"
    message = f"{what} was removed, or you may not see it."
    remedy = f"Choose another {one.kind} version, and save the template again."
    return Problem(one.field, "gone", message, remedy, name or str(one.version))
