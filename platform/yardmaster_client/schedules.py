"""Job templates with parameters, and schedules that launch them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from yardmaster_client.models import Job, read
from yardmaster_client.transport import Transport


@dataclass(frozen=True)
class Parameter:
    """`kind`: integer, number, text, choice or boolean. `default` None: a launch must give a value."""

    name: str
    kind: str
    default: Any = None
    minimum: float | None = None
    maximum: float | None = None
    choices: tuple[str, ...] = ()
    help: str = ""


@dataclass(frozen=True)
class Template:
    """A job template. What it says (`spec` to `parameters`) is there for one template, not in lists."""

    id: str
    namespace: str
    name: str
    description: str = ""
    revision: int = 1
    engine: str = ""
    spec: dict[str, Any] = field(default_factory=dict)
    latest: tuple[str, ...] = ()
    parameters: tuple[Parameter, ...] = ()
    created_by: str = ""
    changed_at: datetime | None = None


@dataclass(frozen=True)
class Schedule:
    """Times at which a template is launched. `paused_at` None: it is not paused."""

    id: str
    namespace: str
    template: str
    template_name: str
    name: str
    owner: str
    cron: str
    time_zone: str
    parameters: dict[str, Any] = field(default_factory=dict)
    starts_at: datetime | None = None
    ends_at: datetime | None = None
    overlap: str = "skip"
    grace: int = 3600
    keeps: int = 0
    next_at: datetime | None = None
    next_times: tuple[datetime, ...] = ()
    paused_at: datetime | None = None
    pause_reason: str = ""
    refusals: int = 0


@dataclass(frozen=True)
class ScheduleRun:
    """One time of a schedule. `state`: waiting, launched, refused, skipped or missed; why is in `message`."""

    id: str
    planned_at: datetime
    state: str
    job: str | None = None
    phase: str = ""
    is_asked_for: bool = False
    code: str = ""
    message: str = ""


class Templates:
    """Job templates."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def list(self, *, namespace: str | None = None, name: str | None = None) -> Iterator[Template]:
        """The newest first; without a namespace those of all that one is in."""
        pages = self._transport.pages("job-templates/", namespace=namespace, name=name)
        return (read(Template, row) for row in pages)

    def get(self, template_id: str) -> Template:
        return read(Template, self._transport.get(f"job-templates/{template_id}/"))

    def create(
        self, name: str, *, job: str | None = None, spec: Mapping[str, Any] | None = None,
        namespace: str | None = None, description: str = "", engine: str | None = None, latest: Sequence[str] = (),
        parameters: Sequence[Mapping[str, Any]] = (),
    ) -> Template:  # fmt: skip
        """Save a job, by its id, or a specification as a template. `latest`: what is taken in its latest version at
        each launch, such as `code` and `inputs.0`."""
        body = {
            "name": name, "job": job, "spec": spec, "namespace": namespace, "description": description,
            "engine": engine, "latest": list(latest), "parameters": list(parameters),
        }  # fmt: skip
        sent = {key: value for key, value in body.items() if value is not None}
        return read(Template, self._transport.post("job-templates/", sent))

    def change(self, template_id: str, **changes: Any) -> Template:
        """name, description, spec, engine, latest, parameters: what the job is becomes a new revision."""
        return read(Template, self._transport.patch(f"job-templates/{template_id}/", changes))

    def launch(
        self, template_id: str, parameters: Mapping[str, Any] | None = None, *, name: str = "",
        accept_never_fits: bool = False, confirm_foreign_model: bool = False, revision: int | None = None,
    ) -> Job:  # fmt: skip
        """Queue a job with these values; what is left out has its default. `revision`: the newest unless named."""
        body: dict[str, Any] = {
            "parameters": dict(parameters or {}), "name": name, "accept_never_fits": accept_never_fits,
            "confirm_foreign_model": confirm_foreign_model,
        }  # fmt: skip
        if revision is not None:
            body["revision"] = revision
        return read(Job, self._transport.post(f"job-templates/{template_id}/launch/", body))

    def delete(self, template_id: str) -> None:
        """Its jobs stay."""
        self._transport.delete(f"job-templates/{template_id}/")


class Schedules:
    """Schedules of job templates."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def list(self, *, namespace: str | None = None, name: str | None = None) -> Iterator[Schedule]:
        """The newest first; without a namespace those of all that one is in."""
        pages = self._transport.pages("schedules/", namespace=namespace, name=name)
        return (read(Schedule, row) for row in pages)

    def get(self, schedule_id: str) -> Schedule:
        return read(Schedule, self._transport.get(f"schedules/{schedule_id}/"))

    def create(self, name: str, *, template: str, cron: str, **more: Any) -> Schedule:
        """Launch a template, by its id, at these times. `more`: time_zone, parameters, starts_at, ends_at, overlap
        (skip, queue or stop), grace (seconds), keeps."""
        sent = {"name": name, "template": template, "cron": cron, **more}
        return read(Schedule, self._transport.post("schedules/", sent))

    def change(self, schedule_id: str, **changes: Any) -> Schedule:
        """What `create` takes, but the template."""
        return read(Schedule, self._transport.patch(f"schedules/{schedule_id}/", changes))

    def pause(self, schedule_id: str) -> Schedule:
        return read(Schedule, self._transport.post(f"schedules/{schedule_id}/pause/"))

    def resume(self, schedule_id: str) -> Schedule:
        return read(Schedule, self._transport.post(f"schedules/{schedule_id}/resume/"))

    def run(self, schedule_id: str) -> Job:
        """Launch its template now, as yourself."""
        return read(Job, self._transport.post(f"schedules/{schedule_id}/run/"))

    def runs(self, schedule_id: str) -> Iterator[ScheduleRun]:
        """What became of its times, the newest first."""
        return (read(ScheduleRun, row) for row in self._transport.pages(f"schedules/{schedule_id}/runs/"))

    def delete(self, schedule_id: str) -> None:
        """With its history. Its jobs stay."""
        self._transport.delete(f"schedules/{schedule_id}/")
