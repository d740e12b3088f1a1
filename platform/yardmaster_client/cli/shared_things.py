"""Options and steps of the commands for what administrators register for all namespaces or for some: images and Spark
clusters."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Annotated, Any, TypeVar

import typer

from yardmaster_client.errors import PortalError

One = TypeVar("One")
UsableBy = Annotated[
    str | None, typer.Option("--namespace", "-n", help="Only what this namespace may use: slug or ID.")
]
OnlyFor = Annotated[
    list[str] | None, typer.Option("--for", metavar="NAMESPACE", help="Only for this one. May be repeated.")
]
ForEveryone = Annotated[bool, typer.Option("--for-everyone", help="For all namespaces.")]
Enabled = Annotated[bool | None, typer.Option("--on/--off", help="Whether new jobs may use it.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")]


def given(said: Mapping[str, Any]) -> dict[str, Any]:
    """Only what was given."""
    return {name: value for name, value in said.items() if value not in (None, [])}


def changed_or_created(change: Callable[[], One], create: Callable[[], One], missing: str) -> One:
    """What `change` gives, or `create` where there is none yet. `missing`: what to say where a new one lacks something;
    empty: it lacks nothing. Raises `PortalError`, and ValueError with `missing`."""
    try:
        return change()
    except PortalError as error:
        if error.status != 404:
            raise
    if missing:
        raise ValueError(missing)
    return create()
