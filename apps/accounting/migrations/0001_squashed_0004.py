"""As 0001 to 0004 together, for databases that have none of them."""

import django.db.models.deletion
from django.db import migrations, models

from apps.new_models import NewModel


class Migration(migrations.Migration):
    replaces = [
        ("accounting", "0001_usage_and_budgets"),
        ("accounting", "0002_usage_months"),
        ("accounting", "0003_jobs_counted"),
        ("accounting", "0004_idle_hours"),
    ]

    initial = True

    dependencies = [
        ("namespaces", "0008_quota_of_files"),
    ]

    operations = [
        NewModel(
            name="Budget",
            fields=[
                (
                    "namespace",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="budget",
                        serialize=False,
                        to="namespaces.namespace",
                    ),
                ),
                ("cpu_hours", models.DecimalField(blank=True, decimal_places=3, max_digits=14, null=True)),
                ("memory_gib_hours", models.DecimalField(blank=True, decimal_places=3, max_digits=14, null=True)),
                ("gpu_hours", models.DecimalField(blank=True, decimal_places=3, max_digits=14, null=True)),
                ("money", models.DecimalField(blank=True, decimal_places=2, max_digits=14, null=True)),
            ],
        ),
        NewModel(
            name="IdleCounted",
            fields=[
                ("id", models.PositiveSmallIntegerField(default=1, primary_key=True, serialize=False)),
                ("upto", models.DateTimeField()),
            ],
        ),
        NewModel(
            name="UsageCarried",
            fields=[
                ("reservation_id", models.BigIntegerField(primary_key=True, serialize=False)),
            ],
        ),
        NewModel(
            name="UsageState",
            fields=[
                ("id", models.PositiveSmallIntegerField(default=1, primary_key=True, serialize=False)),
                ("upto", models.DateField()),
                ("months_upto", models.DateField(null=True)),
                ("jobs_upto", models.DateField(null=True)),
                ("last_reservation", models.BigIntegerField(default=0)),
                ("measured_upto", models.DateField()),
            ],
        ),
        NewModel(
            name="IdleHour",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("begin", models.DateTimeField()),
                ("namespace_id", models.UUIDField()),
                ("namespace_slug", models.CharField(blank=True, max_length=63)),
                ("engine", models.CharField(max_length=63)),
                ("resource", models.CharField(max_length=16)),
                ("amount", models.BigIntegerField()),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        fields=("begin", "namespace_id", "engine", "resource"), name="one_idle_hour"
                    )
                ],
            },
        ),
        NewModel(
            name="JobCount",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("is_month", models.BooleanField()),
                ("begin", models.DateField()),
                ("before", models.DateField(null=True)),
                ("namespace_id", models.UUIDField()),
                ("namespace_slug", models.CharField(blank=True, max_length=63)),
                ("owner_id", models.UUIDField(blank=True, null=True)),
                ("owner_name", models.CharField(blank=True, max_length=150)),
                ("engine", models.CharField(max_length=63)),
                ("role", models.CharField(blank=True, max_length=16)),
                ("jobs", models.IntegerField()),
            ],
            options={
                "indexes": [models.Index(fields=["is_month", "begin"], name="jobs_of_days")],
            },
        ),
        NewModel(
            name="MeasuredDay",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("day", models.DateField()),
                ("namespace_id", models.UUIDField()),
                ("namespace_slug", models.CharField(blank=True, max_length=63)),
                ("owner_id", models.UUIDField(blank=True, null=True)),
                ("role", models.CharField(max_length=16)),
                ("engine", models.CharField(max_length=63)),
                ("resource", models.CharField(max_length=16)),
                ("held", models.BigIntegerField()),
                ("used", models.BigIntegerField()),
            ],
            options={
                "indexes": [models.Index(fields=["day"], name="measured_of_day")],
            },
        ),
        NewModel(
            name="UsageDay",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("namespace_id", models.UUIDField()),
                ("namespace_slug", models.CharField(blank=True, max_length=63)),
                ("owner_id", models.UUIDField(blank=True, null=True)),
                ("owner_name", models.CharField(blank=True, max_length=150)),
                ("role", models.CharField(max_length=16)),
                ("engine", models.CharField(max_length=63)),
                ("resource", models.CharField(max_length=253)),
                ("amount", models.BigIntegerField()),
                ("day", models.DateField()),
            ],
            options={
                "indexes": [
                    models.Index(fields=["day"], name="use_of_day"),
                    models.Index(fields=["namespace_id", "day"], name="use_of_namespace"),
                    models.Index(fields=["owner_id", "day"], name="use_of_owner"),
                ],
            },
        ),
        NewModel(
            name="UsageMonth",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("namespace_id", models.UUIDField()),
                ("namespace_slug", models.CharField(blank=True, max_length=63)),
                ("owner_id", models.UUIDField(blank=True, null=True)),
                ("owner_name", models.CharField(blank=True, max_length=150)),
                ("role", models.CharField(max_length=16)),
                ("engine", models.CharField(max_length=63)),
                ("resource", models.CharField(max_length=253)),
                ("amount", models.BigIntegerField()),
                ("month", models.DateField()),
            ],
            options={
                "indexes": [
                    models.Index(fields=["month"], name="use_of_month"),
                    models.Index(fields=["namespace_id", "month"], name="use_of_namespace_month"),
                    models.Index(fields=["owner_id", "month"], name="use_of_owner_month"),
                ],
            },
        ),
        NewModel(
            name="BudgetWarning",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("month", models.DateField()),
                ("level", models.PositiveSmallIntegerField()),
                ("at", models.DateTimeField()),
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
                "constraints": [
                    models.UniqueConstraint(fields=("namespace", "month", "level"), name="one_warning_per_level"),
                    models.CheckConstraint(condition=models.Q(("level__gt", 0)), name="a_level_is_positive"),
                ],
            },
        ),
    ]
