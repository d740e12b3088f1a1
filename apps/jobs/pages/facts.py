"""What the page of one job shows, read with few queries. Who may see the job was decided before.

Not here: words of a job that lists have too (`row_words`), why it is where it is (`why`), one task (`task_cards`).
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import islice
from typing import Any

from django.conf import settings
from django.db.models import Subquery

from apps.accounts.models import User
from apps.code.models import CodeVersion
from apps.datasets.models import DatasetVersion
from apps.jobs.checking import sources_of
from apps.jobs.engines.configured import why_not
from apps.jobs.engines.serving import Serving, is_served, serving_if_known
from apps.jobs.explanations.row_words import Row
from apps.jobs.explanations.task_cards import TaskCard, task_cards
from apps.jobs.explanations.why import Why, why
from apps.jobs.launch.job_file import command_of, job_as_yaml
from apps.jobs.models import Checkpoint, Job, JobAttempt, JobEvent, JobOutput, JobPackages
from apps.jobs.published import Published, published_by
from apps.jobs.selectors import facts_of
from apps.jobs.state.output_files import OutputsSummary, first_outputs, outputs_of, outputs_summary
from apps.jobs.state.retention import cleared_words
from apps.jobs.state.specs import images_shown, spec_or_remains
from apps.jobs.state.used_sizes import SmallerSize, smaller_sizes
from apps.namespaces.models import Role
from apps.namespaces.selectors import namespaces_visible
from apps.registry.models import ModelVersion
from apps.registry.selectors import versions_of_jobs
from apps.uploads.versioned.selectors import files_in
from yardmaster.code.requirement_files import plain_lines
from yardmaster.job.spec import DatasetInput, InputMode, InputShare, InputSource, Strategy, TrainingSpec, known_role
from yardmaster.job.spec_json import spec_to_json
from yardmaster.lifecycle.failures import Blame, Verdict
from yardmaster.lifecycle.phases import Phase, Wanted
from yardmaster.lifecycle.remedies import PKG_RESOURCES_GONE, Change, known_change
from yardmaster.lifecycle.retention import Kind
from yardmaster.quantity import exact_bytes
from yardmaster.storage.file_list import ListedFile
from yardmaster_runner.entry_point import is_notebook
from yardmaster_runner.requirement_files import FILES as REQUIREMENT_FILES
from yardmaster_runner.requirement_files import MOST_BYTES

EVENTS_SHOWN = 100
CHECKPOINTS_SHOWN = 20
OUTPUTS_SHOWN = 10
MODEL_FILES_SHOWN = 20
_HAVE_PARAMETER_SERVERS = {Strategy.BETWEEN_GRAPH.value, Strategy.PARAMETER_SERVER.value}


@dataclass(frozen=True)
class Input:
    """A version of a dataset or a model that the job reads. `version` None: deleted, or not the reader's to see."""

    id: uuid.UUID
    name: str
    version: DatasetVersion | ModelVersion | None
    reading: str = ""
    """How its files reach the tasks, where that is not the ordinary way."""
    is_model: bool = False


@dataclass(frozen=True)
class Unsaved:
    """What a task could not save, in words."""

    task: str
    words: str


@dataclass(frozen=True)
class JobFacts:
    """A job at `now`, for one reader."""

    job: Job
    spec: TrainingSpec
    now: datetime
    role: Role | None
    why: Why
    change: Change | None
    tasks: Sequence[TaskCard]
    events: Sequence[JobEvent]
    attempts: Sequence[JobAttempt]
    checkpoints: Sequence[Checkpoint]
    model: ModelVersion | None
    first_model_files: Sequence[ListedFile]
    outputs: OutputsSummary | None
    first_outputs: Sequence[JobOutput]
    notebook: JobOutput | None
    """The executed one."""
    code: CodeVersion | None
    inputs: Sequence[Input]
    serving: Serving | None
    published: Published | None
    packages: Sequence[Mapping[str, str]] | None
    may_use_engine: bool
    files_gone: str

    @property
    def row(self) -> Row:
        return Row(self.job, self.now)

    @property
    def since(self) -> datetime:
        """Since when the job is in its phase."""
        job = self.job
        if Phase(job.phase).is_final:
            return job.decided_at or job.queued_at
        if job.wanted == Wanted.STOP.value:
            return next((event.at for event in self.events if event.kind == "stop_asked"), job.queued_at)
        times = {
            Phase.RUNNING.value: job.started_at,
            Phase.STARTING.value: job.admitted_at,
            Phase.STOPPING.value: job.stop_sent_at,
        }
        return times.get(job.phase) or job.queued_at

    @property
    def preempted(self) -> JobEvent | None:
        """That it was preempted, until it starts again."""
        job = self.job
        number = job.attempt - 1 if job.phase == Phase.QUEUED.value else job.attempt if job.preempted_at else None
        return next((one for one in self.events if one.kind == "preempted" and one.attempt == number), None)

    @property
    def for_how_long(self) -> timedelta:
        return self.now - self.since

    @property
    def reclaim_at(self) -> datetime | None:
        """When what never ends by itself is released; None where nothing is to be."""
        job = self.job
        if job.phase != Phase.SUCCEEDED.value or job.decided_at is None or job.released_at or job.cleaned_up_at:
            return None
        return job.decided_at + self.spec.reclaim_delay

    @property
    def deadline(self) -> datetime | None:
        """When the attempt's time is over; None where it has no end, or has ended."""
        job = self.job
        if self.spec.max_runtime is None or job.started_at is None or Phase(job.phase).is_final:
            return None
        return job.started_at + self.spec.max_runtime

    @property
    def reclaimed(self) -> str:
        """What is released after success, in words."""
        return "parameter servers" if self.job.strategy in _HAVE_PARAMETER_SERVERS else "remaining tasks"

    @property
    def is_served(self) -> bool:
        return is_served(self.job)

    @property
    def may_change(self) -> bool:
        return self.role in (Role.MEMBER, Role.MANAGER)

    @property
    def can_open_shells(self) -> bool:
        """Whether terminals may be opened in its tasks, as far as the reader is concerned."""
        return self.may_change and not self.spec.program and self.may_use_engine

    @property
    def held_tasks(self) -> list[TaskCard]:
        return [one for one in self.tasks if one.is_held]

    @property
    def can_stop(self) -> bool:
        return self.may_change and not Phase(self.job.phase).is_final and self.job.wanted != Wanted.STOP.value

    @property
    def smaller_sizes(self) -> list[SmallerSize]:
        """What a job that has succeeded could have asked for, where the form can launch it again."""
        if self.job.phase != Phase.SUCCEEDED.value or self.spec.program or self.is_service or not self.may_change:
            return []
        return smaller_sizes(self.spec, [one.fact for one in self.tasks])

    @property
    def resume_point(self) -> Checkpoint | None:
        """The checkpoint that a new attempt may continue from."""
        return next((one for one in self.checkpoints if one.attempt >= self.job.resumes_from), None)

    @property
    def stop_question(self) -> str:
        """What a stop means for the job as it is, before it is confirmed."""
        if self.job.phase == Phase.QUEUED.value:
            return "The job leaves the queue and does not start."
        grace = f"Its tasks have {self.spec.grace_period.total_seconds():g} s to save and exit."
        kept = "It can be continued from its latest checkpoint." if self.checkpoints else "It has no checkpoint yet."
        return f"{grace} {kept}" if not self.is_service else grace

    @property
    def is_stopping(self) -> bool:
        return self.job.wanted == Wanted.STOP.value and not Phase(self.job.phase).is_final

    @property
    def can_retry(self) -> bool:
        return self.may_change and self.job.is_over and not self.is_service

    @property
    def is_service(self) -> bool:
        """Whether it is a session or a served model, which is started on a page of its own."""
        return self.job.strategy == Strategy.SERVICE.value

    @property
    def edits_first(self) -> bool:
        """Whether a failed job asks for an edit: the script's own failure, and no change is known to help."""
        return self.why.blame == Blame.USER.value and (self.change is None or not self.change.is_sure)

    @property
    def is_final(self) -> bool:
        return Phase(self.job.phase).is_final

    @property
    def has_begun(self) -> bool:
        """Whether any task of the attempt may have written a line."""
        return self.job.admitted_at is not None

    @property
    def waited(self) -> timedelta:
        """In the queue, until admission."""
        return (self.job.admitted_at or self.job.decided_at or self.now) - self.job.queued_at

    @property
    def images(self) -> list[dict[str, Any]]:
        """What its images were at the launch, with the roles that run in them."""
        return images_shown(self.spec)

    @property
    def job_file(self) -> str:
        """The file that makes the same job again. Versions stand in it by id: names may mean another one by then."""
        stored = spec_to_json(self.spec)
        roles = {
            role: {key: exact_bytes(value) if key == "memory" else value for key, value in one.items() if value}
            for role, one in stored["roles"].items()
        }
        spec = {**stored, "roles": roles}
        return job_as_yaml(spec, namespace=self.job.namespace.slug, engine=self.job.engine)

    @property
    def command(self) -> str:
        return command_of(self.job_file)

    @property
    def unsaved_outputs(self) -> list[Unsaved]:
        return self._unsaved("outputs")

    @property
    def left_out_outputs(self) -> list[Unsaved]:
        """Files of working folders that are over the limits."""
        return self._unsaved("left_out")

    @property
    def unsaved_model(self) -> list[Unsaved]:
        return self._unsaved("model")

    def _unsaved(self, what: str) -> list[Unsaved]:
        return [Unsaved(one.name, one.fact.unsaved[what]) for one in self.tasks if one.fact.unsaved.get(what)]

    @property
    def failed_task(self) -> TaskCard | None:
        """The task that failed first, where one did."""
        task = self.why.task
        if task is None:
            return None
        return next((one for one in self.tasks if one.name == f"{task['role']}-{task['index']}"), None)


def job_facts(user: User, job: Job, role: Role | None, now: datetime) -> JobFacts:
    """Everything, in at most twelve queries. `role` is the reader's in the job's namespace."""
    spec, _ = spec_or_remains(job)
    facts = facts_of(job)
    attempts = _attempts(job)
    because = why(user, job, facts, now, attempts or None)
    tasks = task_cards(job, spec, facts, now)
    may_have_results = job.admitted_at is not None or job.attempt > 1
    outputs = outputs_summary(job.pk) if may_have_results else None
    model = _model(job) if may_have_results else None
    code = _code(user, job, spec.code_version)
    return JobFacts(
        job=job,
        spec=spec,
        now=now,
        role=role,
        why=because,
        change=change_for(job, spec, because, tasks, code),
        tasks=tasks,
        events=list(JobEvent.objects.filter(job=job).order_by("-pk")[:EVENTS_SHOWN]),
        attempts=attempts,
        checkpoints=_checkpoints(job) if may_have_results else [],
        model=model,
        first_model_files=[] if model is None else list(islice(files_in(model), MODEL_FILES_SHOWN)),
        outputs=outputs,
        first_outputs=[] if outputs is None else first_outputs(job.pk, outputs.attempt, OUTPUTS_SHOWN),
        notebook=_notebook(job, spec, outputs),
        code=code,
        inputs=_inputs(user, spec),
        serving=serving_if_known(job, spec),
        published=published_by(job),
        packages=None if code is None else code.packages,  # type: ignore[attr-defined]  # an annotation
        may_use_engine=job.engine in settings.YARDMASTER_ENGINES and why_not(user, job.engine) is None,
        files_gone=cleared_words(job, Kind.FILES),
    )


def _notebook(job: Job, spec: TrainingSpec, outputs: OutputsSummary | None) -> JobOutput | None:
    """The job's notebook as the newest attempt that has outputs ran it."""
    if outputs is None or not is_notebook(spec.entry_point):
        return None
    return outputs_of(job.pk, outputs.attempt).filter(name__contains="notebooks/", name__endswith=".ipynb").first()


def change_for(
    job: Job, spec: TrainingSpec, because: Why, tasks: Sequence[TaskCard], code: CodeVersion | None
) -> Change | None:
    """The change with which a retry of this failed job is known to help."""
    if job.phase != Phase.FAILED.value:
        return None
    task = because.task or {"role": None, "index": None, "exit_code": None}
    role = known_role(task["role"] or "")
    verdict = Verdict(because.reason, because.message, role=role, index=task["index"], exit_code=task["exit_code"])
    peaks = [one.peak_memory for one in tasks if (one.fact.role, one.fact.index) == (task["role"], task["index"])]
    required = None
    if code is not None and because.explanation is not None and because.explanation.code == PKG_RESOURCES_GONE:
        required = plain_lines(sources_of(code, 2 * MOST_BYTES, REQUIREMENT_FILES))
    return known_change(spec, verdict, because.explanation, peaks[0] if peaks else None, required)


def _attempts(job: Job) -> list[JobAttempt]:
    if job.attempt == 1:
        return []
    return list(JobAttempt.objects.filter(job=job).defer("spec").order_by("-number"))


def _checkpoints(job: Job) -> list[Checkpoint]:
    complete = Checkpoint.objects.filter(job=job, completed_at__isnull=False).defer("files")
    return list(complete.order_by("-completed_at", "-step")[:CHECKPOINTS_SHOWN])


def _model(job: Job) -> ModelVersion | None:
    return versions_of_jobs([job.pk]).select_related("parent").first()


def _code(user: User, job: Job, version_id: uuid.UUID | None) -> CodeVersion | None:
    """With what was installed for the job in `packages`, in one query."""
    if version_id is None:
        return None
    visible = CodeVersion.objects.filter(pk=version_id, parent__namespace__in=namespaces_visible(user))
    installed = JobPackages.objects.filter(job=job, attempt=job.attempt).values("lock")[:1]
    return visible.annotate(packages=Subquery(installed)).select_related("parent").first()


def _inputs(user: User, spec: TrainingSpec) -> list[Input]:
    if not spec.inputs:
        return []
    ids, mine = [one.version for one in spec.inputs], namespaces_visible(user)
    data = DatasetVersion.objects.filter(pk__in=ids, parent__namespace__in=mine).select_related("parent")
    known: dict[uuid.UUID, DatasetVersion | ModelVersion] = {one.pk: one for one in data}
    if any(one.model_version for one in spec.inputs):
        models = ModelVersion.objects.filter(pk__in=ids, parent__namespace__in=mine).select_related("parent")
        known |= {one.pk: one for one in models}
    return [
        Input(one.version, one.name, known.get(one.version), _reading(one), one.model_version is not None)
        for one in spec.inputs
    ]


def _reading(one: DatasetInput) -> str:
    streamed = ["streamed while reading"] if one.mode is InputMode.STREAM else []
    divided = ["shards divided among the workers"] if one.share is InputShare.SHARDS else []
    mapped = [f"stands for {one.stands_for}"] if one.stands_for else []
    in_place = ["read in place from the data volume"] if one.source is InputSource.VOLUME else []
    return ", ".join(streamed + divided + mapped + in_place)
