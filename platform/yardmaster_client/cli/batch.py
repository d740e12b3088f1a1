"""`yardmaster models batch`: predictions of a model over a dataset, by a job that publishes them as a dataset."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from yardmaster_client.cli.attempts import ConfirmForeign
from yardmaster_client.cli.models import Reference
from yardmaster_client.cli.output import Json, Namespace
from yardmaster_client.cli.prepare import finish, size_of
from yardmaster_client.names import find_model_version, find_version
from yardmaster_client.portal import Yardmaster


def batch(
    reference: Reference,
    dataset: Annotated[str, typer.Option(help="Whose records are predicted: name, name@version or id.")],
    to: Annotated[str, typer.Option(help="The dataset that gets the predictions; it is created if absent.")],
    signature: Annotated[str, typer.Option(help="Another signature than the default.")] = "",
    data_format: Annotated[
        str, typer.Option("--format", help="tfrecord, csv, jsonl, images, text, numpy, or auto.")
    ] = "auto",
    split: Annotated[str, typer.Option(help="One split of a prepared dataset; default: all.")] = "",
    columns: Annotated[
        str, typer.Option(help="Columns of the inputs where names differ: x=pixels,y=a+b; x=* is the example.")
    ] = "",
    keep: Annotated[str, typer.Option(help="Columns written beside the predictions: id,label.")] = "",
    pixels: Annotated[str, typer.Option(help="Images that are decoded: 0-255 or 0-1.")] = "0-255",
    records_per_batch: Annotated[int, typer.Option("--batch", min=1, help="Records in one call of the model.")] = 64,
    write: Annotated[str, typer.Option(help="jsonl, tfrecord or tfrecord-gzip.")] = "jsonl",
    file_size: Annotated[str, typer.Option(help="Of a file of predictions, such as 150M.")] = "150M",
    most_bad: Annotated[int, typer.Option(min=0, help="Bad records that are skipped; one more fails the job.")] = 0,
    workers: Annotated[int, typer.Option(min=1, help="In parallel; they divide the files.")] = 1,
    cpu: Annotated[str | None, typer.Option(help="Of one worker.")] = None,
    memory: Annotated[str | None, typer.Option(help="Of one worker.")] = None,
    note: Annotated[str, typer.Option(help="A note for the new version.")] = "",
    namespace: Namespace = None,
    engine: Annotated[str | None, typer.Option(help="Default: the portal's default.")] = None,
    confirm_foreign_model: ConfirmForeign = False,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Show its log until it ends.")] = False,
    wait: Annotated[bool, typer.Option("--wait", help="Wait until it ends and has published.")] = False,
    as_json: Json = False,
) -> None:
    """Predict over a dataset with a version of a model. With --follow or --wait the exit code is 0 when the predictions
    are there, else 1."""
    options: dict[str, Any] = {
        "signature": signature, "format": data_format, "split": split, "columns": columns, "keep": keep,
        "pixels": pixels, "batch": records_per_batch, "write": write, "shard_bytes": size_of(file_size),
        "most_bad": most_bad,
    }  # fmt: skip
    with Yardmaster.from_environment() as portal:
        version = find_model_version(portal, reference, namespace)
        data = find_version(portal.datasets, dataset, namespace)
        body: dict[str, Any] = {"dataset_version": data.id, "to": to, "workers": workers, "note": note}
        asked = {"cpu": cpu, "memory": memory, "confirm_foreign_model": confirm_foreign_model or None}
        body |= {"options": options, **{name: value for name, value in asked.items() if value is not None}}
        job = portal.jobs.predict_over(version.id, body, namespace=namespace, engine=engine)
        finish(portal, job, follow=follow, wait=wait, as_json=as_json)
