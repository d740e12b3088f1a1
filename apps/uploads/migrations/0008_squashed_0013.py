"""As 0008 to 0013 together, also for a database that stopped at 0007 and has uploads: their files are split and counted.
A file of its own, since `registry 0003` comes between 0007 and 0008."""

from importlib import import_module

from django.db import migrations, models
from django.db.models import deletion

from apps.new_models import NewModel, RunWhereRows

split = import_module("apps.uploads.migrations.0008_files_in_blocks").split
count = import_module("apps.uploads.migrations.0012_count_what_is_there").count
KINDS = [
    ("dataset", "Dataset"),
    ("code", "Code"),
    ("checkpoint", "Checkpoint"),
    ("model", "Model"),
    ("output", "Output"),
    ("part", "Part"),
    ("packages", "Packages"),
]


def split_and_count(apps, schema_editor):
    split(apps, schema_editor)
    count(apps, schema_editor)


class Migration(migrations.Migration):
    replaces = [
        ("uploads", "0008_files_in_blocks"),
        ("uploads", "0009_part_kind"),
        ("uploads", "0010_files_held"),
        ("uploads", "0011_bytes_of_blocks"),
        ("uploads", "0012_count_what_is_there"),
        ("uploads", "0013_packages"),
    ]

    dependencies = [
        ("namespaces", "0008_quota_of_files"),
        ("registry", "0003_named_models"),
        ("uploads", "0007_output_kind"),
    ]

    operations = [
        NewModel(
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
                ("size", models.BigIntegerField(default=0)),
            ],
            options={
                "indexes": [models.Index(fields=["upload", "first_path"], name="block_by_path")],
                "constraints": [models.UniqueConstraint(fields=("upload", "number"), name="one_block_per_number")],
            },
        ),
        migrations.AddField("upload", "is_sorted", models.BooleanField(default=False)),
        migrations.AddField("upload", "files_held", models.PositiveIntegerField(default=0)),
        migrations.AlterField("upload", "kind", models.CharField(choices=KINDS, max_length=10)),
        migrations.AddField("storageaccount", "files", models.BigIntegerField(default=0)),
        migrations.AddConstraint(
            "storageaccount",
            models.CheckConstraint(condition=models.Q(("files__gte", 0)), name="account_has_no_less_than_no_files"),
        ),
        RunWhereRows("uploads_upload", split_and_count),
        migrations.DeleteModel("Manifest"),
    ]
