import uuid
from collections.abc import Iterator
from typing import Any

from django.db import migrations, models
from django.db.models import deletion

from yardmaster.storage.file_list import ListedFile, pack, unpack

BLOCK = 1_000


def split(apps: Any, schema_editor: Any) -> None:
    """Every upload's files into blocks, one upload at a time; of complete ones in the order of their paths."""
    uploads, blocks = apps.get_model("uploads", "Upload"), apps.get_model("uploads", "FileBlock")
    for upload_id, state, packed in _manifests(apps):
        files = list(unpack(bytes(packed)))
        in_order = sorted(files, key=lambda file: file.path)
        if state == "complete":
            files = in_order
        blocks.objects.bulk_create(
            blocks(upload_id=upload_id, number=number, first_path=_raw(some[0]), packed=pack(some))
            for number, some in enumerate(files[at : at + BLOCK] for at in range(0, len(files), BLOCK))
        )
        uploads.objects.filter(pk=upload_id).update(is_sorted=files == in_order)


def _manifests(apps: Any) -> Iterator[tuple[uuid.UUID, str, bytes]]:
    """One at a time: each may have megabytes."""
    rows = apps.get_model("uploads", "Manifest").objects.order_by("pk")
    last = None
    while True:
        row = (rows if last is None else rows.filter(pk__gt=last)).values_list("pk", "upload__state", "packed").first()
        if row is None:
            return
        yield row
        last = row[0]


def _raw(file: ListedFile) -> bytes:
    return file.path.encode("utf-8", "surrogatepass")


class Migration(migrations.Migration):
    dependencies = [("uploads", "0007_output_kind")]

    operations = [
        migrations.AddField(
            model_name="upload",
            name="is_sorted",
            field=models.BooleanField(default=False),
        ),
        migrations.CreateModel(
            name="FileBlock",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("number", models.PositiveIntegerField()),
                ("first_path", models.BinaryField(max_length=512)),
                ("packed", models.BinaryField()),
                (
                    "upload",
                    models.ForeignKey(
                        db_index=False, on_delete=deletion.CASCADE, related_name="+", to="uploads.upload"
                    ),
                ),
            ],
            options={
                "indexes": [models.Index(fields=["upload", "first_path"], name="block_by_path")],
                "constraints": [models.UniqueConstraint(fields=("upload", "number"), name="one_block_per_number")],
            },
        ),
        migrations.RunPython(split),
        migrations.DeleteModel("Manifest"),
    ]
