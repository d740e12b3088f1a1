"""What an engine makes for a job, before its launch or after: as data, and as YAML to look at, keep or apply by hand.

Not here: what it makes (`preview` of each engine). Nothing secret is in it: a preview leaves the job's token out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import yaml
from django.http import HttpResponse

from apps.accounts.models import User
from apps.jobs.engines.configured import engine_chosen, engine_named
from apps.jobs.engines.images import spec_pinned
from apps.jobs.models import Job
from apps.namespaces.models import Namespace
from yardmaster.ids import JobKey
from yardmaster.job.spec import TrainingSpec
from yardmaster.job.spec_stored import stored_spec

_TO_BE_KNOWN = UUID(int=0)
"""Stands for the id that a job gets when it is launched."""


@dataclass(frozen=True)
class Manifests:
    """The objects in the order in which the engine makes them."""

    engine: str
    objects: Sequence[Mapping[str, Any]]

    @property
    def as_yaml(self) -> str:
        """One document per object."""
        return yaml.safe_dump_all(self.objects, sort_keys=False, allow_unicode=True, explicit_start=True)


def manifests_of_job(job: Job) -> Manifests:
    """Of the newest attempt. Raises what the engine raises where its options have changed since."""
    return Manifests(job.engine, engine_named(job.engine).preview(stored_spec(job.spec), job.key, job.owner_id))


def manifests_of_spec(user: User, namespace: Namespace, spec: TrainingSpec, engine: str | None) -> Manifests:
    """Of a job that this user might launch. Raises `SpecRejected` and `Forbidden` as the launch does."""
    chosen = engine_chosen(user, engine)
    spec = spec_pinned(namespace, spec, chosen)
    return Manifests(chosen, engine_named(chosen).preview(spec, JobKey(namespace.pk, _TO_BE_KNOWN, 1), user.pk))


def yaml_file(manifests: Manifests, name: str) -> HttpResponse:
    """The answer that a browser saves under this name (our own words, never a user's)."""
    headers = {"Content-Disposition": f'attachment; filename="{name}"'}
    return HttpResponse(manifests.as_yaml, content_type="application/yaml; charset=utf-8", headers=headers)
