"""As 0001 to 0043 together, for databases that have none of them."""

import django.core.serializers.json
import django.core.validators
import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

import yardmaster.ids
import yardmaster.lifecycle.phases
from apps.new_models import NewModel


class Migration(migrations.Migration):
    replaces = [
        ("jobs", "0001_initial"),
        ("jobs", "0002_usage_over_time"),
        ("jobs", "0003_decided"),
        ("jobs", "0004_in_graph_strategy"),
        ("jobs", "0005_what_lists_show"),
        ("jobs", "0006_queue_passes"),
        ("jobs", "0007_engine_away"),
        ("jobs", "0008_usage_survives"),
        ("jobs", "0009_log_bytes"),
        ("jobs", "0010_tasks_of_reservations"),
        ("jobs", "0011_refusals"),
        ("jobs", "0012_engine_reach"),
        ("jobs", "0013_engine_probes"),
        ("jobs", "0014_leadership_moves"),
        ("jobs", "0015_job_inputs"),
        ("jobs", "0016_cleaned_up"),
        ("jobs", "0017_outputs"),
        ("jobs", "0018_batch_strategy"),
        ("jobs", "0019_publications"),
        ("jobs", "0020_service_strategy"),
        ("jobs", "0021_volumes"),
        ("jobs", "0022_attempt_begun_by"),
        ("jobs", "0023_volume_identity"),
        ("jobs", "0024_watched_until"),
        ("jobs", "0025_task_shells"),
        ("jobs", "0026_shell_commands"),
        ("jobs", "0027_packages"),
        ("jobs", "0028_stacks_asked"),
        ("jobs", "0029_resume_and_not_finite"),
        ("jobs", "0030_holds"),
        ("jobs", "0031_usage_indexes"),
        ("jobs", "0032_priority_class"),
        ("jobs", "0033_labels"),
        ("jobs", "0034_preemption"),
        ("jobs", "0035_advance_reservations"),
        ("jobs", "0036_metrics"),
        ("jobs", "0037_launch_presets"),
        ("jobs", "0038_engines_now"),
        ("jobs", "0039_wait_estimates"),
        ("jobs", "0040_place_in_turn"),
        ("jobs", "0041_retention"),
        ("jobs", "0042_indexes_of_lists"),
        ("jobs", "0043_reservations_of_groups"),
    ]

    initial = True

    dependencies = [
        ("namespaces", "0014_preemption_of_classes"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        NewModel(
            name="AdmissionLock",
            fields=[
                ("id", models.PositiveSmallIntegerField(default=1, primary_key=True, serialize=False)),
            ],
        ),
        NewModel(
            name="EngineNow",
            fields=[
                ("engine", models.CharField(max_length=63, primary_key=True, serialize=False)),
                ("answers", models.BooleanField(blank=True, null=True)),
                ("since", models.DateTimeField(blank=True, null=True)),
                ("asked_at", models.DateTimeField(blank=True, null=True)),
                ("answered_at", models.DateTimeField(blank=True, null=True)),
                ("message", models.TextField(blank=True)),
                ("remedy", models.TextField(blank=True)),
                ("total", models.JSONField(blank=True, default=dict)),
                ("free", models.JSONField(blank=True, default=dict)),
                ("used", models.JSONField(blank=True, default=dict)),
                ("machine_count", models.PositiveIntegerField(default=0)),
                ("machines", models.JSONField(blank=True, default=list)),
                ("next_at", models.DateTimeField(db_index=True)),
            ],
        ),
        NewModel(
            name="Job",
            fields=[
                (
                    "id",
                    models.UUIDField(default=yardmaster.ids.new_id, editable=False, primary_key=True, serialize=False),
                ),
                ("name", models.CharField(max_length=200)),
                ("note", models.TextField(blank=True, db_default="", default="")),
                ("tags", models.JSONField(blank=True, db_default=[], default=list)),
                ("archived_at", models.DateTimeField(blank=True, null=True)),
                ("engine", models.CharField(max_length=63)),
                (
                    "strategy",
                    models.CharField(
                        choices=[
                            ("single", "single"),
                            ("between_graph", "between_graph"),
                            ("parameter_server", "parameter_server"),
                            ("multi_worker_mirrored", "multi_worker_mirrored"),
                            ("in_graph", "in_graph"),
                            ("batch", "batch"),
                            ("service", "service"),
                        ],
                        max_length=32,
                    ),
                ),
                ("priority", models.IntegerField(default=0)),
                ("priority_class", models.CharField(blank=True, db_default="", default="", max_length=63)),
                ("needs", models.JSONField()),
                ("replicas", models.JSONField(default=dict)),
                ("named_values", models.JSONField(blank=True, db_default={}, default=dict)),
                ("reclaim_delay", models.PositiveIntegerField(default=0)),
                ("spec", models.JSONField()),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                (
                    "place",
                    models.GeneratedField(db_persist=True, expression=models.F("id"), output_field=models.UUIDField()),
                ),
                (
                    "wanted",
                    models.CharField(
                        choices=[("RUN", "RUN"), ("STOP", "STOP")],
                        default=yardmaster.lifecycle.phases.Wanted["RUN"],
                        max_length=4,
                    ),
                ),
                (
                    "phase",
                    models.CharField(
                        choices=[
                            ("QUEUED", "QUEUED"),
                            ("STARTING", "STARTING"),
                            ("RUNNING", "RUNNING"),
                            ("STOPPING", "STOPPING"),
                            ("SUCCEEDED", "SUCCEEDED"),
                            ("FAILED", "FAILED"),
                            ("STOPPED", "STOPPED"),
                        ],
                        default=yardmaster.lifecycle.phases.Phase["QUEUED"],
                        max_length=9,
                    ),
                ),
                ("attempt", models.PositiveIntegerField(default=1)),
                ("resumes_from", models.PositiveIntegerField(db_default=1, default=1)),
                ("reason", models.CharField(blank=True, max_length=63)),
                ("message", models.TextField(blank=True)),
                ("remedy", models.TextField(blank=True)),
                (
                    "waiting",
                    models.JSONField(blank=True, default=dict, encoder=django.core.serializers.json.DjangoJSONEncoder),
                ),
                ("position", models.PositiveIntegerField(blank=True, null=True)),
                ("turn_at", models.DateTimeField(blank=True, null=True)),
                ("place_at", models.DateTimeField(blank=True, null=True)),
                ("waiting_digest", models.CharField(blank=True, max_length=24)),
                ("progress", models.JSONField(blank=True, default=dict)),
                ("progress_at", models.DateTimeField(blank=True, null=True)),
                ("steps_per_second", models.FloatField(blank=True, null=True)),
                ("queued_at", models.DateTimeField()),
                ("admitted_at", models.DateTimeField(blank=True, null=True)),
                ("started_at", models.DateTimeField(blank=True, null=True)),
                ("stop_sent_at", models.DateTimeField(blank=True, null=True)),
                ("preempted_at", models.DateTimeField(blank=True, null=True)),
                ("decided_at", models.DateTimeField(blank=True, null=True)),
                ("released_at", models.DateTimeField(blank=True, null=True)),
                ("cleaned_up_at", models.DateTimeField(blank=True, null=True)),
                ("submitted_at", models.DateTimeField(blank=True, null=True)),
                ("failing_since", models.DateTimeField(blank=True, null=True)),
                ("returns", models.PositiveIntegerField(db_default=0, default=0)),
                ("held_back_until", models.DateTimeField(blank=True, null=True)),
                ("refusals", models.PositiveIntegerField(db_default=0, default=0)),
                ("refused_at", models.DateTimeField(blank=True, null=True)),
                ("hindered_since", models.DateTimeField(blank=True, null=True)),
                ("lease_owner", models.CharField(blank=True, max_length=32)),
                ("lease_until", models.DateTimeField(blank=True, null=True)),
                ("wake_again", models.BooleanField(default=False)),
                ("setbacks", models.PositiveIntegerField(default=0)),
                ("next_look_at", models.DateTimeField(blank=True, null=True)),
                ("request_key", models.CharField(blank=True, max_length=100, null=True, unique=True)),
                ("watched_until", models.DateTimeField(blank=True, null=True)),
                ("deleted_at", models.DateTimeField(blank=True, null=True)),
                (
                    "namespace",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="jobs",
                        to="namespaces.namespace",
                    ),
                ),
                (
                    "owner",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="jobs",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "indexes": [
                    models.Index(fields=["namespace", "place"], name="job_list"),
                    models.Index(
                        condition=models.Q(("archived_at__isnull", True)),
                        fields=["namespace", "place"],
                        name="job_list_current",
                    ),
                    models.Index(
                        condition=models.Q(("archived_at__isnull", False)),
                        fields=["namespace", "place"],
                        name="job_list_archived",
                    ),
                    models.Index(fields=["namespace", "phase", "place"], name="job_list_phase"),
                    models.Index(fields=["namespace", "strategy", "place"], name="job_list_strategy"),
                    models.Index(fields=["namespace", "owner", "place"], name="job_list_owner"),
                    models.Index(
                        condition=models.Q(("decided_at__isnull", False)),
                        fields=["namespace", "decided_at"],
                        name="job_decided",
                    ),
                    models.Index(
                        condition=models.Q(
                            ("archived_at__isnull", True),
                            ("deleted_at__isnull", True),
                            models.Q(("strategy", "service"), _negated=True),
                        ),
                        fields=["namespace", "id"],
                        name="job_shown",
                    ),
                    models.Index(fields=["owner", "id"], name="job_all_owner"),
                    models.Index(fields=["phase", "id"], name="job_all_phase"),
                    models.Index(fields=["strategy", "id"], name="job_all_strategy"),
                    models.Index(
                        condition=models.Q(("next_look_at__isnull", False)), fields=["next_look_at"], name="job_due"
                    ),
                    models.Index(
                        condition=models.Q(("phase", "QUEUED")), fields=["engine", "queued_at"], name="job_queue"
                    ),
                ],
            },
        ),
        NewModel(
            name="PreemptionPolicy",
            fields=[
                ("engine", models.CharField(max_length=63, primary_key=True, serialize=False)),
                ("is_on", models.BooleanField(default=False)),
                (
                    "least_minutes",
                    models.PositiveIntegerField(
                        default=10,
                        validators=[
                            django.core.validators.MinValueValidator(1),
                            django.core.validators.MaxValueValidator(10080),
                        ],
                    ),
                ),
                (
                    "most_a_day",
                    models.PositiveIntegerField(
                        default=3,
                        validators=[
                            django.core.validators.MinValueValidator(1),
                            django.core.validators.MaxValueValidator(100),
                        ],
                    ),
                ),
            ],
        ),
        NewModel(
            name="QueuePass",
            fields=[
                ("engine", models.CharField(max_length=63, primary_key=True, serialize=False)),
                ("asked", models.BooleanField(default=False)),
                ("next_at", models.DateTimeField(blank=True, null=True)),
                ("lease_owner", models.CharField(blank=True, max_length=32)),
                ("lease_until", models.DateTimeField(blank=True, null=True)),
                ("setbacks", models.PositiveIntegerField(default=0)),
                ("refreshed_at", models.DateTimeField(blank=True, null=True)),
                ("estimate_at", models.DateTimeField(blank=True, null=True)),
            ],
        ),
        NewModel(
            name="ReplacedOutputs",
            fields=[
                ("upload_id", models.UUIDField(primary_key=True, serialize=False)),
                ("paths", models.JSONField(default=list)),
                ("due_at", models.DateTimeField(db_index=True)),
            ],
        ),
        NewModel(
            name="EngineProbe",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("engine", models.CharField(max_length=63)),
                ("probe", models.CharField(max_length=16)),
                ("settings_digest", models.CharField(blank=True, max_length=64)),
                ("is_well", models.BooleanField(blank=True, null=True)),
                ("failures", models.PositiveIntegerField(default=0)),
                ("message", models.TextField(blank=True)),
                ("remedy", models.TextField(blank=True)),
                ("tried_at", models.DateTimeField(blank=True, null=True)),
                ("next_at", models.DateTimeField()),
            ],
            options={
                "constraints": [models.UniqueConstraint(fields=("engine", "probe"), name="one_row_per_probe")],
            },
        ),
        NewModel(
            name="EngineSample",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("engine", models.CharField(max_length=63)),
                ("at", models.DateTimeField()),
                ("total", models.JSONField(default=dict)),
                ("free", models.JSONField(default=dict)),
                ("reserved", models.JSONField(default=dict)),
                ("used", models.JSONField(default=dict)),
            ],
            options={
                "constraints": [models.UniqueConstraint(fields=("engine", "at"), name="one_sample_at_a_time")],
            },
        ),
        NewModel(
            name="Hold",
            fields=[
                (
                    "id",
                    models.UUIDField(default=yardmaster.ids.new_id, editable=False, primary_key=True, serialize=False),
                ),
                ("engine", models.CharField(blank=True, max_length=63)),
                (
                    "cause",
                    models.CharField(
                        choices=[("administrator", "Administrator"), ("budget", "Budget")],
                        default="administrator",
                        max_length=16,
                    ),
                ),
                ("reason", models.CharField(blank=True, max_length=300)),
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
                    "namespace",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="holds",
                        to="namespaces.namespace",
                    ),
                ),
                (
                    "job",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="holds",
                        to="jobs.job",
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        condition=models.Q(("engine", ""), _negated=True),
                        fields=("engine", "cause"),
                        name="one_hold_per_engine",
                    ),
                    models.UniqueConstraint(
                        condition=models.Q(("namespace__isnull", False)),
                        fields=("namespace", "cause"),
                        name="one_hold_per_namespace",
                    ),
                    models.UniqueConstraint(
                        condition=models.Q(("job__isnull", False)), fields=("job", "cause"), name="one_hold_per_job"
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(models.Q(("engine", ""), _negated=True), ("job", None), ("namespace", None)),
                            models.Q(("engine", ""), ("job", None), ("namespace__isnull", False)),
                            models.Q(("engine", ""), ("namespace", None), ("job__isnull", False)),
                            _connector="OR",
                        ),
                        name="holds_one_thing",
                    ),
                ],
            },
        ),
        NewModel(
            name="Checkpoint",
            fields=[
                (
                    "id",
                    models.UUIDField(default=yardmaster.ids.new_id, editable=False, primary_key=True, serialize=False),
                ),
                ("attempt", models.PositiveIntegerField()),
                ("step", models.BigIntegerField()),
                ("upload_id", models.UUIDField(unique=True)),
                ("size", models.BigIntegerField()),
                ("files", models.JSONField(default=list)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("completed_at", models.DateTimeField(blank=True, null=True)),
                (
                    "job",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="checkpoints",
                        to="jobs.job",
                    ),
                ),
            ],
            options={
                "indexes": [models.Index(fields=["job", "completed_at"], name="checkpoints_of_job")],
            },
        ),
        NewModel(
            name="JobAttempt",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("number", models.PositiveIntegerField()),
                ("spec", models.JSONField()),
                ("phase", models.CharField(blank=True, max_length=9)),
                ("reason", models.CharField(blank=True, max_length=63)),
                ("message", models.TextField(blank=True)),
                ("remedy", models.TextField(blank=True)),
                ("blame", models.CharField(blank=True, max_length=16)),
                (
                    "role",
                    models.CharField(
                        blank=True,
                        choices=[("chief", "chief"), ("worker", "worker"), ("ps", "ps"), ("evaluator", "evaluator")],
                        max_length=16,
                    ),
                ),
                ("index", models.PositiveIntegerField(blank=True, null=True)),
                ("exit_code", models.IntegerField(blank=True, null=True)),
                ("queued_at", models.DateTimeField()),
                ("started_at", models.DateTimeField(blank=True, null=True)),
                ("decided_at", models.DateTimeField(blank=True, null=True)),
                ("cleaned_up_at", models.DateTimeField(blank=True, null=True)),
                ("log_bytes", models.BigIntegerField(default=0)),
                (
                    "begun_by",
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
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="attempts",
                        to="jobs.job",
                    ),
                ),
            ],
            options={
                "indexes": [
                    models.Index(
                        condition=models.Q(("phase", "FAILED")),
                        fields=["decided_at", "reason", "job"],
                        name="attempt_failed",
                    ),
                    models.Index(
                        condition=models.Q(("started_at__isnull", False)),
                        fields=["queued_at", "started_at", "job"],
                        name="attempt_started",
                    ),
                ],
                "constraints": [models.UniqueConstraint(fields=("job", "number"), name="one_row_per_attempt")],
            },
        ),
        NewModel(
            name="JobColumns",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("columns", models.JSONField(default=list)),
                ("ordering", models.CharField(blank=True, max_length=120)),
                (
                    "namespace",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="namespaces.namespace",
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
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("user", "namespace"), name="one_choice_of_columns"),
                    models.UniqueConstraint(
                        condition=models.Q(("namespace__isnull", True)),
                        fields=("user",),
                        name="one_choice_of_columns_everywhere",
                    ),
                ],
            },
        ),
        NewModel(
            name="JobEvent",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("at", models.DateTimeField()),
                ("attempt", models.PositiveIntegerField()),
                ("kind", models.CharField(max_length=32)),
                ("phase_from", models.CharField(blank=True, max_length=9)),
                ("phase_to", models.CharField(blank=True, max_length=9)),
                ("reason", models.CharField(blank=True, max_length=63)),
                ("message", models.TextField(blank=True)),
                (
                    "facts",
                    models.JSONField(blank=True, default=dict, encoder=django.core.serializers.json.DjangoJSONEncoder),
                ),
                (
                    "job",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="events",
                        to="jobs.job",
                    ),
                ),
            ],
            options={
                "indexes": [models.Index(fields=["job", "id"], name="event_of_job")],
            },
        ),
        NewModel(
            name="JobInput",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("version", models.UUIDField()),
                (
                    "job",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="inputs",
                        to="jobs.job",
                    ),
                ),
            ],
            options={
                "indexes": [models.Index(fields=["version"], name="jobs_of_version")],
                "constraints": [models.UniqueConstraint(fields=("job", "version"), name="one_row_per_version_of_job")],
            },
        ),
        NewModel(
            name="JobMetric",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("name", models.CharField(max_length=100)),
                ("attempt", models.PositiveIntegerField()),
                ("step", models.BigIntegerField(null=True)),
                ("latest", models.FloatField(null=True)),
                ("not_finite", models.CharField(blank=True, default="", max_length=4)),
                ("lowest", models.FloatField(null=True)),
                ("highest", models.FloatField(null=True)),
                (
                    "job",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="metrics",
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
            ],
            options={
                "indexes": [
                    models.Index(fields=["namespace", "name", "latest", "job"], name="jobs_by_metric"),
                    models.Index(fields=["name", "latest", "job"], name="all_jobs_by_metric"),
                ],
                "constraints": [models.UniqueConstraint(fields=("job", "name"), name="one_metric_per_name")],
            },
        ),
        NewModel(
            name="JobOutput",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("attempt", models.PositiveIntegerField()),
                ("name", models.CharField(max_length=600)),
                ("task", models.CharField(blank=True, max_length=32)),
                ("size", models.BigIntegerField()),
                ("has_events", models.BooleanField()),
                ("segments", models.JSONField()),
                ("updated_at", models.DateTimeField()),
                (
                    "job",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="outputs",
                        to="jobs.job",
                    ),
                ),
            ],
            options={
                "constraints": [models.UniqueConstraint(fields=("job", "attempt", "name"), name="one_output_per_name")],
            },
        ),
        NewModel(
            name="JobPackages",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("attempt", models.PositiveIntegerField()),
                ("lock", models.JSONField(default=list)),
                (
                    "job",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="packages",
                        to="jobs.job",
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("job", "attempt"), name="one_list_of_packages_per_attempt")
                ],
            },
        ),
        NewModel(
            name="JobPin",
            fields=[
                (
                    "id",
                    models.UUIDField(default=yardmaster.ids.new_id, editable=False, primary_key=True, serialize=False),
                ),
                (
                    "job",
                    models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name="pins", to="jobs.job"),
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
            ],
            options={
                "constraints": [models.UniqueConstraint(fields=("user", "job"), name="one_pin_per_job")],
            },
        ),
        NewModel(
            name="JobTag",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("name", models.CharField(max_length=40)),
                (
                    "job",
                    models.ForeignKey(
                        db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name="+", to="jobs.job"
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
                "indexes": [
                    models.Index(fields=["namespace", "name", "job"], name="jobs_by_tag"),
                    models.Index(fields=["name", "job"], name="all_jobs_by_tag"),
                ],
                "constraints": [models.UniqueConstraint(fields=("job", "name"), name="one_tag_per_name")],
            },
        ),
        NewModel(
            name="LaunchPreset",
            fields=[
                (
                    "id",
                    models.UUIDField(default=yardmaster.ids.new_id, editable=False, primary_key=True, serialize=False),
                ),
                ("name", models.CharField(max_length=63, unique=True)),
                ("description", models.CharField(blank=True, max_length=200)),
                ("position", models.PositiveSmallIntegerField(default=0)),
                ("engine", models.CharField(blank=True, max_length=63)),
                ("spec", models.JSONField()),
                ("changed_at", models.DateTimeField()),
                (
                    "changed_by",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
        ),
        NewModel(
            name="OutputUpload",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("attempt", models.PositiveIntegerField()),
                ("task", models.CharField(blank=True, max_length=32)),
                ("upload_id", models.UUIDField(unique=True)),
                ("starts", models.JSONField(default=dict)),
                (
                    "job",
                    models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name="+", to="jobs.job"),
                ),
            ],
        ),
        NewModel(
            name="Preemption",
            fields=[
                (
                    "id",
                    models.UUIDField(default=yardmaster.ids.new_id, editable=False, primary_key=True, serialize=False),
                ),
                ("attempt", models.PositiveIntegerField()),
                ("for_namespace", models.CharField(max_length=63)),
                ("for_class", models.CharField(blank=True, max_length=63)),
                ("is_guaranteed", models.BooleanField()),
                ("message", models.TextField()),
                ("at", models.DateTimeField()),
                ("ended_at", models.DateTimeField(blank=True, null=True)),
                (
                    "for_job",
                    models.ForeignKey(
                        null=True, on_delete=django.db.models.deletion.SET_NULL, related_name="+", to="jobs.job"
                    ),
                ),
                (
                    "job",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="preemptions",
                        to="jobs.job",
                    ),
                ),
                (
                    "policy",
                    models.ForeignKey(
                        db_column="engine",
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="preemptions",
                        to="jobs.preemptionpolicy",
                    ),
                ),
            ],
            options={
                "indexes": [
                    models.Index(fields=["policy", "at"], name="preemptions_by_time"),
                    models.Index(
                        condition=models.Q(("ended_at__isnull", True)), fields=["policy"], name="preemptions_under_way"
                    ),
                ],
                "constraints": [models.UniqueConstraint(fields=("job", "attempt"), name="one_preemption_per_attempt")],
            },
        ),
        NewModel(
            name="Publication",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("attempt", models.PositiveIntegerField()),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("collecting", "Collecting"),
                            ("published", "Published"),
                            ("failed", "Failed"),
                            ("dropped", "Dropped"),
                        ],
                        default="collecting",
                        max_length=10,
                    ),
                ),
                ("target_id", models.UUIDField(default=yardmaster.ids.new_id)),
                ("version_id", models.UUIDField(blank=True, null=True)),
                ("problem", models.JSONField(blank=True, null=True)),
                ("facts", models.JSONField(blank=True, default=dict)),
                ("tries", models.PositiveIntegerField(default=0)),
                ("due_at", models.DateTimeField(blank=True, null=True)),
                ("lease", models.UUIDField(blank=True, null=True)),
                ("leased_until", models.DateTimeField(blank=True, null=True)),
                (
                    "job",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="publications",
                        to="jobs.job",
                    ),
                ),
            ],
            options={
                "indexes": [
                    models.Index(condition=models.Q(("state", "collecting")), fields=["id"], name="publication_open")
                ],
                "constraints": [models.UniqueConstraint(fields=("job", "attempt"), name="one_publication_per_attempt")],
            },
        ),
        NewModel(
            name="PublicationPart",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("task", models.CharField(max_length=32)),
                ("upload_id", models.UUIDField(blank=True, null=True, unique=True)),
                ("completed_at", models.DateTimeField(blank=True, null=True)),
                (
                    "publication",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="parts",
                        to="jobs.publication",
                    ),
                ),
            ],
            options={
                "constraints": [models.UniqueConstraint(fields=("publication", "task"), name="one_part_per_task")],
            },
        ),
        NewModel(
            name="Reservation",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("job_name", models.CharField(blank=True, db_default="", max_length=200)),
                ("namespace_slug", models.CharField(blank=True, db_default="", max_length=63)),
                ("owner_id", models.UUIDField(blank=True, null=True)),
                ("owner_name", models.CharField(blank=True, db_default="", max_length=150)),
                ("engine", models.CharField(max_length=63)),
                ("attempt", models.PositiveIntegerField()),
                (
                    "role",
                    models.CharField(
                        choices=[("chief", "chief"), ("worker", "worker"), ("ps", "ps"), ("evaluator", "evaluator")],
                        max_length=16,
                    ),
                ),
                ("tasks", models.PositiveIntegerField(db_default=0, default=0)),
                ("cpu", models.DecimalField(decimal_places=3, max_digits=12)),
                ("memory", models.BigIntegerField()),
                ("gpus", models.IntegerField()),
                ("extended", models.JSONField(blank=True, default=dict)),
                ("reserved_at", models.DateTimeField()),
                ("released_at", models.DateTimeField(blank=True, null=True)),
                (
                    "job",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        related_name="reservations",
                        to="jobs.job",
                    ),
                ),
                (
                    "namespace",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        related_name="+",
                        to="namespaces.namespace",
                    ),
                ),
            ],
            options={
                "indexes": [
                    models.Index(
                        condition=models.Q(("released_at__isnull", True)),
                        fields=["namespace"],
                        name="ledger_of_namespace",
                    ),
                    models.Index(
                        condition=models.Q(("released_at__isnull", True)), fields=["engine"], name="ledger_of_engine"
                    ),
                    models.Index(fields=["namespace", "released_at"], name="usage_of_namespace"),
                    models.Index(fields=["reserved_at"], name="usage_by_begin"),
                    models.Index(fields=["released_at"], name="usage_by_end"),
                    models.Index(fields=["job"], name="usage_of_job"),
                    models.Index(
                        condition=models.Q(("gpus__gt", 0)),
                        fields=["job"],
                        include=("gpus", "reserved_at", "released_at"),
                        name="usage_of_gpus",
                    ),
                ],
                "constraints": [
                    models.UniqueConstraint(
                        condition=models.Q(("released_at__isnull", True)),
                        fields=("job", "attempt", "role"),
                        name="one_open_reservation_per_role",
                    )
                ],
            },
        ),
        NewModel(
            name="RetentionRule",
            fields=[
                (
                    "id",
                    models.UUIDField(default=yardmaster.ids.new_id, editable=False, primary_key=True, serialize=False),
                ),
                (
                    "kind",
                    models.CharField(choices=[("logs", "logs"), ("files", "files"), ("jobs", "jobs")], max_length=8),
                ),
                (
                    "days",
                    models.PositiveIntegerField(
                        blank=True,
                        null=True,
                        validators=[
                            django.core.validators.MinValueValidator(1),
                            django.core.validators.MaxValueValidator(3650),
                        ],
                    ),
                ),
                ("newest", models.PositiveIntegerField(default=0)),
                ("tags", models.JSONField(blank=True, default=list)),
                ("spares_models", models.BooleanField(default=True)),
                ("only_archived", models.BooleanField(default=False)),
                ("reason", models.CharField(max_length=300)),
                ("changed_at", models.DateTimeField()),
                (
                    "changed_by",
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
                        blank=True,
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="namespaces.namespace",
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        condition=models.Q(("namespace", None)), fields=("kind",), name="one_retention_rule_of_portal"
                    ),
                    models.UniqueConstraint(fields=("namespace", "kind"), name="one_retention_rule_of_namespace"),
                ],
            },
        ),
        NewModel(
            name="ScalarPoint",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("attempt", models.PositiveIntegerField()),
                ("run", models.CharField(blank=True, max_length=200)),
                ("tag", models.CharField(max_length=200)),
                ("step", models.BigIntegerField()),
                ("time", models.FloatField()),
                ("value", models.FloatField(null=True)),
                ("not_finite", models.CharField(blank=True, db_default="", default="", max_length=4)),
                (
                    "job",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="scalars",
                        to="jobs.job",
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("job", "attempt", "run", "tag", "step"), name="one_point_per_step")
                ],
            },
        ),
        NewModel(
            name="TaskFact",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("attempt", models.PositiveIntegerField()),
                (
                    "role",
                    models.CharField(
                        choices=[("chief", "chief"), ("worker", "worker"), ("ps", "ps"), ("evaluator", "evaluator")],
                        max_length=16,
                    ),
                ),
                ("index", models.PositiveIntegerField()),
                ("phase", models.CharField(blank=True, max_length=9)),
                ("reason", models.CharField(blank=True, max_length=63)),
                ("message", models.TextField(blank=True)),
                ("exit_code", models.IntegerField(blank=True, null=True)),
                ("restarts", models.PositiveIntegerField(default=0)),
                ("node", models.CharField(blank=True, max_length=253)),
                ("started_at", models.DateTimeField(blank=True, null=True)),
                ("finished_at", models.DateTimeField(blank=True, null=True)),
                ("peak_memory", models.BigIntegerField(blank=True, null=True)),
                ("state", models.CharField(blank=True, max_length=16)),
                ("progress", models.JSONField(blank=True, default=dict)),
                ("usage", models.JSONField(blank=True, default=dict)),
                ("usage_samples", models.JSONField(blank=True, default=list)),
                ("reported", models.JSONField(blank=True, default=dict)),
                ("unsaved", models.JSONField(blank=True, default=dict)),
                ("points_since_thinning", models.PositiveIntegerField(default=0)),
                ("reported_at", models.DateTimeField(blank=True, null=True)),
                ("release_of", models.PositiveIntegerField(blank=True, null=True)),
                ("stacks_asked", models.PositiveIntegerField(default=0)),
                (
                    "job",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="task_facts",
                        to="jobs.job",
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("job", "attempt", "role", "index"), name="one_fact_per_task")
                ],
            },
        ),
        NewModel(
            name="TaskShell",
            fields=[
                (
                    "id",
                    models.UUIDField(default=yardmaster.ids.new_id, editable=False, primary_key=True, serialize=False),
                ),
                ("attempt", models.PositiveIntegerField()),
                (
                    "role",
                    models.CharField(
                        choices=[("chief", "chief"), ("worker", "worker"), ("ps", "ps"), ("evaluator", "evaluator")],
                        max_length=16,
                    ),
                ),
                ("index", models.PositiveIntegerField()),
                ("is_command", models.BooleanField(default=False)),
                ("opened_at", models.DateTimeField()),
                ("joined_at", models.DateTimeField(blank=True, null=True)),
                ("ended_at", models.DateTimeField(blank=True, null=True)),
                ("why", models.CharField(blank=True, max_length=200)),
                ("user_until", models.DateTimeField()),
                ("runner_until", models.DateTimeField(blank=True, null=True)),
                ("channel", models.CharField(max_length=100)),
                (
                    "job",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="shells",
                        to="jobs.job",
                    ),
                ),
                (
                    "user",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "indexes": [
                    models.Index(
                        condition=models.Q(("ended_at__isnull", True)),
                        fields=["job", "attempt"],
                        name="open_shells_of_job",
                    ),
                    models.Index(
                        condition=models.Q(("ended_at__isnull", True)), fields=["user_until"], name="open_shells"
                    ),
                ],
            },
        ),
        NewModel(
            name="Volume",
            fields=[
                (
                    "id",
                    models.UUIDField(default=yardmaster.ids.new_id, editable=False, primary_key=True, serialize=False),
                ),
                ("engine", models.CharField(max_length=63)),
                ("kind", models.CharField(choices=[("data", "Data"), ("log", "Log")], max_length=4)),
                ("size", models.BigIntegerField()),
                ("goes", models.BooleanField(default=False)),
                ("phase", models.CharField(default="pending", max_length=10)),
                ("found_size", models.BigIntegerField(default=0)),
                ("identity", models.CharField(blank=True, max_length=64)),
                ("message", models.TextField(blank=True)),
                ("remedy", models.TextField(blank=True)),
                ("looked_at", models.DateTimeField(blank=True, null=True)),
                ("next_look_at", models.DateTimeField(db_index=True)),
                ("setbacks", models.PositiveIntegerField(default=0)),
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
                        on_delete=django.db.models.deletion.CASCADE, related_name="volumes", to="namespaces.namespace"
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        fields=("namespace", "engine", "kind"), name="one_volume_of_a_kind_per_engine"
                    )
                ],
            },
        ),
        NewModel(
            name="VolumeCopy",
            fields=[
                (
                    "id",
                    models.UUIDField(default=yardmaster.ids.new_id, editable=False, primary_key=True, serialize=False),
                ),
                ("version", models.UUIDField(db_index=True)),
                ("dataset", models.CharField(max_length=100)),
                ("number", models.PositiveIntegerField()),
                ("files", models.PositiveIntegerField()),
                ("bytes", models.BigIntegerField()),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("copying", "Copying"),
                            ("ready", "Ready"),
                            ("failed", "Failed"),
                            ("removing", "Removing"),
                        ],
                        default="copying",
                        max_length=8,
                    ),
                ),
                ("launches", models.PositiveIntegerField(default=0)),
                ("changed_at", models.DateTimeField()),
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
                    "volume",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="copies",
                        to="jobs.volume",
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("volume", "version"), name="one_copy_of_a_version_per_volume")
                ],
            },
        ),
        NewModel(
            name="VolumeLeftover",
            fields=[
                (
                    "id",
                    models.UUIDField(default=yardmaster.ids.new_id, editable=False, primary_key=True, serialize=False),
                ),
                ("job_id", models.UUIDField()),
                (
                    "volume",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="leftovers",
                        to="jobs.volume",
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("volume", "job_id"), name="one_leftover_per_deleted_job")
                ],
            },
        ),
        NewModel(
            name="WaitEstimate",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("attempt", models.PositiveIntegerField()),
                ("engine", models.CharField(max_length=63)),
                ("said_at", models.DateTimeField()),
                ("raw_low", models.FloatField()),
                ("raw_high", models.FloatField(null=True)),
                ("said_low", models.FloatField()),
                ("said_high", models.FloatField(null=True)),
                ("starts_from", models.DateTimeField(null=True)),
                ("starts_until", models.DateTimeField(null=True)),
                ("made_at", models.DateTimeField()),
                ("started_at", models.DateTimeField(null=True)),
                (
                    "job",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="wait_estimates", to="jobs.job"
                    ),
                ),
            ],
            options={
                "indexes": [models.Index(fields=["engine", "-said_at"], name="estimates_of_engine")],
                "constraints": [models.UniqueConstraint(fields=("job", "attempt"), name="one_estimate_per_wait")],
            },
        ),
        NewModel(
            name="AdvanceReservation",
            fields=[
                (
                    "id",
                    models.UUIDField(default=yardmaster.ids.new_id, editable=False, primary_key=True, serialize=False),
                ),
                ("engine", models.CharField(max_length=63)),
                ("amounts", models.JSONField()),
                ("begins_at", models.DateTimeField()),
                ("ends_at", models.DateTimeField()),
                ("reason", models.CharField(blank=True, max_length=300)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
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
                    "group",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="advance_reservations",
                        to="namespaces.sharenode",
                    ),
                ),
                (
                    "namespace",
                    models.ForeignKey(
                        blank=True,
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="advance_reservations",
                        to="namespaces.namespace",
                    ),
                ),
            ],
            options={
                "indexes": [
                    models.Index(fields=["engine", "ends_at"], name="reserved_on_engine"),
                    models.Index(fields=["namespace", "ends_at"], name="reserved_for_namespace"),
                ],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("ends_at__gt", models.F("begins_at"))), name="reserves_some_time"
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("group__isnull", False), ("namespace", None)),
                            models.Q(("group", None), ("namespace__isnull", False)),
                            _connector="OR",
                        ),
                        name="reserved_for_one",
                    ),
                ],
            },
        ),
        NewModel(
            name="JobCleared",
            fields=[
                (
                    "job",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="cleared",
                        serialize=False,
                        to="jobs.job",
                    ),
                ),
                ("logs_at", models.DateTimeField(blank=True, null=True)),
                ("logs_attempt", models.PositiveIntegerField(default=0)),
                ("logs_rule", models.CharField(blank=True, max_length=200)),
                ("logs_done_at", models.DateTimeField(blank=True, null=True)),
                ("files_at", models.DateTimeField(blank=True, null=True)),
                ("files_attempt", models.PositiveIntegerField(default=0)),
                ("files_rule", models.CharField(blank=True, max_length=200)),
                ("files_done_at", models.DateTimeField(blank=True, null=True)),
            ],
            options={
                "indexes": [
                    models.Index(
                        condition=models.Q(("logs_at__isnull", False), ("logs_done_at", None)),
                        fields=["logs_at"],
                        name="logs_being_cleared",
                    ),
                    models.Index(
                        condition=models.Q(("files_at__isnull", False), ("files_done_at", None)),
                        fields=["files_at"],
                        name="files_being_cleared",
                    ),
                ],
            },
        ),
    ]
