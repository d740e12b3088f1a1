"""What a template says: read and checked when it is saved, and made a job's specification when it is launched.

The user who saves a template must be able to launch it at that moment: it is checked as a launch is, with their rights,
so that no one can put what they may not see into a template that runs for others. Not here: rows (`templates`).
"""

from __future__ import annotations

import uuid
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

from django.db.models import Exists, OuterRef

from apps.accounts.models import User
from apps.jobs.checking import checked_spec
from apps.jobs.engines.configured import engine_chosen
from apps.jobs.launch.choices import STORES
from apps.jobs.models import Job
from apps.jobs.state.specs import asked_spec
from apps.namespaces.models import Namespace
from apps.schedules.models import TemplateRevision
from apps.uploads.versioned.listed import Listed, versions_listed
from apps.uploads.versioned.selectors import versions_visible
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

_NONE: Mapping[str, str] = {}


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
        plain, engine, {key: str(found[key].parent_id) for key in latest},
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
    """The specification with the latest versions in their places, and what of it is gone. One statement."""
    references = list(references_of(content.spec))
    found = _versions(user, references, content.latest)
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


def _name(version: Listed) -> str:
    return f"{version.name}, version {version.number}"


def _versions(user: User, references: Iterable[Reference], latest: Mapping[str, str] = _NONE) -> dict[str, Listed]:
    """Those of the versions that the user may see, by key. `latest`: of which collections the newest is meant instead,
    by key. One statement."""
    wanted, references = [], list(references)
    for kind, some in _by_kind(references).items():
        rows = versions_visible(STORES[kind], user)
        newer = rows.filter(parent=OuterRef("parent"), number__gt=OuterRef("number"))
        followed = {latest[one.key] for one in some if one.key in latest}
        fixed = {one.version for one in some if one.key not in latest}
        wanted += [rows.filter(pk__in=fixed), rows.filter(~Exists(newer), parent_id__in=followed)]
    found = sorted(chain.from_iterable(versions_listed(wanted)), key=lambda one: one.number)
    by_id, newest = {one.pk: one for one in found}, {str(one.parent_id): one for one in found}
    meant = {
        one.key: newest.get(latest[one.key]) if one.key in latest else by_id.get(one.version) for one in references
    }
    return {key: one for key, one in meant.items() if one is not None}


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
