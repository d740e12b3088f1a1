import django.core.serializers.json
import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

import yardmaster.ids
from apps.new_models import NewModel


class Migration(migrations.Migration):
    initial = True

    dependencies = [
        ("namespaces", "0008_quota_of_files"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        NewModel(
            name="Webhook",
            fields=[
                (
                    "id",
                    models.UUIDField(default=yardmaster.ids.new_id, editable=False, primary_key=True, serialize=False),
                ),
                (
                    "format",
                    models.CharField(
                        choices=[
                            ("json", "JSON, signed"),
                            ("slack", "Slack"),
                            ("mattermost", "Mattermost"),
                            ("teams", "Microsoft Teams"),
                        ],
                        default="json",
                        max_length=10,
                    ),
                ),
                ("description", models.CharField(blank=True, max_length=200)),
                ("events", models.JSONField(default=list)),
                ("shown", models.CharField(max_length=300)),
                ("sealed", models.BinaryField()),
                ("key_id", models.CharField(max_length=16)),
                ("is_active", models.BooleanField(default=True)),
                ("off_reason", models.CharField(blank=True, max_length=300)),
                ("created_at", models.DateTimeField()),
                ("failures", models.PositiveIntegerField(default=0)),
                ("failing_since", models.DateTimeField(blank=True, null=True)),
                ("rests_until", models.DateTimeField(blank=True, null=True)),
                ("tried_at", models.DateTimeField(blank=True, null=True)),
                ("busy_with", models.CharField(blank=True, max_length=32)),
                ("busy_until", models.DateTimeField(blank=True, null=True)),
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
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="webhooks",
                        to="namespaces.namespace",
                    ),
                ),
                (
                    "user",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="own_webhooks",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("namespace__isnull", True), ("user__isnull", True), _connector="XOR"),
                        name="webhook_has_one_owner",
                    )
                ],
            },
        ),
        NewModel(
            name="Delivery",
            fields=[
                (
                    "id",
                    models.UUIDField(default=yardmaster.ids.new_id, editable=False, primary_key=True, serialize=False),
                ),
                ("key", models.CharField(max_length=100)),
                ("event", models.CharField(max_length=40)),
                ("body", models.JSONField(encoder=django.core.serializers.json.DjangoJSONEncoder)),
                ("is_asked_for", models.BooleanField(default=False)),
                ("created_at", models.DateTimeField()),
                (
                    "state",
                    models.CharField(
                        choices=[("waiting", "Waiting"), ("delivered", "Delivered"), ("failed", "Failed")],
                        default="waiting",
                        max_length=10,
                    ),
                ),
                ("due_at", models.DateTimeField(blank=True, null=True)),
                ("tries", models.PositiveIntegerField(default=0)),
                ("tried_at", models.DateTimeField(blank=True, null=True)),
                ("took_ms", models.PositiveIntegerField(blank=True, null=True)),
                ("status", models.PositiveIntegerField(blank=True, null=True)),
                ("excerpt", models.TextField(blank=True)),
                ("problem", models.CharField(blank=True, max_length=300)),
                (
                    "webhook",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="deliveries",
                        to="webhooks.webhook",
                    ),
                ),
            ],
            options={
                "indexes": [
                    models.Index(fields=["webhook", "id"], name="deliveries_of_webhook"),
                    models.Index(
                        condition=models.Q(("due_at__isnull", False)), fields=["due_at"], name="deliveries_due"
                    ),
                    models.Index(fields=["created_at"], name="deliveries_by_age"),
                ],
                "constraints": [models.UniqueConstraint(fields=("webhook", "key"), name="one_delivery_per_event")],
            },
        ),
    ]
