"""`yardmaster datasets prepare`: raw data becomes a dataset of TFRecord shards, by a job."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.text import Text

from yardmaster_client.cli import logs
from yardmaster_client.cli.job_views import verdict_of
from yardmaster_client.cli.output import Json, Namespace, notes, print_json
from yardmaster_client.models import Job
from yardmaster_client.names import find_version
from yardmaster_client.portal import Yardmaster

_UNITS = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9}


def size_of(text: str) -> int:
    """ "150M" in bytes."""
    found = re.fullmatch(r"([1-9][0-9]{0,11})([KMG]?)", text.upper())
    if found is None:
        raise typer.BadParameter(f"{text!r}: expected a size such as 150M")
    return int(found[1]) * _UNITS[found[2]]


def prepare(
    reference: Annotated[str, typer.Argument(help="The raw dataset: name, name@version or id.")],
    to: Annotated[str, typer.Option(help="The dataset that gets the new version; it is created if absent.")],
    data_format: Annotated[
        str, typer.Option("--format", help="images, text, csv, jsonl, numpy, or auto: what most files are.")
    ] = "auto",
    split: Annotated[str, typer.Option(help="train/validation, or train/validation/test, in percent.")] = "90/10",
    seed: Annotated[int, typer.Option(help="Another one splits differently.")] = 1,
    label: Annotated[str, typer.Option(help="The column of the label (csv, jsonl).")] = "",
    shard_size: Annotated[str, typer.Option(help="Of a shard before compression, such as 150M.")] = "150M",
    records_per_shard: Annotated[int, typer.Option(min=0, help="In the place of a size.")] = 0,
    gzip: Annotated[bool, typer.Option("--gzip", help="Compress the shards.")] = False,
    workers: Annotated[int, typer.Option(min=1, help="In parallel.")] = 1,
    cpu: Annotated[str, typer.Option(help="Of one worker.")] = "1",
    memory: Annotated[str, typer.Option(help="Of one worker.")] = "1536Mi",
    on_bad_record: Annotated[str, typer.Option(help="fail, or skip: leave it out and list it.")] = "fail",
    step: Annotated[
        str | None, typer.Option(help="A Python file with map_record(record); of --code, or uploaded from here.")
    ] = None,
    code: Annotated[str | None, typer.Option(help="The code that has the step: name, name@version or id.")] = None,
    note: Annotated[str, typer.Option(help="A note for the new version.")] = "",
    namespace: Namespace = None,
    engine: Annotated[str | None, typer.Option(help="Default: the portal's default.")] = None,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Show its log until it ends.")] = False,
    wait: Annotated[bool, typer.Option("--wait", help="Wait until it ends and has published.")] = False,
    as_json: Json = False,
) -> None:
    """Prepare a dataset as TFRecord shards with dataset.json. With --follow or --wait the exit code is 0 when the new
    version is there, else 1."""
    options: dict[str, Any] = {
        "format": data_format, "split": split, "seed": seed, "label": label, "shard_bytes": size_of(shard_size),
        "records_per_shard": records_per_shard, "compression": "gzip" if gzip else "none",
        "on_bad_record": on_bad_record,
    }  # fmt: skip
    with Yardmaster.from_environment() as portal:
        version = find_version(portal.datasets, reference, namespace)
        code_id, options["step"] = _step(portal, step, code, namespace)
        body: dict[str, Any] = {"to": to, "workers": workers, "cpu": cpu, "memory": memory, "options": options}
        body |= {"note": note} | ({"code": code_id} if code_id else {})
        job = portal.jobs.prepare(version.id, body, namespace=namespace, engine=engine)
        finish(portal, job, follow=follow, wait=wait, as_json=as_json)


def finish(portal: Yardmaster, job: Job, *, follow: bool, wait: bool, as_json: bool) -> None:
    """Say what was launched, follow it or wait for it where that is asked, and exit with 1 where nothing was published
    in the end."""
    if not as_json:
        notes().print(Text(f"Launched {job.name} ({job.id})."))
    if follow:
        logs.print_following(portal, job, logs.Part(), as_json=as_json)
    if follow or wait:
        job = portal.jobs.wait(job.id)
    published = portal.jobs.published(job.id, wait=job.phase == "SUCCEEDED") if follow or wait else None
    _show(job, published, as_json=as_json)
    if published is not None and published["state"] != "published":
        raise typer.Exit(1)


def _show(job: Job, published: dict[str, Any] | None, *, as_json: bool) -> None:
    """The job, or what came of it where it was waited for."""
    if as_json:
        print_json({"job": job, "published": published})
    elif published is None:
        print(job.id)  # noqa: T201 (the result, for scripts)
    else:
        notes().print(verdict_of(job))
        notes().print(Text(_words(published)))


def _step(portal: Yardmaster, step: str | None, code: str | None, namespace: str | None) -> tuple[str, str]:
    """The code version of the step, and its path there. A file of this machine is uploaded first, if it has changed."""
    if step is None:
        return "", ""
    if code is not None:
        return find_version(portal.code, code, namespace).id, step
    path = Path(step)
    if not path.is_file():
        raise typer.BadParameter(f"{step} is no file here. Name the code that has it with --code.")
    item = portal.code.put(path.stem, [path], namespace=namespace)
    if item.latest is None:
        raise typer.BadParameter(f"{step} could not be uploaded.")
    return item.latest.id, path.name


def _words(published: dict[str, Any]) -> str:
    if published["state"] == "published":
        counted = "" if published.get("records") is None else f": {published['records']:,} records"
        skipped = f", {published['skipped']:,} skipped" if published.get("skipped") else ""
        return f"{published['dataset']}@{published['number']} is there{counted}{skipped}."
    problem = published.get("problem") or {}
    return f"Nothing was published. {problem.get('detail', '')} {problem.get('remedy', '')}".strip()
