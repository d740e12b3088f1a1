"""`yardmaster models serve`, `predict`, `batch`, `stop` and `served`: models behind TensorFlow Serving's REST API."""

from __future__ import annotations

import json
import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.text import Text

from yardmaster_client.cli.attempts import ConfirmForeign
from yardmaster_client.cli.batch import batch
from yardmaster_client.cli.models import Reference, app
from yardmaster_client.cli.output import Json, Namespace, notes, out, print_json, print_table, seconds_of
from yardmaster_client.names import find_model_version
from yardmaster_client.portal import Yardmaster
from yardmaster_client.services import Service


class Method(StrEnum):
    """Methods of signatures."""

    PREDICT = "predict"
    CLASSIFY = "classify"
    REGRESS = "regress"


def register(parent: typer.Typer) -> None:
    """Among the commands of models; those of the whole command are left as they are."""
    for command in (serve, predict, batch, stop, served):
        app.command()(command)


def serve(
    reference: Reference,
    idle: Annotated[str | None, typer.Option("--for", help="Stop after this long without a request: 30m, 2h.")] = None,
    wait: Annotated[bool, typer.Option("--wait", help="Return when it is ready.")] = False,
    memory: Annotated[str | None, typer.Option(help="Memory that the server requests: 2Gi.")] = None,
    cpu: Annotated[float | None, typer.Option(help="Cores that the server requests.")] = None,
    engine: Annotated[str | None, typer.Option(help="The engine to run it on. Default: the portal's.")] = None,
    confirm_foreign_model: ConfirmForeign = False,
    namespace: Namespace = None,
    as_json: Json = False,
) -> None:
    """Serve a version of a model in its namespace's quota. One that is served already keeps its size; --for counts from
    now."""
    with Yardmaster.from_environment() as portal:
        version = find_model_version(portal, reference, namespace)
        limit = None if idle is None else seconds_of(idle)
        more = {"confirm_foreign_model": True} if confirm_foreign_model else {}
        size = {"memory": int(memory) if memory and memory.isdigit() else memory, "cpu": cpu, "engine": engine}
        found = portal.services.start(version.id, idle_limit=limit, **size, **more)
        if wait:
            found = portal.services.wait(found.id, each=None if as_json else _Reported())
        address = f"{portal.transport.url}{found.url}/v1/models/{found.model_name}:predict"
    if as_json:
        print_json(found)
    else:
        _show(found, address)
    if wait and found.state != "ready":
        raise typer.Exit(1)


class _Reported:
    """Says each state once."""

    def __init__(self) -> None:
        self._last = ""

    def __call__(self, service: Service) -> None:
        words = f"{service.state} {service.message}".strip()
        if words != self._last:
            notes().print(Text(words))
        self._last = words


def _show(service: Service, address: str) -> None:
    out().print(Text(f"{service.model_name}@{service.number} is {service.state}. {service.message}".strip()))
    if service.remedy:
        notes().print(Text(service.remedy, style="dim"))
    if service.runs:
        notes().print(Text(f"It answers at {address}", style="dim"))


def predict(
    reference: Reference,
    source: Annotated[str, typer.Option("--input", help="A JSON file, - for stdin, or the JSON itself.")],
    signature: Annotated[str | None, typer.Option(help="Another signature than the default.")] = None,
    method: Annotated[Method, typer.Option(help="For signatures of this method.")] = Method.PREDICT,
    namespace: Namespace = None,
) -> None:
    """Predictions of a version that is served. The input is {"instances": […]}, {"inputs": …}, or a list of rows; to
    classify and regress {"examples": […]}, or a list of examples."""
    body = _body(source, signature, "instances" if method is Method.PREDICT else "examples")
    with Yardmaster.from_environment() as portal:
        version = find_model_version(portal, reference, namespace)
        print_json(portal.services.predict(version.id, body, method=method.value))


def _body(source: str, signature: str | None, rows: str = "instances") -> dict[str, Any]:
    if source == "-":
        text = sys.stdin.read()
    elif source.lstrip().startswith(("{", "[")):
        text = source
    else:
        text = _file(source)
    try:
        found = json.loads(text)
    except ValueError as error:
        raise typer.BadParameter(f"The input is not JSON: {error}") from None
    body = {rows: found} if isinstance(found, list) else found
    if not isinstance(body, dict):
        raise typer.BadParameter(f'Write {{"{rows}": […]}}, or a list of rows.')
    return body if signature is None else {**body, "signature_name": signature}


def _file(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8")
    except FileNotFoundError:
        remedy = "Name a JSON file, or write the JSON itself: '[…]' is a list of rows, '{\"inputs\": …}' names inputs."
        raise typer.BadParameter(f"There is no file {path!r}. {remedy}") from None


def stop(reference: Reference, namespace: Namespace = None) -> None:
    """Stop serving a version. Its quota is returned."""
    with Yardmaster.from_environment() as portal:
        version = find_model_version(portal, reference, namespace)
        service = portal.services.of(version.id)
        if service is None:
            notes().print(Text("It is not served."))
            return
        portal.services.stop(service.id)
        notes().print(Text(f"Stopping {service.model_name}@{service.number}."))


def served(namespace: Namespace = None, as_json: Json = False) -> None:
    """Models that are served now."""
    with Yardmaster.from_environment() as portal:
        found = list(portal.services.list(namespace=namespace))
    if as_json:
        print_json(found)
        return
    rows = ([f"{one.model_name}@{one.number}", one.state, one.requests, one.last_used_at, one.id] for one in found)
    print_table(["MODEL", "STATE", "REQUESTS", "LAST USED", "ID"], rows)
