"""As 0001 to 0004 together, for databases that have none of them."""

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

import yardmaster.ids
from apps.new_models import NewModel


class Migration(migrations.Migration):
    replaces = [
        ("buckets", "0001_initial"),
        ("buckets", "0002_scan_failures"),
        ("buckets", "0003_left_out"),
        ("buckets", "0004_turns_of_scans"),
    ]

    initial = True

    dependencies = [
        ("namespace_secrets", "0001_initial"),
        ("namespaces", "0008_quota_of_files"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        NewModel(
            name="ScanTurn",
            fields=[
                (
                    "namespace",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="scan_turn",
                        serialize=False,
                        to="namespaces.namespace",
                    ),
                ),
                ("taken_at", models.DateTimeField(blank=True, null=True)),
            ],
        ),
        NewModel(
            name="Bucket",
            fields=[
                (
                    "id",
                    models.UUIDField(default=yardmaster.ids.new_id, editable=False, primary_key=True, serialize=False),
                ),
                ("endpoint", models.CharField(max_length=300)),
                ("bucket", models.CharField(max_length=63)),
                ("prefix", models.CharField(blank=True, max_length=512)),
                ("region", models.CharField(max_length=63)),
                ("dataset_id", models.UUIDField(blank=True, null=True, unique=True)),
                ("name", models.CharField(max_length=100)),
                ("created_at", models.DateTimeField()),
                (
                    "state",
                    models.CharField(
                        choices=[("scanning", "Scanning"), ("ready", "Ready"), ("failed", "Failed")],
                        default="scanning",
                        max_length=10,
                    ),
                ),
                ("problem", models.JSONField(blank=True, null=True)),
                ("upload_id", models.UUIDField(blank=True, null=True)),
                ("scanned", models.PositiveIntegerField(default=0)),
                ("scanned_bytes", models.BigIntegerField(default=0)),
                ("last_path", models.CharField(blank=True, max_length=1024)),
                ("left_out", models.PositiveIntegerField(default=0)),
                ("left_out_first", models.JSONField(default=list)),
                ("failures", models.PositiveSmallIntegerField(default=0)),
                ("started_at", models.DateTimeField()),
                ("ended_at", models.DateTimeField(blank=True, null=True)),
                ("next_look_at", models.DateTimeField(blank=True, db_index=True, null=True)),
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
                (
                    "secret",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to="namespace_secrets.secret",
                    ),
                ),
            ],
        ),
    ]
