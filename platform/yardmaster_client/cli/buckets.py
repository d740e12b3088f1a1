"""Datasets that are buckets: register one without copying, and scan it again."""

from __future__ import annotations

from typing import Annotated, Any

import typer
from rich.text import Text

from yardmaster_client.cli.output import Json, Namespace, notes, print_json, print_table, size, visible
from yardmaster_client.errors import PortalError
from yardmaster_client.models import Dataset
from yardmaster_client.names import find_item
from yardmaster_client.portal import Yardmaster


def add_to(app: typer.Typer) -> None:
    """The commands of datasets that are about buckets."""
    app.command()(register)
    app.command()(rescan)
    app.command("buckets")(list_buckets)


def register(
    address: Annotated[str, typer.Argument(help="s3://bucket or s3://bucket/folder.")],
    name: Annotated[str, typer.Option(help="Of the dataset.")],
    secret: Annotated[str, typer.Option(help="The credentials: see `yardmaster secrets set --bucket-keys`.")],
    endpoint: Annotated[str, typer.Option(help="The S3 server. Default: the one that the portal allows.")] = "",
    region: Annotated[str, typer.Option(help="Its region.")] = "us-east-1",
    namespace: Namespace = None,
    as_json: Json = False,
) -> None:
    """Make a bucket, or a folder in it, a dataset. Its objects are listed and not copied."""
    bucket, prefix = _parts_of(address)
    facts = {"name": name, "bucket": bucket, "prefix": prefix, "secret": secret, "region": region}
    with Yardmaster.from_environment() as portal:
        made = portal.bucket_register(**facts, endpoint=endpoint, namespace=namespace or "")
        _tell(_waited(portal, made["id"]), as_json)


def rescan(
    reference: Annotated[str, typer.Argument(help="Name or id of a registered dataset.")],
    secret: Annotated[str, typer.Option(help="Other credentials to read it with from now on.")] = "",
    namespace: Namespace = None,
    as_json: Json = False,
) -> None:
    """List the bucket of a dataset again. A new version is made only if something has changed."""
    with Yardmaster.from_environment() as portal:
        item = find_item(portal.datasets, reference, namespace)
        _tell(_waited(portal, portal.bucket_rescan(item.id, secret=secret)["id"]), as_json)
        if not as_json:
            _tell_version(item, portal.datasets.get(item.id))


def list_buckets(as_json: Json = False) -> None:
    """The registered buckets, with how their last scan has ended."""
    with Yardmaster.from_environment() as portal:
        found = list(portal.buckets())
    if as_json:
        print_json(found)
        return
    rows = (
        [one["name"], one["namespace"], f"s3://{one['bucket']}/{one['prefix']}", one["endpoint"],
         one["secret"] or "(deleted)", one["state"], one["files"], size(one["bytes"]), one["left_out"]]
        for one in found
    )  # fmt: skip
    columns = ["NAME", "NAMESPACE", "BUCKET", "SERVER", "SECRET", "SCAN", "OBJECTS", "SIZE", "LEFT OUT"]
    print_table(columns, rows)


def _parts_of(address: str) -> tuple[str, str]:
    """Bucket and folder. The address is no URL: `#`, `?` and `%` are signs like others."""
    scheme, _, rest = address.partition("://")
    bucket, _, prefix = rest.partition("/")
    if scheme.lower() != "s3" or not bucket:
        raise ValueError(f"{address!r} is no bucket: write s3://bucket or s3://bucket/folder.")
    return bucket, prefix.strip("/")


def _waited(portal: Yardmaster, bucket_id: str) -> dict[str, Any]:
    """The bucket when its scan has ended, with progress on stderr; what is tried again is said once."""
    said = ""
    with notes().status("Scanning") as status:

        def tell(bucket: dict[str, Any]) -> None:
            nonlocal said
            status.update(Text(visible(f"Scanning: {bucket['files']:,} objects so far")))
            why = (bucket["problem"] or {}).get("detail", "")
            if bucket["state"] == "scanning" and why and why != said:
                said = why
                notes().print(Text(visible(f"{why} The scan continues in a moment.")), style="dim")

        return portal.bucket_wait(bucket_id, tell)


def _tell_version(before: Dataset, now: Dataset) -> None:
    old, new = (one.latest.number if one.latest else 0 for one in (before, now))
    is_new = f"{now.name}@{new} is there."
    notes().print(Text(is_new if new > old else f"Nothing has changed: {now.name}@{new} is still the newest version."))


def _tell(bucket: dict[str, Any], as_json: bool) -> None:
    if bucket["state"] == "failed":
        problem = bucket["problem"]
        raise PortalError(422, problem["code"], problem["detail"], problem["remedy"])
    if as_json:
        print_json(bucket)
    else:
        found = f"{bucket['files']} objects ({size(bucket['bytes'])})"
        if bucket["left_out"]:
            rows = ([one["path"], one["reason"]] for one in bucket["left_out_first"])
            print_table(["LEFT OUT", "REASON"], rows, as_note=True)
            more = bucket["left_out"] - len(bucket["left_out_first"])
            notes().print(
                Text(
                    f"{bucket['left_out']:,} objects are left out" + (f", {more:,} of them not shown." if more else ".")
                )
            )
        notes().print(Text(f"{bucket['name']} has {found} of s3://{bucket['bucket']}/{bucket['prefix']}."))
