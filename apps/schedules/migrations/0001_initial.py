import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

import yardmaster.ids
from apps.new_models import NewModel


class Migration(migrations.Migration):
    initial = True

    dependencies = [
        ("jobs", "0033_labels"),
        ("namespaces", "0012_service_accounts"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        NewModel(
            name="JobTemplate",
            fields=[
                (
                    "id",
                    models.UUIDField(default=yardmaster.ids.new_id, editable=False, primary_key=True, serialize=False),
                ),
                ("name", models.CharField(max_length=100)),
                ("description", models.CharField(blank=True, max_length=500)),
                ("revision", models.PositiveIntegerField(default=1)),
                ("created_at", models.DateTimeField()),
                ("changed_at", models.DateTimeField()),
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
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="job_templates",
                        to="namespaces.namespace",
                    ),
                ),
            ],
            options={
                "constraints": [models.UniqueConstraint(fields=("namespace", "name"), name="one_template_per_name")],
            },
        ),
        NewModel(
            name="Schedule",
            fields=[
                (
                    "id",
                    models.UUIDField(default=yardmaster.ids.new_id, editable=False, primary_key=True, serialize=False),
                ),
                ("name", models.CharField(max_length=100)),
                ("values", models.JSONField(default=dict)),
                ("cron", models.CharField(max_length=100)),
                ("time_zone", models.CharField(max_length=64)),
                ("starts_at", models.DateTimeField(blank=True, null=True)),
                ("ends_at", models.DateTimeField(blank=True, null=True)),
                (
                    "overlap",
                    models.CharField(
                        choices=[("skip", "skip"), ("queue", "queue"), ("stop", "stop")], default="skip", max_length=5
                    ),
                ),
                ("grace", models.PositiveIntegerField(default=3600)),
                ("keeps", models.PositiveIntegerField(default=0)),
                ("created_at", models.DateTimeField()),
                ("next_at", models.DateTimeField(blank=True, null=True)),
                ("paused_at", models.DateTimeField(blank=True, null=True)),
                ("pause_code", models.CharField(blank=True, max_length=32)),
                ("pause_reason", models.CharField(blank=True, max_length=500)),
                ("refusals", models.PositiveIntegerField(default=0)),
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
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="schedules",
                        to="namespaces.namespace",
                    ),
                ),
                (
                    "owner",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="schedules",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "template",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="schedules",
                        to="schedules.jobtemplate",
                    ),
                ),
            ],
            options={
                "indexes": [
                    models.Index(
                        condition=models.Q(("next_at__isnull", False)), fields=["next_at"], name="schedules_due"
                    )
                ],
                "constraints": [models.UniqueConstraint(fields=("namespace", "name"), name="one_schedule_per_name")],
            },
        ),
        NewModel(
            name="ScheduleRun",
            fields=[
                (
                    "id",
                    models.UUIDField(default=yardmaster.ids.new_id, editable=False, primary_key=True, serialize=False),
                ),
                ("planned_at", models.DateTimeField()),
                ("is_asked_for", models.BooleanField(default=False)),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("waiting", "Waiting"),
                            ("launched", "Launched"),
                            ("refused", "Refused"),
                            ("skipped", "Skipped"),
                            ("missed", "Missed"),
                        ],
                        default="waiting",
                        max_length=8,
                    ),
                ),
                ("decided_at", models.DateTimeField(blank=True, null=True)),
                ("code", models.CharField(blank=True, max_length=64)),
                ("message", models.CharField(blank=True, max_length=1000)),
                ("look_at", models.DateTimeField(blank=True, null=True)),
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
                    "job",
                    models.ForeignKey(
                        null=True, on_delete=django.db.models.deletion.SET_NULL, related_name="+", to="jobs.job"
                    ),
                ),
                (
                    "schedule",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="runs",
                        to="schedules.schedule",
                    ),
                ),
            ],
            options={
                "indexes": [
                    models.Index(
                        condition=models.Q(("look_at__isnull", False)), fields=["look_at"], name="schedule_runs_due"
                    )
                ],
                "constraints": [models.UniqueConstraint(fields=("schedule", "planned_at"), name="one_run_per_time")],
            },
        ),
        NewModel(
            name="TemplateJob",
            fields=[
                (
                    "job",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="from_template",
                        serialize=False,
                        to="jobs.job",
                    ),
                ),
                ("template_name", models.CharField(max_length=100)),
                ("revision", models.PositiveIntegerField()),
                ("values", models.JSONField(default=dict)),
                (
                    "schedule",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="jobs",
                        to="schedules.schedule",
                    ),
                ),
                (
                    "template",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="jobs",
                        to="schedules.jobtemplate",
                    ),
                ),
            ],
        ),
        NewModel(
            name="TemplateRevision",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("number", models.PositiveIntegerField()),
                ("spec", models.JSONField()),
                ("engine", models.CharField(blank=True, max_length=63)),
                ("latest", models.JSONField(default=dict)),
                ("named", models.JSONField(default=dict)),
                ("parameters", models.JSONField(default=list)),
                ("at", models.DateTimeField()),
                (
                    "by",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "template",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="revisions",
                        to="schedules.jobtemplate",
                    ),
                ),
            ],
            options={
                "constraints": [models.UniqueConstraint(fields=("template", "number"), name="one_revision_per_number")],
            },
        ),
    ]
