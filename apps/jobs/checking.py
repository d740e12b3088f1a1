"""Would this job run? What is asked before a launch: whether the user may use the code and data that it names, what is
wrong with the code at a look, whether it fits now, later or never, and the engine's own bounds. Creates nothing.

A job that can never start is launched only where that is accepted. What is certain counts alone: a task larger than the
largest machine, a job larger than its namespace's whole quota or than the engine. What an engine has is unknown while
it does not answer: then no question is put, and the queue decides.
"""

from __future__ import annotations

import uuid
from collections.abc import Collection, Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from typing import Any

from django.conf import settings
from django.utils import timezone

from apps.accounts.models import User
from apps.code.models import CodeVersion
from apps.code.selectors import CODE
from apps.datasets.selectors import DATASETS
from apps.errors import Conflict, NotFound
from apps.jobs.connecting import connection_problems
from apps.jobs.engines.configured import engine_chosen, engine_named
from apps.jobs.engines.images import images_pin
from apps.jobs.engines.manifests import manifests_of_spec
from apps.jobs.explanations.waiting_words import NEVER, columns_of_never, shortage_json
from apps.jobs.spark_clusters import spark_cluster_problems
from apps.jobs.state.books import books_of, queued_on
from apps.jobs.state.elsewhere import with_clusters
from apps.jobs.state.pinned import named_nodes, pinned
from apps.jobs.state.priority import with_priority
from apps.jobs.state.specs import asked_spec
from apps.jobs.state.volumes import volume_problems
from apps.namespaces.models import Namespace, limits_of
from apps.namespaces.models import Quota as QuotaRow
from apps.namespaces.selectors import quota_of
from apps.registry.selectors import MODELS
from apps.secrets.delivery import LARGEST_OF_JOB
from apps.secrets.selectors import secret_sizes
from apps.stores import has_ignite, storage
from apps.uploads.selectors import StoredFile
from apps.uploads.versioned.selectors import VersionStore, file_for, files_of, version_for
from yardmaster.code.bounded import examine_bounded
from yardmaster.code.entry_files import entry_file
from yardmaster.code.findings import Finding, Severity
from yardmaster.code.notebooks import LARGEST as LARGEST_NOTEBOOK
from yardmaster.code.notebooks import too_large
from yardmaster.code.path_flags import with_flags
from yardmaster.code.preflight import Examination, examine
from yardmaster.code.surroundings import ImageFacts, Surroundings, own_names
from yardmaster.engines.base import Capacity
from yardmaster.errors import Problem, SpecRejected, YardmasterError
from yardmaster.job.spec import CheckpointStore, InputMode, TrainingSpec
from yardmaster.job.spec_limits import shorten
from yardmaster.queueing.admission import Decision, Fit, never_fits
from yardmaster.queueing.fitting import check, largest_fit
from yardmaster.queueing.ledger import Candidate, EngineCapacity, Ledger, Quota
from yardmaster.queueing.needs import needs_of, needs_or_none
from yardmaster_runner.data.description import is_shard
from yardmaster_runner.entry_point import is_notebook
from yardmaster_runner.requirement_files import FILES as REQUIREMENT_FILES
from yardmaster_runner.requirement_files import MOST_BYTES

MOST_SOURCE = 2 << 20
"""Bytes of source that are read before a launch. Of larger code only a part is looked at."""
_REFUSED = Decision(Fit.NEVER_FITS, None, "The job is not valid.", "Correct the fields listed in `problems`.")


@dataclass(frozen=True)
class JobCheck:
    """What admission would say of the job. Where there are `problems` the job is not valid, and admission was not
    asked."""

    decision: Decision
    problems: Sequence[Problem] = ()
    warnings: Sequence[Finding] = ()
    spec: TrainingSpec | None = None
    """As it would be launched."""

    @property
    def paths(self) -> dict[str, str] | None:
        """How its tasks would learn their directories."""
        return None if self.spec is None else asdict(self.spec.paths)

    @property
    def reason(self) -> str:
        """The code of the decision, or that of a job that is not valid; empty where it fits."""
        if self.problems:
            return SpecRejected.code
        return self.decision.code.value if self.decision.code else ""

    @property
    def position(self) -> int | None:
        """How many jobs would be ahead of it, where it would wait."""
        return self.decision.position if self.decision.fit is Fit.WAITS else None


class NeverFits(Conflict):
    """The job would be queued for ever. A caller that wants that all the same says so."""

    def __init__(self, decision: Decision) -> None:
        remedy = f"{decision.remedy} To queue it anyway, send accept_never_fits: true."
        super().__init__(decision.message, NEVER, remedy=remedy)
        self.decision = decision
        self.facts = {
            "reason": decision.code, "numbers": [shortage_json(one) for one in decision.numbers],
            "largest_fit": decision.largest_fit,
        }  # fmt: skip


def job_check(*, user: User, namespace: Namespace, data: object, engine: str | None) -> JobCheck:
    """What would become of this job in this namespace now. Raises only where the user may not launch at all."""
    chosen = engine_chosen(user, engine)
    try:
        spec = asked_spec(data)
        spec, warnings = launch_checked(user, namespace, spec, chosen)
    except SpecRejected as error:
        return JobCheck(_REFUSED, error.problems)
    found = check_capacity(spec, namespace.pk, chosen, timezone.now())
    if found.fit is not Fit.NEVER_FITS:  # which has numbers, and so says more
        try:
            manifests_of_spec(user, namespace, spec, chosen)
        except SpecRejected as error:
            return JobCheck(_REFUSED, error.problems, warnings)
    return JobCheck(found, warnings=warnings, spec=spec)


def check_capacity(spec: TrainingSpec, namespace_id: uuid.UUID, engine: str, now: datetime) -> Decision:
    """What admission would say of a job that came now. Promises nothing."""
    last_of_now = uuid.UUID(int=(1 << 128) - 1)
    capacity = engine_named(engine).capacity()
    candidate = _candidate(spec, last_of_now, namespace_id, now, capacity)
    waiting = [one.candidate for one in queued_on(engine, capacity)]
    namespaces = {namespace_id, *(one.namespace_id for one in waiting)}
    books = books_of(engine, capacity, namespaces)
    return check(spec, candidate, waiting, books, now, settings.YARDMASTER_PASSING_LIMIT)


def accepted_or_refused(
    spec: TrainingSpec, namespace: Namespace, engine: str, now: datetime, *, accept: bool
) -> dict[str, Any]:
    """What the row of a job that is being queued says of it: nothing where it can start. Raises `NeverFits` where it
    cannot and that is not accepted."""
    found = never_starts(spec, namespace.pk, engine, now)
    if found is None:
        return {}
    if not accept:
        raise NeverFits(found)
    return columns_of_never(found)


def never_starts(spec: TrainingSpec, namespace_id: uuid.UUID, engine: str, now: datetime) -> Decision | None:
    """Why the job can never start, with the largest shape of it that could if nothing else ran; None where it can, or
    where that is not known. Reads the namespace's quota alone, never the queue."""
    try:
        capacity = engine_named(engine).capacity()
    except YardmasterError:
        return None
    candidate = _candidate(spec, uuid.UUID(int=0), namespace_id, now, capacity)
    idle = Ledger(with_clusters(_idle(capacity)), quotas=_quotas(namespace_id))
    never = never_fits(candidate, idle)
    return None if never is None else replace(never, largest_fit=largest_fit(spec, candidate, (), idle, now))


def _candidate(
    spec: TrainingSpec, job_id: uuid.UUID, namespace_id: uuid.UUID, now: datetime, capacity: Capacity
) -> Candidate:
    """What admission would look at. Where the files of a notebook are does not count here, unless it asks for Spark: it
    may wait for their machine, however that is now."""
    found = Candidate.of(spec, job_id=job_id, namespace_id=namespace_id, queued_at=now)
    needs = needs_or_none(needs_of(spec))
    if needs is None or needs.spark is None:
        return found
    return replace(found, tasks=pinned(found.tasks, namespace_id, needs, capacity))


def _idle(capacity: Capacity) -> EngineCapacity:
    """As if no job ran."""
    nodes, total = tuple(replace(one, free=one.total, bound=()) for one in capacity.nodes), capacity.total
    return EngineCapacity(total, total, capacity.largest_task, nodes=nodes, by_name=named_nodes(capacity))


def _quotas(namespace_id: uuid.UUID) -> dict[uuid.UUID, Quota]:
    row = QuotaRow.objects.filter(namespace_id=namespace_id).first()
    return {} if row is None else {namespace_id: limits_of(row)}


def checked_spec(user: User, namespace: Namespace, spec: TrainingSpec, engine: str) -> Examination:
    """The warnings about this spec's code, and the spec to launch. Raises `SpecRejected` with everything that makes it
    impossible."""
    spec, forbidden = with_priority(user, namespace, spec)
    images = images_pin(namespace, spec, engine)
    spec = images.spec
    problems = (
        forbidden
        + _missing(user, spec)
        + _secret_problems(namespace, spec)
        + connection_problems(namespace, spec)
        + spark_cluster_problems(namespace, engine, spec)
        + volume_problems(namespace, engine, spec)
    )
    problems += _store_problems(spec)
    problems += images.problems
    has_code = all(problem.field != "code" for problem in problems)
    found = _examined(user, spec, engine, images.facts) if has_code else Examination([], spec)
    problems += [_as_problem(one) for one in found.findings if one.severity is Severity.ERROR]
    if problems:
        raise SpecRejected(problems)
    return found


def _store_problems(spec: TrainingSpec) -> list[Problem]:
    if spec.checkpoint_store is CheckpointStore.PORTAL or has_ignite():
        return []
    message = "This portal has no store in Apache Ignite."
    remedy = "Write portal, or remove checkpoint_store; or ask an administrator to set YARDMASTER_IGNITE_STORE."
    return [Problem("checkpoint_store", "no_ignite_store", message, remedy, spec.checkpoint_store.value)]


def _secret_problems(namespace: Namespace, spec: TrainingSpec) -> list[Problem]:
    """What of the spec's secrets this namespace does not have. Those of others count as unknown."""
    if not spec.secrets:
        return []
    sizes = secret_sizes(namespace, [one.name for one in spec.secrets])
    found = []
    for index, one in enumerate(spec.secrets):
        if one.name not in sizes:
            message = f"{namespace.slug} has no secret of this name that tasks may use."
            remedy = f"Create it on the page of the namespace's secrets, or with `yardmaster secrets set {one.name}`."
            found.append(Problem(f"secrets.{index}.name", "unknown_secret", message, remedy, shorten(one.name)))
    if sum(sizes.values()) > LARGEST_OF_JOB:
        message = f"The secrets of a job have at most {LARGEST_OF_JOB >> 10} KiB together."
        found.append(Problem("secrets", "too_large", message, "Use fewer or shorter secrets."))
    return found


def launch_checked(
    user: User, namespace: Namespace, spec: TrainingSpec, engine: str
) -> tuple[TrainingSpec, list[Finding]]:
    """The spec to launch, and what will not work as meant in this namespace: in the code, and its priority. Raises as
    `checked_spec` does."""
    found = checked_spec(user, namespace, spec, engine)
    spec, ceiling = found.spec, quota_of(namespace).priority_ceiling
    if spec.priority_class or spec.priority <= ceiling:
        return found.spec, found.findings
    message = (
        f"Priority {spec.priority} is above the ceiling of this namespace, {ceiling}: it orders the jobs of this "
        f"namespace only. Among the jobs of other namespaces it counts as {ceiling}."
    )
    remedy = "Leave it where that is meant, or ask an administrator to raise the namespace's priority ceiling."
    return found.spec, [*found.findings, Finding(Severity.WARNING, "priority_above_ceiling", message, remedy)]


def _missing(user: User, spec: TrainingSpec) -> list[Problem]:
    found: list[Problem | None] = []
    if spec.code_version is not None:
        found.append(_problem_of(user, spec.code_version, "code", "code", CODE))
    for index, one in enumerate(spec.inputs):
        if one.model_version is not None:
            field = f"inputs.{index}.model_version"
            found.append(_problem_of(user, one.model_version, field, "model", MODELS))
            continue
        field = f"inputs.{index}.dataset_version"
        problem = _problem_of(user, one.version, field, "dataset", DATASETS)
        if problem is None and one.mode is InputMode.STREAM:
            problem = _not_streamable(user, one.version, f"inputs.{index}.mode")
        found.append(problem)
    return [problem for problem in found if problem is not None]


def _not_streamable(user: User, version_id: uuid.UUID, field: str) -> Problem | None:
    """Only TFRecord shards come while a script reads: without any, all would be copied before it starts."""
    if any(is_shard(file.path) for file in files_of(version_for(DATASETS, user, version_id))):
        return None
    message = "This dataset version has no TFRecord files (.tfrecord, .tfrecord.gz), so it cannot be streamed."
    return Problem(field, "no_shards", message, "Prepare it, or copy it before the start (folder).", "stream")


def _problem_of(
    user: User, version_id: uuid.UUID, field: str, what: str, store: VersionStore[Any, Any]
) -> Problem | None:
    try:
        version_for(store, user, version_id)
    except NotFound:
        command = what if what == "code" else f"{what}s"
        remedy = f"Give the id of a {what} version, as `yardmaster {command} list` shows it."
        return Problem(
            field,
            "unknown_version",
            f"There is no such {what} version, or it is not visible to you.",
            remedy,
            str(version_id),
        )
    return None


def _examined(user: User, spec: TrainingSpec, engine: str, image: ImageFacts) -> Examination:
    if spec.code_version is None:
        return examine(spec, {})
    version = version_for(CODE, user, spec.code_version)
    sources = sources_of(version, MOST_SOURCE)
    paths = [one.path for one in files_of(version)]
    if spec.program:
        return examine(spec, sources | dict.fromkeys(paths, ""))
    entry = entry_file(spec, set(paths))
    if is_notebook(entry) and entry in paths:
        if (file := file_for(version, entry)).size > LARGEST_NOTEBOOK:
            return Examination([too_large(entry, file.size)], with_flags(spec, None))
        sources |= sources_of(version, LARGEST_NOTEBOOK, [entry])
    if entry not in sources and entry in paths:
        return Examination([], with_flags(spec, None))  # it is there, but too large to be read here, or no text
    sources |= sources_of(version, 2 * MOST_BYTES, REQUIREMENT_FILES)
    around = Surroundings(own_names(paths), engine_named(engine).has_way_out, image)
    return examine_bounded(spec, sources, around)


def sources_of(version: CodeVersion, limit_bytes: int, wanted: Collection[str] = ()) -> dict[str, str]:
    """The text of its Python files, or of the `wanted` ones, by path, as long as `limit_bytes` last: shallow and small
    ones come first, so that entry points are there whatever lies beside them. What is not UTF-8 has replacement
    characters."""
    return sources_among(files_of(version), limit_bytes, wanted)


def sources_among(files: Iterable[StoredFile], limit_bytes: int, wanted: Collection[str] = ()) -> dict[str, str]:
    """The same of these files."""
    meant = [file for file in files if (file.path in wanted if wanted else file.path.endswith(".py"))]
    sources: dict[str, str] = {}
    for file in sorted(meant, key=lambda file: (file.path.count("/"), file.size, file.path)):
        if file.size <= limit_bytes:
            limit_bytes -= file.size
            with storage().open_range(file.key) as stream:
                sources[file.path] = stream.read(file.size).decode("utf-8-sig", "replace")
    return sources


def _as_problem(finding: Finding) -> Problem:
    where = f" ({finding.file}, line {finding.line})" if finding.line else ""
    field = "entry_point" if finding.code == "entry_point_missing" else "code"
    return Problem(field, finding.code, finding.message + where, finding.remedy, finding.file)
