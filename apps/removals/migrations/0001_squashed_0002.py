"""As 0001 to 0002 together, for databases that have none of them."""

from django.db import migrations, models

import yardmaster.ids
from apps.new_models import NewModel


class Migration(migrations.Migration):
    replaces = [("removals", "0001_initial"), ("removals", "0002_reports")]

    initial = True

    dependencies = []

    operations = [
        NewModel(
            name="Removal",
            fields=[
                (
                    "id",
                    models.UUIDField(default=yardmaster.ids.new_id, editable=False, primary_key=True, serialize=False),
                ),
                ("namespace_id", models.UUIDField()),
                ("slug", models.CharField(max_length=63)),
                ("user_id", models.UUIDField(blank=True, null=True)),
                ("username", models.CharField(blank=True, max_length=150)),
                (
                    "data",
                    models.CharField(choices=[("keep", "Keep"), ("delete", "Delete")], default="keep", max_length=6),
                ),
                ("asked_by_id", models.UUIDField()),
                ("asked_by_name", models.CharField(max_length=150)),
                ("asked_at", models.DateTimeField()),
                ("ended_at", models.DateTimeField(blank=True, null=True)),
                ("left", models.JSONField(blank=True, default=list)),
                ("found", models.JSONField(blank=True, db_default={}, default=dict)),
                ("kept", models.JSONField(blank=True, db_default={}, default=dict)),
                ("next_look_at", models.DateTimeField(blank=True, db_index=True, null=True)),
                ("setbacks", models.PositiveIntegerField(default=0)),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        condition=models.Q(("ended_at__isnull", True)),
                        fields=("namespace_id",),
                        name="one_removal_at_a_time",
                    )
                ],
            },
        ),
    ]
