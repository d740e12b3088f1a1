"""Jobs: check, launch, look, ask why, stop. Their logs are in `logs`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.text import Text

from yardmaster_client.cli import attempts, kubeflow, labels, logs, outputs, shell, task_command
from yardmaster_client.cli.attempts import ConfirmForeign, QueueAnyway, Which, print_state, queued
from yardmaster_client.cli.job_code import GitToken
from yardmaster_client.cli.job_columns import of_metric, order_of
from yardmaster_client.cli.job_request import request_of
from yardmaster_client.cli.job_views import (
    fixes_of,
    print_check,
    print_job,
    print_jobs,
    print_why,
    stopping_line,
    verdict_of,
)
from yardmaster_client.cli.output import Json, Namespace, notes, print_json, seconds_of, visible
from yardmaster_client.jobfile import read_job_file, with_entry
from yardmaster_client.models import Job
from yardmaster_client.names import find_job
from yardmaster_client.portal import Yardmaster

app = typer.Typer(help="Jobs: check, launch, follow, ask why, stop.", no_args_is_help=True)
app.command(name="logs")(logs.logs)
app.command(name="outputs")(outputs.outputs)
app.command(name="shell", cls=task_command.WithCommand)(shell.shell)
app.command(name="release")(shell.release)
app.command(name="stacks")(shell.stacks)
app.command(name="retry")(attempts.retry)
app.command(name="wait")(attempts.wait)
app.command(name="edit")(labels.edit)
app.command(name="import")(kubeflow.import_tfjob)
app.command(name="export")(kubeflow.export)

File = Annotated[Path, typer.Argument(help="The job file, YAML or JSON.")]
Changes = Annotated[
    list[str] | None, typer.Option("--set", metavar="PATH=VALUE", help="Change a value: roles.worker.replicas=3")
]
CodeFrom = Annotated[
    str | None,
    typer.Option(
        "--code",
        metavar="FOLDER|git+https://…",
        help="Upload this folder first, if it has changed, and run it; or have the portal fetch it from Git: "
        "git+https://host/owner/repository[@ref][#subdirectory=path].",
    ),
]
HoldFailed = Annotated[
    str | None,
    typer.Option(
        metavar="DURATION", help="Keep a task whose script fails up for so long, to open a terminal in it, such as 1h."
    ),
]
EntryPoint = Annotated[
    str | None,
    typer.Option("--entry-point", help="What to run: train.py, train.ipynb or '-m package.train'."),
]
Command = Annotated[
    str | None,
    typer.Option("--command", help="A shell command to run, in the place of the entry point and its arguments."),
]
Tf1 = Annotated[
    bool | None, typer.Option("--tf1/--no-tf1", help="TensorFlow 1 mode: import tensorflow gives compat.v1.")
]
Image = Annotated[
    str | None,
    typer.Option("--image", help="An image of the portal's catalogue to run in: see `yardmaster images list`."),
]
Preset = Annotated[
    str | None,
    typer.Option("--preset", metavar="NAME", help="A preset of the portal, which says what the file omits."),
]
Engine = Annotated[str | None, typer.Option(help="The engine to use. Default: from the file, or the portal's default.")]


def register(parent: typer.Typer) -> None:
    parent.add_typer(app, name="jobs")


@app.command()
def launch(
    file: File,
    changes: Changes = None,
    code: CodeFrom = None,
    git_token: GitToken = None,
    namespace: Namespace = None,
    engine: Engine = None,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Show its log until it ends.")] = False,
    wait: Annotated[bool, typer.Option("--wait", help="Wait until it ends.")] = False,
    queue_anyway: QueueAnyway = False,
    confirm_foreign_model: ConfirmForeign = False,
    hold_failed: HoldFailed = None,
    entry_point: EntryPoint = None,
    command: Command = None,
    tf1: Tf1 = None,
    image: Image = None,
    preset: Preset = None,
    as_json: Json = False,
) -> None:
    """Launch a job. With --follow or --wait the exit code is 0 when it succeeded, else 1."""
    with Yardmaster.from_environment() as portal:
        said = with_entry(read_job_file(file, _with_hold(changes, hold_failed)), entry_point, command, tf1, image)
        wanted = request_of(portal, said, code, git_token, namespace, engine, preset)
        job = queued(
            lambda accept: portal.jobs.launch(
                wanted.spec,
                namespace=wanted.namespace,
                engine=wanted.engine,
                accept_never_fits=accept,
                confirm_foreign_model=confirm_foreign_model,
            ),
            queue_anyway or wanted.accept_never_fits,
        )
        _print_warnings(job)
        if not as_json:
            notes().print(Text(f"Launched {job.name} ({job.id})."))
        if follow:
            logs.print_following(portal, job, logs.Part(), as_json=as_json)
        if follow or wait:
            job = portal.jobs.wait(job.id)
        if as_json:
            print_json(job)
        elif follow or wait:
            notes().print(verdict_of(job))
        else:
            print(job.id)  # noqa: T201 (the result, for scripts)
    if (follow or wait) and job.phase != "SUCCEEDED":
        raise typer.Exit(1)


@app.command()
def check(
    file: File,
    changes: Changes = None,
    code: CodeFrom = None,
    git_token: GitToken = None,
    namespace: Namespace = None,
    engine: Engine = None,
    entry_point: EntryPoint = None,
    command: Command = None,
    tf1: Tf1 = None,
    image: Image = None,
    preset: Preset = None,
    as_json: Json = False,
) -> None:
    """Would it run? "Fits now", "waits, because" or "can never fit, because" (then the exit code is 1). Nothing is
    launched."""
    with Yardmaster.from_environment() as portal:
        said = with_entry(read_job_file(file, changes or ()), entry_point, command, tf1, image)
        wanted = request_of(portal, said, code, git_token, namespace, engine, preset)
        found = portal.jobs.check(wanted.spec, namespace=wanted.namespace, engine=wanted.engine)
    if as_json:
        print_json(found)
    else:
        print_check(found)
    if found["verdict"] == "never_fits":
        raise typer.Exit(1)


@app.command("list")
def list_jobs(
    namespace: Namespace = None,
    phase: Annotated[str | None, typer.Option(help="QUEUED, RUNNING, SUCCEEDED, FAILED, …")] = None,
    strategy: str | None = None,
    owner: str | None = None,
    search: Annotated[str | None, typer.Option(help="Part of the name.")] = None,
    queue_state: Annotated[str | None, typer.Option(help="Of queued jobs: waiting, never_fits.")] = None,
    tag: Annotated[list[str] | None, typer.Option(help="With this tag. May be given several times.")] = None,
    archived: Annotated[bool, typer.Option("--archived", help="Archived jobs instead of the others.")] = False,
    reason: Annotated[str | None, typer.Option(help="The reason code, such as OutOfMemory.")] = None,
    metric: Annotated[
        list[str] | None, typer.Option(help="Show this metric's latest value; min:NAME and max:NAME its extremes.")
    ] = None,
    column: Annotated[
        list[str] | None, typer.Option(help="Show duration, queue_time, steps_per_second, gpu_hours, parameter:NAME.")
    ] = None,
    sort: Annotated[
        str | None, typer.Option(help="By a metric or a column; with - in front the largest first: --sort -accuracy")
    ] = None,
    where: Annotated[list[str] | None, typer.Option(help="Whose metric meets this: 'loss < 0.3'.")] = None,
    limit: Annotated[int, typer.Option(min=1, help="The maximum number.")] = 50,
    as_json: Json = False,
) -> None:
    """Jobs, newest first, or as --sort says."""
    filters: dict[str, Any] = {"namespace": namespace, "strategy": strategy, "owner": owner, "search": search}
    filters |= {"phase": phase.upper() if phase else None, "queue_state": queue_state, "reason": reason}
    filters |= {"tag": tag or None, "archived": archived or None, "where": where or None}
    shown = [*(of_metric(one) for one in metric or ()), *(column or ())]
    filters |= {"columns": ",".join(shown) or None, "ordering": order_of(sort) if sort else None}
    with Yardmaster.from_environment() as portal:
        rows = portal.jobs.list(page_size=min(limit, 200), **filters)
        found = [job for job, _ in zip(rows, range(limit), strict=False)]
    if as_json:
        print_json(found)
    else:
        print_jobs(found, shown)


@app.command()
def show(job: Which, as_json: Json = False) -> None:
    """One job and its tasks."""
    with Yardmaster.from_environment() as portal:
        found = find_job(portal, job)
        if found.strategy == "in_graph" and not found.is_final:
            found = portal.jobs.get(found.id)  # a list does not tell where its servers are
        tasks = portal.jobs.tasks(found.id)
    if as_json:
        print_json({"job": found, "tasks": tasks})
    else:
        print_job(found, tasks)


@app.command()
def why(job: Which, as_json: Json = False) -> None:
    """Why a job waits, or why it failed, with numbers and what to do."""
    with Yardmaster.from_environment() as portal:
        found = portal.jobs.why(find_job(portal, job).id)
    if as_json:
        print_json(found)
    else:
        print_why(found)


@app.command()
def stop(
    job: Which,
    wait: Annotated[bool, typer.Option("--wait", help="Wait until it has stopped.")] = False,
    as_json: Json = False,
) -> None:
    """Stop a job. Its tasks get SIGTERM, and the grace period to save what they have."""
    with Yardmaster.from_environment() as portal:
        found = portal.jobs.stop(find_job(portal, job).id)
        if wait:
            found = portal.jobs.wait(found.id)
    if as_json or found.is_final:
        print_state(found, as_json)
    else:
        notes().print(stopping_line(found))


@app.command()
def notebook(
    job: Which,
    to: Annotated[
        Path | None, typer.Option("--output", "-o", help="The target file or folder. Default: the current directory.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing file.")] = False,
    as_json: Json = False,
) -> None:
    """Fetch the starter notebook of an in_graph job that is up. It connects to the job's servers and drives them."""
    with Yardmaster.from_environment() as portal:
        found = find_job(portal, job)
        place = to or Path()
        if place.is_dir():
            place /= f"in-graph-{found.id}.ipynb"
        text = portal.jobs.notebook(found.id)
    try:
        with place.open("w" if force else "x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError as error:
        raise typer.BadParameter(f"{place} already exists: choose another file, or use --force.") from error
    except OSError as error:
        raise typer.BadParameter(f"{place} cannot be written: {error.strerror}.") from error
    if as_json:
        print_json({"job": found.id, "file": str(place)})
    else:
        notes().print(Text(f"The notebook is {place}."))


@app.command()
def delete(
    job: Which, yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")] = False
) -> None:
    """Delete a job that is over, with its log, checkpoints, outputs and model."""
    with Yardmaster.from_environment() as portal:
        found = find_job(portal, job)
        if not yes:
            typer.confirm(
                f"Delete {visible(found.name)} ({found.id}) with its log, checkpoints, outputs and model?",
                abort=True,
                err=True,
            )
        portal.jobs.delete(found.id)
    notes().print(Text(f"Deleted {found.name} ({found.id})."))


def _print_warnings(job: Job) -> None:
    for warning in job.warnings:
        place = f"{warning.get('file', '')}:{warning.get('line', '')} " if warning.get("file") else ""
        notes().print(Text(f"warning: {place}{warning['message']} {warning.get('remedy', '')}", style="yellow"))
        for words in fixes_of(warning):
            notes().print(Text(f"  {words}", style="dim"))


def _with_hold(changes: list[str] | None, hold_failed: str | None) -> list[str]:
    return [*(changes or ()), *([] if hold_failed is None else [f"hold_failed={seconds_of(hold_failed)}"])]
