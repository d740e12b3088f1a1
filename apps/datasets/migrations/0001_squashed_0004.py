"""As 0001 to 0004 together, for databases that have none of them."""

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

import yardmaster.ids
from apps.new_models import NewModel


class Migration(migrations.Migration):
    replaces = [
        ("datasets", "0001_initial"),
        ("datasets", "0002_files_into_manifests"),
        ("datasets", "0003_source_job"),
        ("datasets", "0004_made_datasets"),
    ]

    initial = True

    dependencies = [
        ("namespaces", "0008_quota_of_files"),
        ("uploads", "0003_files_into_manifests"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        NewModel(
            name="Dataset",
            fields=[
                (
                    "id",
                    models.UUIDField(default=yardmaster.ids.new_id, editable=False, primary_key=True, serialize=False),
                ),
                ("name", models.CharField(max_length=100)),
                ("description", models.TextField(blank=True, max_length=10000)),
                ("latest_number", models.PositiveIntegerField(default=0)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
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
                "abstract": False,
                "indexes": [models.Index(fields=["namespace", "id"], name="dataset_list")],
                "constraints": [
                    models.UniqueConstraint(fields=("namespace", "name"), name="dataset_name_is_unique_in_namespace")
                ],
            },
        ),
        NewModel(
            name="DatasetVersion",
            fields=[
                ("id", models.UUIDField(editable=False, primary_key=True, serialize=False)),
                ("number", models.PositiveIntegerField()),
                ("note", models.CharField(blank=True, max_length=1000)),
                ("upload_id", models.UUIDField(unique=True)),
                ("key_prefix", models.CharField(max_length=200)),
                ("size", models.BigIntegerField()),
                ("file_count", models.PositiveIntegerField()),
                ("added", models.PositiveIntegerField()),
                ("changed", models.PositiveIntegerField()),
                ("removed", models.PositiveIntegerField()),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("records", models.BigIntegerField(blank=True, null=True)),
                ("problems", models.JSONField(default=list)),
                ("source_job", models.UUIDField(blank=True, db_index=True, null=True)),
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
                    "parent",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="versions",
                        to="datasets.dataset",
                    ),
                ),
            ],
            options={
                "abstract": False,
                "constraints": [
                    models.UniqueConstraint(fields=("parent", "number"), name="datasetversion_numbers_are_unique")
                ],
            },
        ),
        NewModel(
            name="MadeDataset",
            fields=[
                (
                    "id",
                    models.UUIDField(default=yardmaster.ids.new_id, editable=False, primary_key=True, serialize=False),
                ),
                ("source", models.CharField(max_length=120)),
                (
                    "state",
                    models.CharField(
                        choices=[("making", "Making"), ("ready", "Ready"), ("failed", "Failed")],
                        default="making",
                        max_length=10,
                    ),
                ),
                ("problem", models.JSONField(blank=True, null=True)),
                ("received", models.BigIntegerField(default=0)),
                ("upload_id", models.UUIDField(blank=True, null=True)),
                ("version_id", models.UUIDField(blank=True, null=True)),
                ("holder", models.CharField(blank=True, max_length=36)),
                ("held_until", models.DateTimeField(blank=True, null=True)),
                ("started_at", models.DateTimeField()),
                (
                    "asked_by",
                    models.ForeignKey(
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
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="namespaces.namespace",
                    ),
                ),
            ],
            options={
                "indexes": [models.Index(fields=["state", "held_until"], name="made_dataset_under_way")],
                "constraints": [
                    models.UniqueConstraint(fields=("namespace", "source"), name="one_made_dataset_per_source")
                ],
            },
        ),
    ]
