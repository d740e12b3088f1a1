"""The numbers for the columns of the two migrations before, in many short transactions: none holds a lock that keeps a
running portal waiting. Interrupted, or run again, it does what is left."""

import json
import zlib
from typing import Any

from django.db import migrations, transaction
from django.db.models import F, Sum

AT_ONCE = 200


def count(apps: Any, schema_editor: Any) -> None:
    _charge_uploads(apps.get_model("uploads", "Upload").objects)
    _sum_up(apps.get_model("uploads", "Upload").objects, apps.get_model("uploads", "StorageAccount").objects)
    _measure(apps.get_model("uploads", "FileBlock").objects)


def _charge_uploads(uploads: Any) -> None:
    """What is there already counts."""
    uncharged = uploads.filter(files_held=0, file_count__gt=0).exclude(state__in=["failed", "deleting"])
    while ids := list(uncharged.order_by("pk").values_list("pk", flat=True)[:AT_ONCE]):
        uncharged.filter(pk__in=ids).update(files_held=F("file_count"))


def _sum_up(uploads: Any, accounts: Any) -> None:
    """The account is locked before its uploads are counted: who changes one of them changes it, too."""
    for namespace_id in uploads.order_by("namespace_id").values_list("namespace_id", flat=True).distinct():
        accounts.get_or_create(namespace_id=namespace_id)
        with transaction.atomic():
            accounts.select_for_update().get(namespace_id=namespace_id)
            files = uploads.filter(namespace_id=namespace_id).aggregate(files=Sum("files_held"))["files"]
            accounts.filter(namespace_id=namespace_id).update(files=files or 0)


def _measure(blocks: Any) -> None:
    """The bytes of each block. One that was written meanwhile has them."""
    last = 0
    while rows := list(blocks.filter(pk__gt=last, size=0).order_by("pk").values_list("pk", "packed")[:AT_ONCE]):
        sizes = {pk: sum(json.loads(zlib.decompress(bytes(packed)))["size"]) for pk, packed in rows}
        with transaction.atomic():
            for pk, size in sizes.items():
                blocks.filter(pk=pk, size=0).update(size=size)
        last = rows[-1][0]


class Migration(migrations.Migration):
    atomic = False

    dependencies = [
        ("uploads", "0011_bytes_of_blocks"),
    ]

    operations = [
        migrations.RunPython(count, migrations.RunPython.noop),
    ]
