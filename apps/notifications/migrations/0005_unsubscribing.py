"""Which kinds of notification a mail tells of, which its link switches off; and which levels of quotas were told."""

from __future__ import annotations

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("namespaces", "0014_preemption_of_classes"), ("notifications", "0004_broadcasts")]

    operations = [
        migrations.AddField(
            model_name="announcement",
            name="kinds",
            field=models.CharField(blank=True, db_default="", default="", max_length=800),
        ),
        migrations.CreateModel(
            name="QuotaLevel",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("resource", models.CharField(max_length=300)),
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
                "constraints": [models.UniqueConstraint(fields=("namespace", "resource"), name="one_quota_level")],
            },
        ),
    ]
