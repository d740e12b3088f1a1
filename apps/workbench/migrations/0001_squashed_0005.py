"""As 0001 to 0005 together, for databases that have none of them."""

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

import yardmaster.ids
from apps.new_models import NewModel


class Migration(migrations.Migration):
    replaces = [
        ("workbench", "0001_initial"),
        ("workbench", "0002_homes"),
        ("workbench", "0003_tokens_and_problems"),
        ("workbench", "0004_requests_of_services"),
        ("workbench", "0005_packages"),
    ]

    initial = True

    dependencies = [
        ("jobs", "0023_volume_identity"),
        ("namespaces", "0008_quota_of_files"),
        ("sessions", "0001_initial"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
        migrations.swappable_dependency(settings.KNOX_TOKEN_MODEL),
    ]

    operations = [
        NewModel(
            name="WorkbenchSession",
            fields=[
                (
                    "id",
                    models.UUIDField(default=yardmaster.ids.new_id, editable=False, primary_key=True, serialize=False),
                ),
                ("idle_seconds", models.PositiveIntegerField()),
                ("started_at", models.DateTimeField()),
                ("ready_at", models.DateTimeField(blank=True, null=True)),
                ("last_used_at", models.DateTimeField(blank=True, null=True)),
                ("stopped_idle", models.BooleanField(default=False)),
                ("starts", models.PositiveIntegerField(default=0)),
                (
                    "kind",
                    models.CharField(
                        choices=[("tensorboard", "TensorBoard"), ("jupyter", "JupyterLab")], max_length=16
                    ),
                ),
                ("subject", models.CharField(max_length=80)),
                ("job_ids", models.JSONField(default=list)),
                ("size", models.CharField(max_length=32)),
                ("token_start", models.PositiveIntegerField(default=0)),
                ("requirements", models.JSONField(blank=True, default=list)),
                ("again", models.JSONField(blank=True, null=True)),
                ("problem", models.CharField(blank=True, default="", max_length=500)),
                (
                    "job",
                    models.OneToOneField(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to="jobs.job",
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
                (
                    "owner",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "started_by",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "taken_over_by",
                    models.ForeignKey(
                        blank=True,
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "token",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to=settings.KNOX_TOKEN_MODEL,
                    ),
                ),
            ],
            options={
                "abstract": False,
                "indexes": [models.Index(fields=["namespace", "id"], name="workbenchsession_list")],
                "constraints": [
                    models.UniqueConstraint(fields=("namespace", "kind", "subject"), name="one_session_per_subject")
                ],
            },
        ),
        NewModel(
            name="Entrance",
            fields=[
                (
                    "id",
                    models.UUIDField(default=yardmaster.ids.new_id, editable=False, primary_key=True, serialize=False),
                ),
                ("cookie_digest", models.CharField(blank=True, max_length=64, null=True, unique=True)),
                ("made_at", models.DateTimeField()),
                (
                    "sign_in",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="+", to="sessions.session"
                    ),
                ),
                (
                    "user",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "session",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="entrances",
                        to="workbench.workbenchsession",
                    ),
                ),
            ],
            options={
                "indexes": [models.Index(fields=["made_at"], name="entrance_made")],
            },
        ),
        NewModel(
            name="Home",
            fields=[
                (
                    "id",
                    models.UUIDField(default=yardmaster.ids.new_id, editable=False, primary_key=True, serialize=False),
                ),
                ("engine", models.CharField(max_length=63)),
                ("size", models.BigIntegerField()),
                ("is_measured", models.BooleanField()),
                ("is_whole", models.BooleanField(default=True)),
                ("goes", models.BooleanField(default=False)),
                ("message", models.TextField(blank=True)),
                ("next_look_at", models.DateTimeField(blank=True, db_index=True, null=True)),
                ("setbacks", models.PositiveIntegerField(default=0)),
                (
                    "namespace",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="namespaces.namespace",
                    ),
                ),
                (
                    "owner",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="+", to=settings.AUTH_USER_MODEL
                    ),
                ),
            ],
            options={
                "verbose_name_plural": "kept files of Jupyters",
                "constraints": [
                    models.UniqueConstraint(fields=("namespace", "engine", "owner"), name="one_home_per_user")
                ],
            },
        ),
    ]
