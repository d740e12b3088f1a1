"""Volumes of a namespace on a cluster, and datasets that are published to its data volume."""

from __future__ import annotations

from typing import Annotated, Any

import typer
from rich.text import Text

from yardmaster_client.cli.job_views import verdict_of
from yardmaster_client.cli.output import Json, Namespace, notes, print_json, print_table, size
from yardmaster_client.names import NotFound, find_namespace, find_version
from yardmaster_client.portal import Yardmaster

app = typer.Typer(help="Data and log volumes of a namespace on a cluster.", no_args_is_help=True)
Kind = Annotated[str, typer.Argument(help="data or log.")]
Engine = Annotated[str | None, typer.Option(help="Default: the portal's default.")]
Wait = Annotated[bool, typer.Option("--wait", help="Wait until the job has ended.")]


def register(parent: typer.Typer) -> None:
    parent.add_typer(app, name="volumes")


def add_to(datasets: typer.Typer) -> None:
    """The commands of datasets that have to do with volumes."""
    datasets.command()(publish)
    datasets.command()(unpublish)


@app.command("list")
def list_volumes(namespace: Namespace = None, as_json: Json = False) -> None:
    """The volumes of a namespace, and why one is not ready."""
    with Yardmaster.from_environment() as portal:
        found = list(portal.volumes(_namespace_id(portal, namespace)))
    if as_json:
        print_json(found)
        return
    rows = (
        [one["kind"], one["engine"], size(one["size"]), size(one["published"]), one["state"], _said(one)]
        for one in found
    )
    print_table(["KIND", "ENGINE", "SIZE", "PUBLISHED", "STATE", "MESSAGE"], rows)


@app.command("create")
def create_volume(
    kind: Kind,
    volume_size: Annotated[
        str | None,
        typer.Option(
            "--size",
            help="Such as 100Gi. Counts against the storage quota. Default: all that is left of that quota.",
        ),
    ] = None,
    engine: Engine = None,
    namespace: Namespace = None,
    as_json: Json = False,
) -> None:
    """Create a volume, for managers of the namespace."""
    body = {"kind": kind} | ({"engine": engine} if engine else {})
    if volume_size is not None:  # an empty one is a mistake, and not all of the quota
        body["size"] = volume_size
    with Yardmaster.from_environment() as portal:
        made = portal.volume_create(_namespace_id(portal, namespace), **body)
    if as_json:
        print_json(made)
    else:
        what = f"The {made['kind']} volume of {size(made['size'])} on {made['engine']}"
        notes().print(Text(f"{what} is being created. See: yardmaster volumes list"))


@app.command("resize")
def resize_volume(
    kind: Kind,
    volume_size: Annotated[str, typer.Option("--size", help="Larger than now, such as 200Gi.")],
    engine: Engine = None,
    namespace: Namespace = None,
) -> None:
    """Enlarge a volume."""
    with Yardmaster.from_environment() as portal:
        namespace_id = _namespace_id(portal, namespace)
        portal.volume_resize(namespace_id, _volume(portal, namespace_id, kind, engine)["id"], volume_size)
    notes().print(Text(f"The {kind} volume is being enlarged to {volume_size}."))


@app.command("delete")
def delete_volume(
    kind: Kind,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")] = False,
    engine: Engine = None,
    namespace: Namespace = None,
) -> None:
    """Delete a volume with all that is on it. Refused while jobs that are not over use it."""
    with Yardmaster.from_environment() as portal:
        namespace_id = _namespace_id(portal, namespace)
        found = _volume(portal, namespace_id, kind, engine)
        if not yes:
            typer.confirm(
                f"Delete the {kind} volume on {found['engine']} with all that is on it?", abort=True, err=True
            )
        portal.volume_delete(namespace_id, found["id"])
    notes().print(Text(f"The {kind} volume is being removed."))


@app.command("versions")
def list_versions(engine: Engine = None, namespace: Namespace = None, as_json: Json = False) -> None:
    """What is published to the data volume, also of datasets that were deleted since."""
    with Yardmaster.from_environment() as portal:
        namespace_id = _namespace_id(portal, namespace)
        found = list(portal.volume_versions(namespace_id, _volume(portal, namespace_id, "data", engine)["id"]))
    if as_json:
        print_json(found)
        return
    rows = ([f"{one['dataset']}@{one['number']}", one["version"], size(one["bytes"]), one["state"]] for one in found)
    print_table(["DATASET", "VERSION", "SIZE", "STATE"], rows)


@app.command("remove")
def remove_version(
    version: Annotated[str, typer.Argument(help="The version's id, as `volumes versions` shows it.")],
    engine: Engine = None,
    namespace: Namespace = None,
    wait: Wait = False,
    as_json: Json = False,
) -> None:
    """Remove a version from the data volume, also one that was deleted in the portal. Refused while jobs read it."""
    with Yardmaster.from_environment() as portal:
        namespace_id = _namespace_id(portal, namespace)
        volume = _volume(portal, namespace_id, "data", engine)
        copy = portal.volume_version_remove(namespace_id, volume["id"], version)
        is_done = _waited(portal, copy, wait)
    _finish(copy, is_done, as_json=as_json)


@app.command("clean")
def clean_volume(engine: Engine = None, namespace: Namespace = None, wait: Wait = False) -> None:
    """Remove the logs of deleted jobs from the log volume, by a job. For managers of the namespace."""
    with Yardmaster.from_environment() as portal:
        namespace_id = _namespace_id(portal, namespace)
        job = portal.volume_clean(namespace_id, _volume(portal, namespace_id, "log", engine)["id"])
        notes().print(Text(f"The job {job} removes the logs of deleted jobs."))
        is_done = _waited(portal, {"state": "removing", "job": job}, wait)
    if not is_done:
        raise typer.Exit(1)


def publish(
    reference: Annotated[str, typer.Argument(help="The dataset: name, name@version or id.")],
    engine: Engine = None,
    namespace: Namespace = None,
    wait: Wait = False,
    as_json: Json = False,
) -> None:
    """Publish a dataset version to the data volume of its namespace, so that jobs read it there (source: volume).
    With --wait the exit code is 0 when it is there, else 1."""
    with Yardmaster.from_environment() as portal:
        version = find_version(portal.datasets, reference, namespace)
        copy = portal.version_publish(version.id, engine=engine)
        is_done = _waited(portal, copy, wait)
        copy = _now(portal, version.id, copy)
    _finish(copy, is_done, as_json=as_json)


def unpublish(
    reference: Annotated[str, typer.Argument(help="The dataset: name, name@version or id.")],
    engine: Engine = None,
    namespace: Namespace = None,
    wait: Wait = False,
    as_json: Json = False,
) -> None:
    """Remove a dataset version from the data volume. Refused while jobs read it from there."""
    with Yardmaster.from_environment() as portal:
        version = find_version(portal.datasets, reference, namespace)
        copy = portal.version_unpublish(version.id, engine=engine)
        is_done = _waited(portal, copy, wait)
    _finish(copy, is_done, as_json=as_json)


def _waited(portal: Yardmaster, copy: dict[str, Any], wait: bool) -> bool:
    """Whether its job has succeeded; without `wait`, or where there is none to wait for, yes."""
    if not wait or copy["state"] == "ready" or copy["job"] is None:
        return True
    job = portal.jobs.wait(copy["job"])
    notes().print(verdict_of(job))
    return bool(job.phase == "SUCCEEDED")


def _now(portal: Yardmaster, version_id: str, copy: dict[str, Any]) -> dict[str, Any]:
    rows = portal.version_on_volumes(version_id)
    return next((one for one in rows if one["engine"] == copy["engine"]), copy)


def _finish(copy: dict[str, Any], is_done: bool, *, as_json: bool) -> None:
    """Say how the copy stands now. Raises `Exit` where its job has not done what was asked."""
    if as_json:
        print_json(copy)
    elif copy["state"] == "ready":
        notes().print(Text(f"{copy['dataset']}@{copy['number']} is on the data volume."))
    else:
        notes().print(
            Text(f"{copy['dataset']}@{copy['number']} on {copy['engine']}: {copy['state']}, job {copy['job']}.")
        )
    if not is_done:
        raise typer.Exit(1)


def _volume(portal: Yardmaster, namespace_id: str, kind: str, engine: str | None) -> dict[str, Any]:
    rows = [one for one in portal.volumes(namespace_id) if one["kind"] == kind and engine in (None, one["engine"])]
    if not rows:
        raise NotFound(f"The namespace has no {kind} volume{f' on {engine}' if engine else ''}.")
    if len(rows) > 1:
        raise ValueError(f"There is a {kind} volume on several engines. Name one with --engine.")
    return rows[0]


def _said(one: dict[str, Any]) -> str:
    return f"{one['message']} {one['remedy']}".strip()


def _namespace_id(portal: Yardmaster, reference: str | None) -> str:
    if reference:
        return find_namespace(portal, reference).id
    return next(one.id for one in portal.namespaces() if one.personal and one.role == "manager")
