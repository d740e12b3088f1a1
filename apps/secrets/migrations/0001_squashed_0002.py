"""As 0001 to 0002 together, for databases that have none of them."""

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

import yardmaster.ids
from apps.new_models import NewModel


class Migration(migrations.Migration):
    replaces = [("namespace_secrets", "0001_initial"), ("namespace_secrets", "0002_keys_of_administrators")]

    initial = True

    dependencies = [
        ("namespaces", "0007_engine_namespaces"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        NewModel(
            name="Secret",
            fields=[
                (
                    "id",
                    models.UUIDField(default=yardmaster.ids.new_id, editable=False, primary_key=True, serialize=False),
                ),
                ("name", models.CharField(max_length=128)),
                (
                    "kind",
                    models.CharField(
                        choices=[("text", "Text"), ("s3", "S3"), ("s3_admin", "S3, for administrators")],
                        default="text",
                        max_length=8,
                    ),
                ),
                ("description", models.CharField(blank=True, max_length=500)),
                ("sealed", models.BinaryField()),
                ("key_id", models.CharField(max_length=16)),
                ("size", models.PositiveIntegerField()),
                ("created_at", models.DateTimeField()),
                ("changed_at", models.DateTimeField()),
                ("last_used_at", models.DateTimeField(blank=True, null=True)),
                (
                    "changed_by",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="secrets_changed",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "created_by",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="secrets_created",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "namespace",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="secrets", to="namespaces.namespace"
                    ),
                ),
            ],
            options={
                "constraints": [models.UniqueConstraint(fields=("namespace", "name"), name="one_secret_of_a_name")],
            },
        ),
        NewModel(
            name="SecretUse",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("job_id", models.UUIDField(db_index=True)),
                ("first_used_at", models.DateTimeField(blank=True, null=True)),
                (
                    "secret",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="uses",
                        to="namespace_secrets.secret",
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("secret", "job_id"), name="one_row_per_secret_and_job")
                ],
            },
        ),
    ]
