"""As 0001 to 0007 together, for databases that have none of them."""

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

import yardmaster.ids
from apps.new_models import NewModel


class Migration(migrations.Migration):
    replaces = [
        ("uploads", "0001_initial"),
        ("uploads", "0002_manifests"),
        ("uploads", "0003_files_into_manifests"),
        ("uploads", "0004_tombstones"),
        ("uploads", "0005_logs_within_storage"),
        ("uploads", "0006_addresses_of_whole_objects"),
        ("uploads", "0007_output_kind"),
    ]

    initial = True

    dependencies = [
        ("namespaces", "0001_initial"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        NewModel(
            name="Upload",
            fields=[
                (
                    "id",
                    models.UUIDField(default=yardmaster.ids.new_id, editable=False, primary_key=True, serialize=False),
                ),
                (
                    "kind",
                    models.CharField(
                        choices=[
                            ("dataset", "Dataset"),
                            ("code", "Code"),
                            ("checkpoint", "Checkpoint"),
                            ("model", "Model"),
                            ("output", "Output"),
                        ],
                        max_length=10,
                    ),
                ),
                ("job_id", models.UUIDField(blank=True, db_index=True, null=True)),
                ("target_id", models.UUIDField(default=yardmaster.ids.new_id, unique=True)),
                ("key_prefix", models.CharField(max_length=200, unique=True)),
                ("part_size", models.BigIntegerField()),
                ("file_count", models.PositiveIntegerField()),
                ("held", models.BigIntegerField()),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("open", "Open"),
                            ("completing", "Completing"),
                            ("complete", "Complete"),
                            ("failed", "Failed"),
                            ("deleting", "Deleting"),
                        ],
                        default="open",
                        max_length=10,
                    ),
                ),
                ("unpack", models.BooleanField(default=False)),
                ("unpacked", models.BooleanField(default=False)),
                ("problem", models.JSONField(blank=True, null=True)),
                ("bytes_checked", models.BigIntegerField(default=0)),
                ("lease", models.UUIDField(blank=True, null=True)),
                ("leased_until", models.DateTimeField(blank=True, null=True)),
                ("used", models.BooleanField(default=False)),
                ("created_at", models.DateTimeField()),
                ("touched_at", models.DateTimeField()),
                ("example", models.CharField(blank=True, max_length=512)),
                ("writable_until", models.DateTimeField(blank=True, null=True)),
                (
                    "created_by",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "namespace",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="namespaces.namespace",
                    ),
                ),
            ],
            options={
                "indexes": [
                    models.Index(fields=["namespace", "id"], name="upload_list"),
                    models.Index(condition=models.Q(("used", False)), fields=["touched_at"], name="upload_expiry"),
                    models.Index(condition=models.Q(("used", False)), fields=["namespace"], name="upload_unused"),
                    models.Index(
                        condition=models.Q(("used", False)), fields=["created_by"], name="upload_unused_of_user"
                    ),
                ],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("held__gte", 0)), name="upload_holds_no_less_than_nothing"
                    )
                ],
            },
        ),
        NewModel(
            name="Tombstone",
            fields=[
                ("prefix", models.CharField(max_length=200, primary_key=True, serialize=False)),
                ("removed_at", models.DateTimeField()),
                ("again_at", models.DateTimeField(db_index=True)),
            ],
        ),
        NewModel(
            name="Manifest",
            fields=[
                (
                    "upload",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="+",
                        serialize=False,
                        to="uploads.upload",
                    ),
                ),
                ("packed", models.BinaryField()),
            ],
        ),
        NewModel(
            name="FileBatch",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("number", models.PositiveIntegerField()),
                ("begun", models.JSONField(default=dict)),
                ("found", models.JSONField(default=dict)),
                (
                    "upload",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="uploads.upload",
                    ),
                ),
            ],
            options={
                "constraints": [models.UniqueConstraint(fields=("upload", "number"), name="one_batch_per_number")],
            },
        ),
        NewModel(
            name="StorageAccount",
            fields=[
                (
                    "namespace",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="+",
                        serialize=False,
                        to="namespaces.namespace",
                    ),
                ),
                ("used", models.BigIntegerField(default=0)),
                ("reserved", models.BigIntegerField(default=0)),
                ("logs", models.BigIntegerField(default=0)),
            ],
            options={
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("used__gte", 0), ("reserved__gte", 0)),
                        name="account_holds_no_less_than_nothing",
                    )
                ],
            },
        ),
    ]
