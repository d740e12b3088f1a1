"""Data connections of a namespace: clusters of Apache Ignite for its jobs. Passwords are given as names of secrets."""

from __future__ import annotations

from typing import Annotated, Any

import typer
from rich.text import Text

from yardmaster_client.cli.output import Json, Namespace, notes, print_json, print_table, visible
from yardmaster_client.cli.secrets import own_namespace_id
from yardmaster_client.errors import PortalError
from yardmaster_client.portal import Yardmaster

app = typer.Typer(help="Apache Ignite clusters that jobs can read.", no_args_is_help=True)
Name = Annotated[str, typer.Argument(help="Name of the data connection.")]


def register(parent: typer.Typer) -> None:
    parent.add_typer(app, name="connections")


@app.command("list")
def list_connections(namespace: Namespace = None, as_json: Json = False) -> None:
    """The data connections, with how their last check ended."""
    with Yardmaster.from_environment() as portal:
        found = list(portal.connections(own_namespace_id(portal, namespace)))
    if as_json:
        print_json(found)
        return
    rows = (
        [
            one["name"],
            one["hosts"],
            "yes" if one["tls"] else "no",
            one["state"],
            (one["problem"] or {}).get("detail", ""),
        ]
        for one in found
    )
    print_table(["NAME", "HOSTS", "TLS", "CHECK", "PROBLEM"], rows)


@app.command()
def show(name: Name, namespace: Namespace = None, as_json: Json = False) -> None:
    """The caches and tables that the last check found."""
    with Yardmaster.from_environment() as portal:
        found = portal.connection(own_namespace_id(portal, namespace), name)
    if as_json:
        print_json(found)
    else:
        _tell(found)


@app.command("set")
def set_connection(
    name: Name,
    hosts: Annotated[str, typer.Option(help="HOST or HOST:PORT, separated by commas.")],
    tls: Annotated[bool, typer.Option("--tls", help="Encrypt. Needs --ca or --certificate.")] = False,
    ca: Annotated[str, typer.Option(help="Secret: the CA of the cluster, as PEM.")] = "",
    certificate: Annotated[str, typer.Option(help="Secret: a client certificate with its key, as PEM.")] = "",
    certificate_password: Annotated[str, typer.Option(help="Secret: the password of that key.")] = "",
    username: Annotated[str, typer.Option(help="Secret: the user name.")] = "",
    password: Annotated[str, typer.Option(help="Secret: the password.")] = "",
    namespace: Namespace = None,
    as_json: Json = False,
) -> None:
    """Register a cluster, or change it, and wait for the check. Secrets are given by name: see `yardmaster secrets`."""
    facts = {
        "hosts": hosts, "tls": tls, "ca": ca, "certificate": certificate,
        "certificate_password": certificate_password, "username": username, "password": password,
    }  # fmt: skip
    with Yardmaster.from_environment() as portal:
        where = own_namespace_id(portal, namespace)
        portal.connection_set(where, name, **facts)
        _wait(portal, where, name, as_json)


@app.command()
def check(name: Name, namespace: Namespace = None, as_json: Json = False) -> None:
    """Have the portal look at the cluster again, and wait for it."""
    with Yardmaster.from_environment() as portal:
        where = own_namespace_id(portal, namespace)
        portal.connection_check(where, name)
        _wait(portal, where, name, as_json)


@app.command()
def copy(
    name: Name,
    dataset: Annotated[
        str, typer.Option(help="Name of the dataset that gets a new version; created if it does not exist.")
    ],
    cache: Annotated[str, typer.Option(help="The cache whose rows are copied.")] = "",
    query: Annotated[str, typer.Option(help="The SQL query whose rows are copied, instead of --cache.")] = "",
    namespace: Namespace = None,
    as_json: Json = False,
) -> None:
    """Copy rows into a dataset as TFRecord files, and wait for it. Ctrl-C cancels the copy."""
    if bool(cache) == bool(query):
        raise typer.BadParameter("give either --cache or --query")
    wanted = {"dataset": dataset, "cache": cache, "query": query}
    with Yardmaster.from_environment() as portal:
        where = own_namespace_id(portal, namespace)
        begun = portal.connection_copy(where, name, **wanted)
        try:
            with notes().status("Copying") as shown:
                found = portal.connection_copy_wait(
                    where, name, begun["id"], lambda one: shown.update(f"Copying: {one['rows']:,} rows so far")
                )
        except KeyboardInterrupt:
            portal.connection_copy_cancel(where, name, begun["id"])
            raise
    if (problem := found["problem"]) is not None:
        raise PortalError(422, problem["code"], problem["detail"], problem["remedy"])
    if found["state"] != "ready":
        raise PortalError(409, "copy_cancelled", "The copy was cancelled.", "Start the copy again.")
    if as_json:
        print_json(found)
    else:
        notes().print(Text(visible(f"Copied {found['rows']:,} rows to the dataset {dataset}.")))


@app.command()
def copies(name: Name, namespace: Namespace = None, as_json: Json = False) -> None:
    """The copies from a data connection into datasets."""
    with Yardmaster.from_environment() as portal:
        found = list(portal.connection_copies(own_namespace_id(portal, namespace), name))
    if as_json:
        print_json(found)
        return
    rows = (
        [one["cache"] or one["query"][:60], one["dataset"], one["state"], one["rows"],
         (one["problem"] or {}).get("detail", "")]
        for one in found
    )  # fmt: skip
    print_table(["FROM", "DATASET", "STATE", "ROWS", "PROBLEM"], rows)


@app.command("delete")
def delete_connection(
    name: Name,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Delete it even if jobs still use it.")] = False,
    namespace: Namespace = None,
) -> None:
    """Delete a data connection. Nothing in the cluster is deleted."""
    if not yes:
        typer.confirm(f"Delete the data connection {name}?", abort=True, err=True)
    with Yardmaster.from_environment() as portal:
        portal.connection_delete(own_namespace_id(portal, namespace), name, force=force)
    notes().print(Text(f"Deleted {name}."))


def _why(connection: dict[str, Any]) -> str:
    return str((connection["problem"] or {}).get("detail", ""))


def _wait(portal: Yardmaster, namespace_id: str, name: str, as_json: bool) -> None:
    with notes().status("Checking"):
        found = portal.connection_wait(namespace_id, name)
    if found["state"] == "failed":
        problem = found["problem"]
        raise PortalError(422, problem["code"], problem["detail"], problem["remedy"])
    if as_json:
        print_json(found)
    else:
        _tell(found)


def _tell(connection: dict[str, Any]) -> None:
    if (problem := connection["problem"]) is not None:
        notes().print(Text(visible(f"{problem['detail']} {problem['remedy']}")))
    found = connection["found"]
    if found is None:
        return
    rows = (
        [one["name"], ", ".join(one["tables"]), one["rows"], one["partitions"],
         ", ".join(f"{column['name']} {column['type']}" for column in one["columns"][:6]) or one["problem"]]
        for one in found["caches"]
    )  # fmt: skip
    print_table(["CACHE", "TABLES", "ROWS", "PARTITIONS", "FIELDS"], rows)
