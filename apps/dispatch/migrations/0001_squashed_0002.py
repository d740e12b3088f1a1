"""As 0001 to 0002 together, for databases that have none of them."""

import django.core.serializers.json
from django.db import migrations, models

from apps.new_models import NewModel


class Migration(migrations.Migration):
    replaces = [("dispatch", "0001_outbox"), ("dispatch", "0002_outbox_backs_off")]

    initial = True

    dependencies = []

    operations = [
        NewModel(
            name="Leadership",
            fields=[
                ("post", models.CharField(max_length=32, primary_key=True, serialize=False)),
                ("holder", models.CharField(blank=True, max_length=32)),
                ("until", models.DateTimeField(blank=True, null=True)),
            ],
        ),
        NewModel(
            name="OutboxEvent",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("topic", models.CharField(max_length=32)),
                ("subject", models.UUIDField()),
                ("facts", models.JSONField(default=dict, encoder=django.core.serializers.json.DjangoJSONEncoder)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("failures", models.PositiveIntegerField(default=0)),
                ("next_try_at", models.DateTimeField(blank=True, null=True)),
            ],
            options={
                "indexes": [models.Index(fields=["topic", "id"], name="outbox_by_topic")],
            },
        ),
    ]
