import django.core.serializers.json
import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

import yardmaster.ids
import yardmaster.sweeps.decision
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
            name="Sweep",
            fields=[
                (
                    "id",
                    models.UUIDField(default=yardmaster.ids.new_id, editable=False, primary_key=True, serialize=False),
                ),
                ("name", models.CharField(max_length=200)),
                ("engine", models.CharField(max_length=63)),
                ("base", models.JSONField(encoder=django.core.serializers.json.DjangoJSONEncoder)),
                ("plan", models.JSONField()),
                ("count", models.PositiveIntegerField()),
                ("accept_never_fits", models.BooleanField(default=False)),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("running", "running"),
                            ("paused", "paused"),
                            ("stopping", "stopping"),
                            ("ended", "ended"),
                        ],
                        default=yardmaster.sweeps.decision.SweepState["RUNNING"],
                        max_length=10,
                    ),
                ),
                ("reason", models.CharField(blank=True, max_length=500)),
                ("waiting", models.CharField(blank=True, max_length=500)),
                ("request_key", models.CharField(blank=True, max_length=100, null=True, unique=True)),
                ("created_at", models.DateTimeField()),
                ("ended_at", models.DateTimeField(blank=True, null=True)),
                ("failures_from", models.DateTimeField()),
                ("next_look_at", models.DateTimeField(blank=True, null=True)),
                (
                    "namespace",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="sweeps",
                        to="namespaces.namespace",
                    ),
                ),
                (
                    "owner",
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
                    models.Index(fields=["namespace", "id"], name="sweeps_of_namespace"),
                    models.Index(
                        condition=models.Q(("next_look_at__isnull", False)), fields=["next_look_at"], name="sweeps_due"
                    ),
                ],
            },
        ),
        NewModel(
            name="SweepTrial",
            fields=[
                (
                    "id",
                    models.UUIDField(default=yardmaster.ids.new_id, editable=False, primary_key=True, serialize=False),
                ),
                ("number", models.PositiveIntegerField()),
                ("values", models.JSONField()),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("waiting", "waiting"),
                            ("active", "active"),
                            ("succeeded", "succeeded"),
                            ("failed", "failed"),
                            ("stopped", "stopped"),
                            ("stopped_early", "stopped_early"),
                        ],
                        default=yardmaster.sweeps.decision.TrialState["WAITING"],
                        max_length=13,
                    ),
                ),
                ("stop_reason", models.CharField(blank=True, max_length=300)),
                ("launching_at", models.DateTimeField(blank=True, null=True)),
                ("launched_at", models.DateTimeField(blank=True, null=True)),
                ("started_at", models.DateTimeField(blank=True, null=True)),
                ("ended_at", models.DateTimeField(blank=True, null=True)),
                ("attempt", models.PositiveIntegerField(default=0)),
                ("run", models.CharField(blank=True, max_length=200)),
                ("steps", models.BigIntegerField(blank=True, null=True)),
                ("value", models.FloatField(blank=True, null=True)),
                ("best", models.FloatField(blank=True, null=True)),
                ("best_step", models.BigIntegerField(blank=True, null=True)),
                ("curve", models.JSONField(blank=True, default=list)),
                (
                    "job",
                    models.ForeignKey(
                        null=True, on_delete=django.db.models.deletion.SET_NULL, related_name="+", to="jobs.job"
                    ),
                ),
                (
                    "sweep",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="trials",
                        to="sweeps.sweep",
                    ),
                ),
            ],
            options={
                "constraints": [models.UniqueConstraint(fields=("sweep", "number"), name="one_trial_per_number")],
            },
        ),
    ]
