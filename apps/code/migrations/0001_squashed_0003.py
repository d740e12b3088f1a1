"""As 0001 to 0003 together, for databases that have none of them."""

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

import yardmaster.ids
from apps.new_models import NewModel


class Migration(migrations.Migration):
    replaces = [("code", "0001_initial"), ("code", "0002_files_into_manifests"), ("code", "0003_from_git")]

    initial = True

    dependencies = [
        ("namespaces", "0008_quota_of_files"),
        ("uploads", "0003_files_into_manifests"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        NewModel(
            name="Code",
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
                "indexes": [models.Index(fields=["namespace", "id"], name="code_list")],
                "constraints": [
                    models.UniqueConstraint(fields=("namespace", "name"), name="code_name_is_unique_in_namespace")
                ],
            },
        ),
        NewModel(
            name="CodeImport",
            fields=[
                (
                    "id",
                    models.UUIDField(default=yardmaster.ids.new_id, editable=False, primary_key=True, serialize=False),
                ),
                ("name", models.CharField(max_length=100)),
                ("repository", models.CharField(max_length=1100)),
                ("ref", models.CharField(blank=True, max_length=300)),
                ("folder", models.CharField(blank=True, max_length=512)),
                ("secret_name", models.CharField(blank=True, max_length=128)),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("fetching", "Fetching"),
                            ("storing", "Storing"),
                            ("ready", "Ready"),
                            ("failed", "Failed"),
                        ],
                        default="fetching",
                        max_length=10,
                    ),
                ),
                ("commit", models.CharField(blank=True, max_length=64)),
                ("size", models.BigIntegerField(default=0)),
                ("notes", models.JSONField(default=dict)),
                ("problem", models.JSONField(blank=True, null=True)),
                ("upload_id", models.UUIDField(blank=True, db_index=True, null=True)),
                ("version_id", models.UUIDField(blank=True, null=True)),
                ("is_new", models.BooleanField(default=False)),
                ("tries", models.PositiveSmallIntegerField(default=0)),
                ("lease", models.UUIDField(blank=True, null=True)),
                ("leased_until", models.DateTimeField(blank=True, null=True)),
                ("created_at", models.DateTimeField()),
                ("next_look_at", models.DateTimeField(blank=True, db_index=True, null=True)),
                (
                    "created_by",
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
                        on_delete=django.db.models.deletion.CASCADE, related_name="+", to="namespaces.namespace"
                    ),
                ),
            ],
            options={
                "indexes": [models.Index(fields=["namespace", "id"], name="code_import_list")],
            },
        ),
        NewModel(
            name="CodeVersion",
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
                ("git_repository", models.CharField(blank=True, default="", max_length=1100)),
                ("git_ref", models.CharField(blank=True, default="", max_length=300)),
                ("git_folder", models.CharField(blank=True, default="", max_length=512)),
                ("git_commit", models.CharField(blank=True, db_index=True, default="", max_length=64)),
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
                        to="code.code",
                    ),
                ),
            ],
            options={
                "abstract": False,
                "constraints": [
                    models.UniqueConstraint(fields=("parent", "number"), name="codeversion_numbers_are_unique")
                ],
            },
        ),
    ]
