"""`yardmaster sweeps`: one job many times with other values, and which came out best."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.text import Text

from yardmaster_client.cli.attempts import QueueAnyway
from yardmaster_client.cli.job_code import GitToken
from yardmaster_client.cli.job_request import request_of
from yardmaster_client.cli.output import Json, Namespace, notes, print_facts, print_json, print_table
from yardmaster_client.jobfile import read_job_file
from yardmaster_client.names import find_sweep
from yardmaster_client.portal import Yardmaster
from yardmaster_client.sweeps import Sweep, Trial

app = typer.Typer(help="Sweeps: one job many times with other values, to find the best.", no_args_is_help=True)
Which = Annotated[str, typer.Argument(metavar="SWEEP", help="Its name, ID, or the beginning of the ID.")]
File = Annotated[Path, typer.Argument(help="The job file, YAML or JSON.")]
Axis = Annotated[
    list[str] | None,
    typer.Option(
        "--grid", metavar="NAME=VALUES",
        help="Try every combination: lr=0.1,0.01 or 'units=16..64 step 16'. May be given several times.",
    ),
]  # fmt: skip
Drawn = Annotated[
    list[str] | None,
    typer.Option(
        "--random", metavar="NAME=VALUES",
        help="Draw values: 'lr=0.0001..0.1 log' or act=relu,tanh. May be given several times.",
    ),
]  # fmt: skip


def register(parent: typer.Typer) -> None:
    parent.add_typer(app, name="sweeps")


@app.command()
def create(
    file: File,
    grid: Axis = None,
    random: Drawn = None,
    trials: Annotated[int | None, typer.Option(min=1, help="Of --random. Default: 10.")] = None,
    seed: Annotated[int, typer.Option(min=0, help="The same seed gives the same trials.")] = 0,
    metric: Annotated[str | None, typer.Option(help="The tag of a scalar by which trials are compared.")] = None,
    run: Annotated[str | None, typer.Option(help="The folder of its event files. Default: the first.")] = None,
    minimize: Annotated[bool, typer.Option("--minimize/--maximize", help="Which way the metric is better.")] = True,
    target: Annotated[float | None, typer.Option(help="Once a trial is as good as this, the sweep ends.")] = None,
    parallel: Annotated[int, typer.Option(min=1, help="Trials that are queued or run at once.")] = 2,
    stop_early: Annotated[str, typer.Option(help="none, median or halving.")] = "none",
    min_steps: Annotated[int, typer.Option(min=1, help="No trial is stopped early before this step.")] = 1,
    factor: Annotated[int, typer.Option(min=2, help="Of halving: one of so many continues.")] = 3,
    failures: Annotated[int, typer.Option(min=0, help="Failures in a row that pause it; 0: none do.")] = 3,
    changes: Annotated[
        list[str] | None, typer.Option("--set", metavar="PATH=VALUE", help="Change a value of the job.")
    ] = None,
    code: Annotated[
        str | None, typer.Option("--code", metavar="FOLDER|git+https://…", help="As for `jobs launch`.")
    ] = None,
    git_token: GitToken = None,
    namespace: Namespace = None,
    engine: Annotated[str | None, typer.Option(help="Default: from the file, or the portal's default.")] = None,
    queue_anyway: QueueAnyway = False,
    wait: Annotated[bool, typer.Option("--wait", help="Wait until it ends or pauses.")] = False,
    as_json: Json = False,
) -> None:
    """Create a sweep of a job. With --wait the exit code is 0 when it has ended with a best trial, or has no metric."""
    plan: dict[str, Any] = {
        "parameters": _parameters(grid, random), "method": "random" if random else "grid", "seed": seed,
        "parallel": parallel, "stop_after_failures": failures, "metric": _metric(metric, minimize, run, target),
        "early_stop": {"rule": stop_early, "min_steps": min_steps, "factor": factor},
        **({"trials": trials or 10} if random else {}),
    }  # fmt: skip
    with Yardmaster.from_environment() as portal:
        wanted = request_of(portal, read_job_file(file, changes or ()), code, git_token, namespace, engine)
        accept = bool(queue_anyway) or wanted.accept_never_fits
        made = portal.sweeps.create(
            wanted.spec, plan, namespace=wanted.namespace, engine=wanted.engine, accept_never_fits=accept
        )
        if not as_json:
            notes().print(Text(f"Created the sweep {made.name} of {made.count} trials ({made.id})."))
        found = portal.sweeps.wait(made.id) if wait else made
        _print(found, list(portal.sweeps.trials(found.id)) if wait else [], as_json)
    if wait and (found.state != "ended" or (metric is not None and found.best is None)):
        raise typer.Exit(1)


def _metric(tag: str | None, minimize: bool, run: str | None, target: float | None) -> dict[str, Any] | None:
    if tag is None:
        return None
    more = {key: one for key, one in (("run", run), ("target", target)) if one is not None}
    return {"tag": tag, "goal": "minimize" if minimize else "maximize", **more}


def _parameters(grid: list[str] | None, random: list[str] | None) -> dict[str, str]:
    if bool(grid) == bool(random):
        raise typer.BadParameter("Give --grid or --random, once or several times.")
    found: dict[str, str] = {}
    for one in grid or random or ():
        name, equals, values = one.partition("=")
        if not equals:
            raise typer.BadParameter(f"Write NAME=VALUES instead of {one!r}.")
        if name in found:
            raise typer.BadParameter(f"{name} is given twice.")
        found[name] = values
    return found


@app.command("list")
def list_sweeps(namespace: Namespace = None, as_json: Json = False) -> None:
    """Sweeps, the newest first."""
    with Yardmaster.from_environment() as portal:
        found = list(portal.sweeps.list(namespace=namespace))
    if as_json:
        print_json(found)
        return
    rows = ([one.id, one.name, one.state, one.count, one.owner, one.created_at] for one in found)
    print_table(["ID", "NAME", "STATE", "TRIALS", "OWNER", "CREATED"], rows)


@app.command()
def show(sweep: Which, as_json: Json = False) -> None:
    """One sweep with its trials, the best first."""
    with Yardmaster.from_environment() as portal:
        found = find_sweep(portal, sweep)
        _print(found, list(portal.sweeps.trials(found.id)), as_json)


@app.command()
def stop(sweep: Which, as_json: Json = False) -> None:
    """Stop a sweep, and its trials that run."""
    with Yardmaster.from_environment() as portal:
        _print(portal.sweeps.stop(find_sweep(portal, sweep).id), [], as_json)


@app.command()
def pause(sweep: Which, as_json: Json = False) -> None:
    """Launch no more trials. Those that run continue."""
    with Yardmaster.from_environment() as portal:
        _print(portal.sweeps.pause(find_sweep(portal, sweep).id), [], as_json)


@app.command()
def resume(sweep: Which, as_json: Json = False) -> None:
    """Launch trials of a paused sweep again."""
    with Yardmaster.from_environment() as portal:
        _print(portal.sweeps.resume(find_sweep(portal, sweep).id), [], as_json)


@app.command()
def delete(
    sweep: Which,
    with_jobs: Annotated[bool, typer.Option("--with-jobs", help="Delete its jobs, too.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
) -> None:
    """Delete a sweep that has ended. Its jobs are kept unless --with-jobs is given."""
    with Yardmaster.from_environment() as portal:
        found = find_sweep(portal, sweep)
        if not yes:
            typer.confirm(f"Delete the sweep {found.name}{' and its jobs' if with_jobs else ''}?", abort=True)
        portal.sweeps.delete(found.id, with_jobs=with_jobs)


def _print(sweep: Sweep, trials: list[Trial], as_json: bool) -> None:
    if as_json:
        print_json({**vars(sweep), "trials": trials} if trials else sweep)
        return
    counts = ", ".join(f"{count} {state.replace('_', ' ')}" for state, count in sweep.counts.items())
    metric = sweep.plan.get("metric") or {}
    best = sweep.best or {}
    print_facts(
        [
            ("name", sweep.name),
            ("id", sweep.id),
            ("state", sweep.state),
            ("why", sweep.reason),
            ("waits", sweep.waiting),
            ("trials", f"{sweep.count}: {counts}" if counts else sweep.count),
            ("metric", f"{metric['goal']} {metric['tag']}" if metric else ""),
            ("best", f"{best['best']:.6g}, trial {best['number']}: {_said(best['values'])}" if best else ""),
            ("created", sweep.created_at),
            ("ended", sweep.ended_at),
        ]
    )
    if trials:
        names = list(trials[0].values)
        falls = metric.get("goal") == "maximize"
        order = sorted(trials, key=lambda one: (one.best is None, (one.best or 0) * (-1 if falls else 1), one.number))
        rows = (
            [one.number, *(one.values.get(name) for name in names), one.state, _figure(one.best), one.steps, one.job]
            for one in order
        )
        print_table(["TRIAL", *names, "STATE", "BEST", "STEPS", "JOB"], rows)


def _said(values: dict[str, Any]) -> str:
    return ", ".join(f"{name}={value}" for name, value in values.items())


def _figure(value: float | None) -> str:
    return "" if value is None else f"{value:.6g}"
