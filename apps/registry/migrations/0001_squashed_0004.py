"""As 0001 to 0004 together, for databases that have none of them."""

import django.db.models.deletion
import django.utils.timezone
from django.conf import settings
from django.db import migrations, models

import yardmaster.ids
from apps.new_models import NewModel


class Migration(migrations.Migration):
    replaces = [
        ("registry", "0001_initial"),
        ("registry", "0002_model_of_a_stopped_job"),
        ("registry", "0003_named_models"),
        ("registry", "0004_where_the_model_was"),
    ]

    initial = True

    dependencies = [
        ("jobs", "0017_outputs"),
        ("namespaces", "0001_initial"),
        ("uploads", "0007_output_kind"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        NewModel(
            name="Model",
            fields=[
                (
                    "id",
                    models.UUIDField(default=yardmaster.ids.new_id, editable=False, primary_key=True, serialize=False),
                ),
                ("name", models.CharField(max_length=100)),
                ("description", models.TextField(blank=True, max_length=10000)),
                ("latest_number", models.PositiveIntegerField(default=0)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("deleted_at", models.DateTimeField(blank=True, null=True)),
                ("updated_at", models.DateTimeField(default=django.utils.timezone.now)),
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
                    "deleted_by",
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
                    models.Index(fields=["namespace", "id"], name="model_list"),
                    models.Index(
                        condition=models.Q(("deleted_at__isnull", False)), fields=["deleted_at"], name="model_deleted"
                    ),
                ],
                "constraints": [
                    models.UniqueConstraint(
                        condition=models.Q(("deleted_at__isnull", True)),
                        fields=("namespace", "name"),
                        name="model_name_is_unique_in_namespace",
                    )
                ],
            },
        ),
        NewModel(
            name="ModelUpload",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("upload_id", models.UUIDField(unique=True)),
                ("attempt", models.PositiveIntegerField()),
                ("stopped", models.BooleanField(default=False)),
                ("found_in", models.CharField(blank=True, max_length=512)),
                (
                    "job",
                    models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name="+", to="jobs.job"),
                ),
            ],
        ),
        NewModel(
            name="ModelVersion",
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
                ("deleted_at", models.DateTimeField(blank=True, null=True)),
                ("source_job", models.UUIDField(db_index=True)),
                ("job_name", models.CharField(max_length=200)),
                ("attempt", models.PositiveIntegerField()),
                ("stopped", models.BooleanField(default=False)),
                ("source", models.JSONField(default=dict)),
                ("metrics", models.JSONField(default=list)),
                ("contents", models.JSONField(blank=True, null=True)),
                (
                    "stage",
                    models.CharField(
                        blank=True,
                        choices=[
                            ("", "No stage"),
                            ("staging", "Staging"),
                            ("production", "Production"),
                            ("archived", "Archived"),
                        ],
                        default="",
                        max_length=10,
                    ),
                ),
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
                    "deleted_by",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "job",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to="jobs.job",
                    ),
                ),
                (
                    "parent",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="versions",
                        to="registry.model",
                    ),
                ),
            ],
            options={
                "indexes": [
                    models.Index(
                        condition=models.Q(("deleted_at__isnull", False)),
                        fields=["deleted_at"],
                        name="modelversion_deleted",
                    ),
                    models.Index(
                        condition=models.Q(("contents__isnull", True)), fields=["id"], name="modelversion_unread"
                    ),
                ],
                "constraints": [
                    models.UniqueConstraint(fields=("parent", "number"), name="modelversion_numbers_are_unique"),
                    models.UniqueConstraint(
                        condition=models.Q(("stage__in", ["staging", "production"])),
                        fields=("parent", "stage"),
                        name="one_version_per_stage",
                    ),
                ],
            },
        ),
        NewModel(
            name="StageChange",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("number", models.PositiveIntegerField()),
                (
                    "before",
                    models.CharField(
                        blank=True,
                        choices=[
                            ("", "No stage"),
                            ("staging", "Staging"),
                            ("production", "Production"),
                            ("archived", "Archived"),
                        ],
                        max_length=10,
                    ),
                ),
                (
                    "after",
                    models.CharField(
                        blank=True,
                        choices=[
                            ("", "No stage"),
                            ("staging", "Staging"),
                            ("production", "Production"),
                            ("archived", "Archived"),
                        ],
                        max_length=10,
                    ),
                ),
                ("note", models.CharField(blank=True, max_length=1000)),
                ("at", models.DateTimeField()),
                (
                    "by",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "model",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="stage_changes",
                        to="registry.model",
                    ),
                ),
            ],
            options={
                "indexes": [models.Index(fields=["model", "id"], name="stage_changes_of_model")],
            },
        ),
    ]
