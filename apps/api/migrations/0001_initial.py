import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

import yardmaster.ids
from apps.new_models import NewModel


class Migration(migrations.Migration):
    initial = True

    dependencies = [
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        NewModel(
            name="IdempotencyRecord",
            fields=[
                (
                    "id",
                    models.UUIDField(default=yardmaster.ids.new_id, editable=False, primary_key=True, serialize=False),
                ),
                ("key", models.CharField(max_length=200)),
                ("fingerprint", models.CharField(max_length=64)),
                ("claim", models.UUIDField()),
                ("claimed_at", models.DateTimeField(db_index=True)),
                ("status", models.PositiveSmallIntegerField(blank=True, null=True)),
                ("content_type", models.CharField(blank=True, max_length=100)),
                ("location", models.CharField(blank=True, max_length=500)),
                ("body", models.TextField(blank=True)),
                (
                    "user",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="+", to=settings.AUTH_USER_MODEL
                    ),
                ),
            ],
            options={
                "constraints": [models.UniqueConstraint(fields=("user", "key"), name="one_record_per_key")],
            },
        ),
    ]
