import django.db.models.deletion
from django.db import migrations, models

import yardmaster.ids
from apps.new_models import NewModel


class Migration(migrations.Migration):
    initial = True

    dependencies = [
        ("namespaces", "0008_quota_of_files"),
    ]

    operations = [
        NewModel(
            name="Environment",
            fields=[
                (
                    "id",
                    models.UUIDField(default=yardmaster.ids.new_id, editable=False, primary_key=True, serialize=False),
                ),
                ("key", models.CharField(max_length=64)),
                ("requirements", models.JSONField(default=list)),
                ("python", models.CharField(max_length=16)),
                (
                    "state",
                    models.CharField(
                        choices=[("building", "Building"), ("ready", "Ready")], default="building", max_length=10
                    ),
                ),
                ("lock", models.JSONField(default=list)),
                ("upload_id", models.UUIDField(blank=True, null=True, unique=True)),
                ("size", models.BigIntegerField(default=0)),
                ("holder", models.CharField(blank=True, max_length=36)),
                ("held_until", models.DateTimeField(blank=True, null=True)),
                ("created_at", models.DateTimeField()),
                ("used_at", models.DateTimeField(db_index=True)),
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
                "constraints": [models.UniqueConstraint(fields=("namespace", "key"), name="one_environment_per_key")],
            },
        ),
    ]
