from collections.abc import Iterator
from itertools import groupby
from typing import Any

from django.db import migrations

from yardmaster.storage.file_list import ListedFile, pack

BATCH = 500


def gather(apps: Any, schema_editor: Any) -> None:
    """Every upload's files into one row, one upload at a time."""
    rows = apps.get_model("uploads", "UploadFile").objects.order_by("upload_id", "index").iterator(chunk_size=2000)
    for upload_id, files in groupby(rows, key=lambda row: row.upload_id):
        _gather_one(apps, upload_id, files)


def _gather_one(apps: Any, upload_id: Any, rows: Iterator[Any]) -> None:
    """Files are numbered from 0 without a gap; what has become of each goes into the batches while more are to come."""
    uploads = apps.get_model("uploads", "Upload").objects.filter(pk=upload_id)
    listed: list[ListedFile] = []
    batches: dict[int, Any] = {}
    is_open = uploads.values_list("state", flat=True).get() in ("open", "completing")
    for row in rows:
        found = (row.sha256, row.records, row.fault)
        listed.append(ListedFile(row.path, row.size, row.declared_sha256, *(("", None, "") if is_open else found)))
        if is_open and (row.multipart_id or row.sha256):
            batch = batches.setdefault(row.index // BATCH, ({}, {}))
            if row.multipart_id:
                batch[0][str(row.index)] = row.multipart_id
            if row.sha256:
                batch[1][str(row.index)] = list(found)
    apps.get_model("uploads", "Manifest").objects.create(upload_id=upload_id, packed=pack(listed))
    for number, (begun, found_there) in batches.items():
        apps.get_model("uploads", "FileBatch").objects.create(
            upload_id=upload_id, number=number, begun=begun, found=found_there
        )
    uploads.update(example=listed[0].path)


class Migration(migrations.Migration):
    dependencies = [("uploads", "0002_manifests")]

    operations = [migrations.RunPython(gather), migrations.DeleteModel("UploadFile")]
