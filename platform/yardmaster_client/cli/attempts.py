"""The attempts of a job: queue one, begin another with changes, and wait until they are over."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Annotated, Any

import typer
from rich.text import Text

from yardmaster_client.cli import logs
from yardmaster_client.cli.job_views import phase_line, print_never_fits, verdict_of
from yardmaster_client.cli.output import Json, notes, print_json
from yardmaster_client.errors import PortalError
from yardmaster_client.jobfile import changed
from yardmaster_client.models import Job
from yardmaster_client.names import find_job, resolve_spec
from yardmaster_client.portal import Yardmaster
from yardmaster_client.waiting import Unfinished

STOPPED, TIMED_OUT = 4, 5
"""Exit codes of `jobs wait`, beside 0 (all succeeded) and 1 (one failed)."""
QueueAnyway = Annotated[
    bool,
    typer.Option("--queue-anyway", help="Queue it even if it can never start with the current limits and machines."),
]
ConfirmForeign = Annotated[
    bool,
    typer.Option("--confirm-foreign-model", help="Run a model that others had a part in as the portal's own user."),
]
Which = Annotated[str, typer.Argument(metavar="JOB", help="A name (the newest of it), an id, or how the id begins.")]

Jobs = Annotated[
    list[str], typer.Argument(metavar="JOB...", help="Names (the newest of each), ids, or how the ids begin.")
]
Environment = Annotated[
    list[str] | None, typer.Option("--env", "-e", metavar="NAME=VALUE", help="Set an environment variable.")
]
Changes = Annotated[
    list[str] | None, typer.Option("--set", metavar="PATH=VALUE", help="Change a value: roles.worker.replicas=3")
]


def retry(
    job: Which,
    changes: Changes = None,
    environment: Environment = None,
    resume: Annotated[
        bool | None,
        typer.Option("--resume/--fresh", help="Continue from the newest checkpoint, or start from the beginning."),
    ] = None,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Show its log until it ends.")] = False,
    wait: Annotated[bool, typer.Option("--wait", help="Wait until it ends.")] = False,
    queue_anyway: QueueAnyway = False,
    confirm_foreign_model: ConfirmForeign = False,
    as_json: Json = False,
) -> None:
    """Run a job that is over again, as its next attempt, as it was or with changes. Unless it has succeeded, it
    continues from its newest checkpoint. With --follow or --wait the exit code is 0 when it succeeded, else 1."""
    with Yardmaster.from_environment() as portal:
        found = find_job(portal, job)
        said: dict[str, Any] = {"confirm_foreign_model": confirm_foreign_model, "resume": resume}
        if changes or environment:
            said["spec"] = _changed_spec(portal, found, changes or [], environment or [])
        again = queued(lambda accept: portal.jobs.retry(found.id, accept_never_fits=accept, **said), queue_anyway)
        if follow:
            logs.print_following(portal, again, logs.Part(), as_json=as_json)
        if follow or wait:
            again = portal.jobs.wait(again.id)
    print_state(again, as_json)
    if (follow or wait) and again.phase != "SUCCEEDED":
        raise typer.Exit(1)


def wait(
    jobs: Jobs,
    timeout: Annotated[float | None, typer.Option(min=0, help="The maximum number of seconds to wait.")] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Do not show each change of a phase.")] = False,
    as_json: Json = False,
) -> None:
    """Wait until jobs are over, showing their phases. The exit code is 0 when all succeeded, 1 when one failed, 4 when
    none failed and one was stopped, 5 when the time was over first."""
    with Yardmaster.from_environment() as portal:
        wanted = list(dict.fromkeys(find_job(portal, one).id for one in jobs))
        show = (lambda job: None) if quiet else (lambda job: notes().print(phase_line(job)))
        try:
            found, is_over = list(portal.jobs.wait_all(wanted, timeout=timeout, on_phase=show)), True
        except Unfinished as error:
            found, is_over = list(error.jobs), False
    if as_json:
        print_json(found[0] if len(found) == 1 else found)
    else:
        for job in found:
            notes().print(verdict_of(job) if job.is_final else Text(f"{job.name} is still {job.phase}."))
    if code := _code_of(found) if is_over else TIMED_OUT:
        raise typer.Exit(code)


def _code_of(jobs: list[Job]) -> int:
    phases = {job.phase for job in jobs}
    return 1 if "FAILED" in phases else STOPPED if phases != {"SUCCEEDED"} else 0


def _changed_spec(portal: Yardmaster, job: Job, changes: list[str], environment: list[str]) -> dict[str, Any]:
    """The job's specification with the changes; code and datasets in them may be names."""
    whole = portal.jobs.get(job.id)
    spec = changed(whole.spec, changes)
    for one in environment:
        name, equals, value = one.partition("=")
        if not name or not equals:
            raise typer.BadParameter(f"--env {one}: write NAME=VALUE.")
        spec["environment"] = {**(spec.get("environment") or {}), name: value}
    return resolve_spec(portal, spec, whole.namespace)


def queued(queue: Callable[[bool], Job], accept: bool) -> Job:
    """The job that is queued. One that can never start is queued only after a person has said so."""
    try:
        return queue(accept)
    except PortalError as error:
        if error.code != "never_fits":
            raise
        if not sys.stdin.isatty():
            error.remedy = "Request less, or use --queue-anyway to queue it anyway."
            print_never_fits(error, with_message=False)
            raise
        print_never_fits(error, with_message=True)
        typer.confirm("Queue it anyway?", abort=True, err=True)
    return queue(True)


def print_state(job: Job, as_json: bool) -> None:
    if as_json:
        print_json(job)
    else:
        notes().print(verdict_of(job))
