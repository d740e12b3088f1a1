"""Datasets that the portal makes from sources that it knows."""

from __future__ import annotations

from typing import Annotated, Any

import typer
from rich.text import Text

from yardmaster_client.cli.output import Json, Namespace, notes, out, print_json, size, visible
from yardmaster_client.errors import PortalError
from yardmaster_client.portal import Yardmaster

Source = Annotated[str, typer.Argument(help="keras/NAME of keras.datasets; several: keras/imdb+mnist.")]


def make(source: Source, namespace: Namespace = None, as_json: Json = False) -> None:
    """Have the portal download a dataset of keras.datasets, once, so that jobs without a way out find it."""
    with Yardmaster.from_environment() as portal:
        begun = portal.dataset_make(source, namespace=namespace or "")
        with notes().status("Making the dataset") as status:

            def tell(made: dict[str, Any]) -> None:
                status.update(Text(visible(f"Making the dataset {made['name']}: {size(made['received'])} received")))

            made = portal.dataset_make_wait(begun["id"], tell)
    if made["state"] == "failed":
        problem = made["problem"]
        raise PortalError(422, problem["code"], problem["detail"], problem["remedy"])
    if as_json:
        print_json(made)
        return
    out().print(Text(f"{made['name']} is there. A job's script finds it with these lines of the job file:"))
    out().print(Text(f"inputs: [{{dataset: {made['name']}}}]\nenvironment: {{KERAS_HOME: $DATA_DIR}}"))
