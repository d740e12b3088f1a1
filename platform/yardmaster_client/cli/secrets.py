"""Secrets of a namespace: set, list, delete. A value is asked for, or read from a file or a pipe; it is never an
argument, which would stay in the shell's history."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.text import Text

from yardmaster_client.cli.output import Json, Namespace, notes, print_json, print_table, size
from yardmaster_client.names import find_namespace
from yardmaster_client.portal import Yardmaster

app = typer.Typer(help="Secrets of a namespace, for its jobs. Values cannot be read again.", no_args_is_help=True)
Name = Annotated[str, typer.Argument(help="Letters, digits and _, such as AWS_SECRET_KEY.")]

_OF_TASKS = "Tasks that start from now on get this value."


def register(parent: typer.Typer) -> None:
    parent.add_typer(app, name="secrets")


@app.command("list")
def list_secrets(namespace: Namespace = None, as_json: Json = False) -> None:
    """The names of the secrets, who changed them, and when a job last used them for the first time."""
    with Yardmaster.from_environment() as portal:
        found = list(portal.secrets(own_namespace_id(portal, namespace)))
    if as_json:
        print_json(found)
        return
    rows = ([one["name"], one["kind"], size(one["size"]), *_changed(one), one["description"]] for one in found)
    print_table(["NAME", "KIND", "SIZE", "CHANGED", "BY", "LAST USED", "DESCRIPTION"], rows)


@app.command("set")
def set_secret(
    name: Name,
    file: Annotated[Path | None, typer.Option("--file", "-f", help="Read the value from this file, unchanged.")] = None,
    bucket_keys: Annotated[
        bool, typer.Option("--bucket-keys", help="Ask for an access key and a secret key of an S3 server.")
    ] = False,
    administrators_only: Annotated[
        bool,
        typer.Option("--administrators-only", help="With --bucket-keys: members cannot register buckets with them."),
    ] = False,
    description: Annotated[str | None, typer.Option(help="What it is for. Default: unchanged.")] = None,
    namespace: Namespace = None,
) -> None:
    """Create a secret, or replace its value. The value is asked for, or read from a pipe or a file."""
    body: dict[str, Any] = {} if description is None else {"description": description}
    if administrators_only and not bucket_keys:
        raise ValueError("--administrators-only is for --bucket-keys.")
    if bucket_keys:
        keys = [_asked("Access key"), _asked("Secret key")]
        body |= {"kind": "s3_admin" if administrators_only else "s3", "access_key": keys[0], "secret_key": keys[1]}
    else:
        body["value"] = _text_of(file) if file is not None else _asked(f"Value of {name}")
    with Yardmaster.from_environment() as portal:
        portal.secret_set(own_namespace_id(portal, namespace), name, body)
    use = "Name it with `yardmaster datasets register --secret`." if bucket_keys else _OF_TASKS
    notes().print(Text(f"Secret {name} is set. {use}"))


@app.command("delete")
def delete_secret(
    name: Name,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Also if jobs or datasets still use it.")] = False,
    namespace: Namespace = None,
) -> None:
    """Delete a secret. Refused while jobs that are not over, or datasets, use it."""
    if not yes:
        typer.confirm(f"Delete the secret {name}?", abort=True, err=True)
    with Yardmaster.from_environment() as portal:
        portal.secret_delete(own_namespace_id(portal, namespace), name, force=force)
    notes().print(Text(f"Deleted {name}."))


def own_namespace_id(portal: Yardmaster, reference: str | None) -> str:
    """The namespace that is named, else one's own."""
    if reference:
        return find_namespace(portal, reference).id
    return next(one.id for one in portal.namespaces() if one.personal and one.role == "manager")


def _asked(what: str) -> str:
    """Hidden on a terminal; from a pipe one line, or for a value all of it without the last end of line."""
    if sys.stdin.isatty():
        return str(typer.prompt(what, hide_input=True, err=True))
    if what.endswith(" key"):
        return sys.stdin.readline().rstrip("\r\n")
    return sys.stdin.read().removesuffix("\n").removesuffix("\r")


def _text_of(file: Path) -> str:
    try:
        return file.read_bytes().decode()
    except UnicodeDecodeError as error:
        raise ValueError(f"{file} is not UTF-8 text. Encode it first, for instance with base64.") from error


def _changed(one: dict[str, Any]) -> list[str]:
    return [one["changed_at"][:16].replace("T", " "), one["changed_by"], (one["last_used_at"] or "never")[:16]]
