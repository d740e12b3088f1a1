"""`yardmaster sessions`, and its short forms `yardmaster tensorboard` and `yardmaster jupyter`: the workbench."""

from __future__ import annotations

import webbrowser
from enum import StrEnum
from typing import Annotated

import typer
from rich.text import Text

from yardmaster_client.cli.output import (
    Json,
    Namespace,
    duration,
    notes,
    out,
    print_facts,
    print_json,
    print_table,
    seconds_of,
)
from yardmaster_client.cli.output import size as bytes_in_words
from yardmaster_client.names import find_job, find_session, session_id_of
from yardmaster_client.portal import Yardmaster
from yardmaster_client.sessions import Session

app = typer.Typer(
    help="TensorBoard, Jupyter and Spark history sessions: start, open, resize and stop them.", no_args_is_help=True
)


class Kind(StrEnum):
    """What a session is."""

    TENSORBOARD = "tensorboard"
    JUPYTER = "jupyter"
    SPARK_HISTORY = "spark_history"


Reference = Annotated[str, typer.Argument(help="Its ID, the beginning of it, or its name.")]
Jobs = Annotated[list[str] | None, typer.Argument(help="Jobs that a TensorBoard shows. Default: all of the namespace.")]
Size = Annotated[str | None, typer.Option(help="A preset: small, medium, large. Default: the portal's.")]
Idle = Annotated[str | None, typer.Option("--for", help="Stop after this long without use: 30m, 2h.")]
Engine = Annotated[str | None, typer.Option(help="The engine to run it on. Default: the portal's.")]
Environment = Annotated[
    str | None,
    typer.Option(
        help="Packages for a Jupyter: the ID of an environment of the namespace, or none. Default: as before."
    ),
]
SparkExecutors = Annotated[
    int | None,
    typer.Option(
        min=0,
        help="Spark executors for a Jupyter, within its size or of --spark-cluster. 0: none. Default: as before.",
    ),
]
SparkCluster = Annotated[
    str | None,
    typer.Option(help="The registered Spark cluster that they are of (yardmaster spark-clusters list). '': none."),
]
SparkCores = Annotated[int | None, typer.Option(min=1, help="Cores of each on --spark-cluster. Default: as before.")]
SparkMemory = Annotated[
    str | None, typer.Option(help="Memory of each on --spark-cluster, such as 2Gi. Default: as before.")
]
Wait = Annotated[bool, typer.Option("--wait/--no-wait", help="Return when it is ready.")]
Open = Annotated[bool, typer.Option("--open/--no-open", help="Open it in a browser when it is ready.")]


def register(parent: typer.Typer) -> None:
    parent.add_typer(app, name="sessions")
    for command in (tensorboard, jupyter):
        parent.command()(command)


def tensorboard(
    jobs: Jobs = None,
    namespace: Namespace = None,
    size: Size = None,
    idle: Idle = None,
    engine: Engine = None,
    browser: Open = False,
    wait: Wait = True,
    as_json: Json = False,
) -> None:
    """Start the TensorBoard of these jobs, or of all jobs of the namespace, and print its address."""
    start(Kind.TENSORBOARD, jobs, namespace, size, idle, engine, browser=browser, wait=wait, as_json=as_json)


def jupyter(
    namespace: Namespace = None,
    size: Size = None,
    idle: Idle = None,
    engine: Engine = None,
    environment: Environment = None,
    spark_executors: SparkExecutors = None,
    spark_cluster: SparkCluster = None,
    spark_cores: SparkCores = None,
    spark_memory: SparkMemory = None,
    browser: Open = False,
    wait: Wait = True,
    as_json: Json = False,
) -> None:
    """Start your Jupyter in the namespace, and print its address."""
    start(
        Kind.JUPYTER, None, namespace, size, idle, engine, environment, spark_executors, spark_cluster, spark_cores,
        spark_memory, browser, wait, as_json,
    )  # fmt: skip


@app.command()
def start(
    kind: Annotated[Kind, typer.Argument(help="What to start.")],
    jobs: Jobs = None,
    namespace: Namespace = None,
    size: Size = None,
    idle: Idle = None,
    engine: Engine = None,
    environment: Environment = None,
    spark_executors: SparkExecutors = None,
    spark_cluster: SparkCluster = None,
    spark_cores: SparkCores = None,
    spark_memory: SparkMemory = None,
    browser: Open = False,
    wait: Wait = True,
    as_json: Json = False,
) -> None:
    """Start a session. One that runs already keeps its size; --for counts from now."""
    with Yardmaster.from_environment() as portal:
        ids = [find_job(portal, one).id for one in jobs or ()]
        limit = None if idle is None else seconds_of(idle)
        found = portal.sessions.start(
            kind.value, namespace=namespace, jobs=ids, size=size, idle_limit=limit, engine=engine,
            environment=environment, spark_executors=spark_executors, spark_cluster=spark_cluster,
            spark_cores=spark_cores, spark_memory=spark_memory,
        )  # fmt: skip
        _finish(portal, found, wait=wait or browser, browser=browser, as_json=as_json)


@app.command("list")
def list_sessions(
    namespace: Namespace = None,
    kind: Annotated[Kind | None, typer.Option(help="Only sessions of this kind.")] = None,
    as_json: Json = False,
) -> None:
    """The TensorBoards of your namespaces and your Jupyters, also those that are stopped."""
    with Yardmaster.from_environment() as portal:
        found = list(portal.sessions.list(namespace=namespace, kind=kind.value if kind else None))
    if as_json:
        print_json(found)
        return
    rows = ([one.name, one.state, one.size, one.last_used_at, one.id] for one in found)
    print_table(["SESSION", "STATE", "SIZE", "LAST USED", "ID"], rows)


@app.command()
def show(reference: Reference, as_json: Json = False) -> None:
    """How a session is, and what it waits for."""
    with Yardmaster.from_environment() as portal:
        found = portal.sessions.get(find_session(portal, reference).id)
        address = portal.sessions.address(found)
    if as_json:
        print_json(found)
        return
    print_facts(
        (
            ("session", found.name), ("id", found.id), ("state", found.state), ("message", found.message),
            ("remedy", found.remedy), ("size", found.size), ("owner", found.owner), ("job", found.job),
            ("files", _files(found)), ("spark", _spark(found)),
            ("shows", found.selection and found.selection.message),
            ("jobs", " ".join(found.jobs)), ("started", found.started_at), ("last used", found.last_used_at),
            ("stops" if found.stops_anyway else "stops if unused", found.stops_at),
            ("taken over by", found.taken_over_by), ("address", address),
        )
    )  # fmt: skip


@app.command("open")
def open_session(reference: Reference, browser: Open = True) -> None:
    """Wait for a session that runs, print its address and open it. One that is stopped is not started."""
    with Yardmaster.from_environment() as portal:
        _finish(portal, find_session(portal, reference), wait=True, browser=browser, as_json=False)


@app.command()
def stop(reference: Reference) -> None:
    """Stop a session. Its quota is returned, and the files of a Jupyter are kept."""
    with Yardmaster.from_environment() as portal:
        found = portal.sessions.stop(find_session(portal, reference).id)
    notes().print(Text(f"{found.name} is {found.state}."))


@app.command()
def restart(reference: Reference, size: Size = None, wait: Wait = True, as_json: Json = False) -> None:
    """Stop a session and start it again, with another size if one is named. Kernels and terminals of a Jupyter end."""
    with Yardmaster.from_environment() as portal:
        found = portal.sessions.restart(find_session(portal, reference).id, size=size)
        _finish(portal, found, wait=wait, browser=False, as_json=as_json)


@app.command()
def extend(reference: Reference, idle: Idle = None) -> None:
    """Count the time without use from now."""
    with Yardmaster.from_environment() as portal:
        limit = None if idle is None else seconds_of(idle)
        found = portal.sessions.extend(find_session(portal, reference).id, idle_limit=limit)
    notes().print(Text(f"{found.name} stops after {duration(found.idle_limit)} without use."))


@app.command("delete-files")
def delete_files(
    reference: Reference,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")] = False,
) -> None:
    """Delete for good the files that a stopped Jupyter keeps. Managers use the ID, once its owner has left."""
    with Yardmaster.from_environment() as portal:
        session_id = session_id_of(portal, reference)
        if not yes:
            typer.confirm("Delete all files that this Jupyter keeps, on all engines?", abort=True, err=True)
        portal.sessions.delete_files(session_id)
    notes().print(Text("Its files are being deleted."))


def _files(found: Session) -> str:
    kept = found.files
    if kept is None:
        return ""
    return f"{bytes_in_words(kept.size)}{' reserved' if kept.reserved else ''}. {kept.message}".strip()


def _spark(found: Session) -> str:
    if not found.spark_executors:
        return ""
    count = f"{found.spark_executors} executor{'' if found.spark_executors == 1 else 's'}"
    if not found.spark_cluster:
        return f"{count}, within its size"
    cores, memory = found.spark_cores, found.spark_memory
    each = f", each with {cores} core{'' if cores == 1 else 's'} and {bytes_in_words(memory)}" if memory else ""
    return f"{count}, on {found.spark_cluster}{each}"


def _finish(portal: Yardmaster, found: Session, *, wait: bool, browser: bool, as_json: bool) -> None:
    """Wait with what it waits for, and say where it is opened. Exits with 1 where it was waited for in vain."""
    if wait:
        found = portal.sessions.wait(found.id, each=None if as_json else _Reported())
    address = portal.sessions.address(found)
    if as_json:
        print_json(found)
    elif found.runs or found.restarts:
        if found.selection:
            notes().print(Text(found.selection.message))
        out().print(Text(address))
    else:
        remedy = found.remedy or f'Start it with: yardmaster sessions restart "{found.name}"'
        notes().print(Text(" ".join(filter(None, [f"{found.name} is {found.state}.", found.message, remedy]))))
    if wait and found.state != "ready":
        raise typer.Exit(1)
    if browser and not webbrowser.open(address):
        notes().print(Text("No browser could be started here. Open the address in one.", style="dim"))


class _Reported:
    """Says each state once."""

    def __init__(self) -> None:
        self._last = ""

    def __call__(self, session: Session) -> None:
        words = f"{session.name}: {session.state}. {session.message}".strip()
        if words != self._last:
            notes().print(Text(words))
        self._last = words
