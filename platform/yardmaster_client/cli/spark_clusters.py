"""Registered Spark clusters: which ones jobs and notebooks may use; and, for administrators, their registration."""

from __future__ import annotations

import sys
import time
from typing import Annotated, Any

import typer
from rich.text import Text

from yardmaster_client.cli.output import Json, bytes_of, notes, print_facts, print_json, print_table, size
from yardmaster_client.cli.shared_things import Enabled, ForEveryone, OnlyFor, UsableBy, Yes, changed_or_created, given
from yardmaster_client.portal import Yardmaster
from yardmaster_client.spark_clusters import SparkCluster

app = typer.Typer(help="Spark clusters that jobs and notebooks may use, by their names.", no_args_is_help=True)
Name = Annotated[str, typer.Argument(metavar="CLUSTER", help="Its name, such as analytics.")]
Limit = Annotated[int | None, typer.Option(min=0, help="0: no limit.")]
LOOK_EVERY = 1.0
PATIENCE = 120.0


def register(parent: typer.Typer) -> None:
    parent.add_typer(app, name="spark-clusters")


@app.command("list")
def list_clusters(
    namespace: UsableBy = None,
    as_json: Json = False,
) -> None:
    """The Spark clusters that your namespaces may use, with the limits of a job or a session."""
    with Yardmaster.from_environment() as portal:
        found = list(portal.spark_clusters.list(namespace=namespace))
    if as_json:
        print_json(found)
        return
    rows = (
        [one.name, one.master, _limit(one.most_executors), _limit(one.most_cores), _memory(one),
         _limit(one.most_cores_at_once), one.state if one.enabled else "turned off"]
        for one in found
    )  # fmt: skip
    print_table(["NAME", "MASTER", "EXECUTORS", "CORES", "MEMORY", "CORES OF ALL", "STATE"], rows)


@app.command()
def show(cluster: Name, as_json: Json = False) -> None:
    """One cluster, with its limits and what its last check has found."""
    with Yardmaster.from_environment() as portal:
        _show(portal.spark_clusters.get(cluster), as_json)


@app.command("set")
def set_cluster(
    cluster: Name,
    master: Annotated[str | None, typer.Option(help="spark://HOST:PORT, needed for a new one.")] = None,
    driver_address: Annotated[
        str | None, typer.Option(help="By which executors reach the portal's machine, needed for a new one.")
    ] = None,
    python: Annotated[str | None, typer.Option(help="The interpreter of its executors. Default: python3.")] = None,
    secret: Annotated[
        bool, typer.Option("--secret", help="Ask for its spark.authenticate.secret, or read it from a pipe.")
    ] = False,
    no_secret: Annotated[bool, typer.Option("--no-secret", help="It has none any more.")] = False,
    most_executors: Limit = None,
    most_cores: Limit = None,
    most_memory: Annotated[str | None, typer.Option(help="Such as 64Gi. 0: no limit.")] = None,
    most_cores_at_once: Limit = None,
    namespaces: OnlyFor = None,
    everyone: ForEveryone = False,
    enabled: Enabled = None,
    as_json: Json = False,
) -> None:
    """Register a cluster, or change one (administrators). What is not given stays. Limits are of a job or a session;
    --most-cores-at-once is of all of them together."""
    said: dict[str, Any] = {
        "master": master, "driver_address": driver_address, "python": python, "namespaces": namespaces,
        "enabled": enabled, "everyone": True if everyone else None, "secret": _secret(secret, no_secret),
    }  # fmt: skip
    facts = given(said)
    limits = {
        "most_executors": most_executors, "most_cores": most_cores, "most_cores_at_once": most_cores_at_once,
        "most_memory": None if most_memory is None else bytes_of(most_memory),
    }  # fmt: skip
    facts |= {name: value or None for name, value in limits.items() if value is not None}
    with Yardmaster.from_environment() as portal:
        made = _set(portal, cluster, facts)
    if as_json:
        print_json(made)
    else:
        notes().print(Text(f"{made.name} is {made.master}. Check it with: yardmaster spark-clusters check {made.name}"))


@app.command()
def check(cluster: Name, as_json: Json = False) -> None:
    """Look whether its master answers, and wait for that (administrators). Exits with 1 where it does not."""
    until = time.monotonic() + PATIENCE
    with Yardmaster.from_environment() as portal:
        found = portal.spark_clusters.check(cluster)
        while found.state == "checking":
            if time.monotonic() > until:
                raise TimeoutError(f"The check of {cluster} takes longer than {PATIENCE:g} s. Look at it again later.")
            time.sleep(LOOK_EVERY)
            found = portal.spark_clusters.get(cluster)
    _show(found, as_json)
    if found.state != "reachable":
        raise typer.Exit(1)


@app.command()
def delete(cluster: Name, yes: Yes = False) -> None:
    """Remove a cluster from the portal (administrators). Refused while jobs or sessions use it."""
    if not yes:
        typer.confirm(f"Remove the Spark cluster {cluster} from the portal?", abort=True, err=True)
    with Yardmaster.from_environment() as portal:
        portal.spark_clusters.delete(cluster)
    notes().print(Text(f"Removed {cluster}."))


def _set(portal: Yardmaster, name: str, facts: dict[str, Any]) -> SparkCluster:
    missing = f"There is no Spark cluster {name} yet. Give --master and --driver-address to register it."
    return changed_or_created(
        lambda: portal.spark_clusters.change(name, **facts),
        lambda: portal.spark_clusters.create(name, **facts),
        "" if {"master", "driver_address"} <= facts.keys() else missing,
    )


def _secret(is_asked: bool, is_none: bool) -> str | None:
    """None: as it was."""
    if is_none:
        return ""
    if not is_asked:
        return None
    if sys.stdin.isatty():
        return str(typer.prompt("spark.authenticate.secret", hide_input=True, err=True))
    return sys.stdin.readline().rstrip("\r\n")


def _show(found: SparkCluster, as_json: bool) -> None:
    if as_json:
        print_json(found)
        return
    facts = {
        "Name": found.name, "Master": found.master, "Address of drivers": found.driver_address,
        "Python": found.python, "Secret": "yes" if found.has_secret else "no",
        "Executors of a job": _limit(found.most_executors), "Cores of a job": _limit(found.most_cores),
        "Memory of a job": _memory(found), "Cores of all jobs": _limit(found.most_cores_at_once),
        "For": "everyone" if found.everyone else ", ".join(found.namespaces), "State": found.state,
        "Problem": found.problem, "Checked": found.checked_at,
        "New jobs": "" if found.enabled else "may not use it",
    }  # fmt: skip
    print_facts(facts.items())


def _limit(value: int | None) -> str:
    return "no limit" if value is None else str(value)


def _memory(one: SparkCluster) -> str:
    return "no limit" if one.most_memory is None else size(one.most_memory)
