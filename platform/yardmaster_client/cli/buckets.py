"""Datasets that are buckets: register one without copying, and scan it again."""

from __future__ import annotations

from typing import Annotated, Any
from urllib.parse import urlsplit

import typer
from rich.text import Text

from yardmaster_client.cli.output import Json, Namespace, notes, print_json, size
from yardmaster_client.errors import PortalError
from yardmaster_client.names import find_item
from yardmaster_client.portal import Yardmaster


def add_to(app: typer.Typer) -> None:
    """The commands of datasets that are about buckets."""
    app.command()(register)
    app.command()(rescan)


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
    parts = urlsplit(address)
    if parts.scheme != "s3" or not parts.netloc:
        raise ValueError(f"{address!r} is no bucket: write s3://bucket or s3://bucket/folder.")
    facts = {"name": name, "bucket": parts.netloc, "prefix": parts.path.strip("/"), "secret": secret, "region": region}
    with Yardmaster.from_environment() as portal:
        made = portal.bucket_register(**facts, endpoint=endpoint, namespace=namespace or "")
        _tell(portal.bucket_wait(made["id"]), as_json)


def rescan(
    reference: Annotated[str, typer.Argument(help="Name or id of a registered dataset.")],
    namespace: Namespace = None,
    as_json: Json = False,
) -> None:
    """List the bucket of a dataset again. A new version is made only if something has changed."""
    with Yardmaster.from_environment() as portal:
        item = find_item(portal.datasets, reference, namespace)
        _tell(portal.bucket_wait(portal.bucket_rescan(item.id)["id"]), as_json)


def _tell(bucket: dict[str, Any], as_json: bool) -> None:
    if bucket["state"] == "failed":
        problem = bucket["problem"]
        raise PortalError(422, problem["code"], problem["detail"], problem["remedy"])
    if as_json:
        print_json(bucket)
    else:
        found = f"{bucket['files']} objects ({size(bucket['bytes'])})"
        notes().print(Text(f"{bucket['name']} has {found} of s3://{bucket['bucket']}/{bucket['prefix']}."))
