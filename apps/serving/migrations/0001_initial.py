import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

import yardmaster.ids
from apps.new_models import NewModel


class Migration(migrations.Migration):
    initial = True

    dependencies = [
        ("jobs", "0020_service_strategy"),
        ("namespaces", "0007_engine_namespaces"),
        ("registry", "0003_named_models"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        NewModel(
            name="Service",
            fields=[
                (
                    "id",
                    models.UUIDField(default=yardmaster.ids.new_id, editable=False, primary_key=True, serialize=False),
                ),
                ("idle_seconds", models.PositiveIntegerField()),
                ("started_at", models.DateTimeField()),
                ("ready_at", models.DateTimeField(blank=True, null=True)),
                ("last_used_at", models.DateTimeField(blank=True, null=True)),
                ("stopped_idle", models.BooleanField(default=False)),
                ("starts", models.PositiveIntegerField(default=0)),
                ("requests", models.PositiveBigIntegerField(default=0)),
                (
                    "job",
                    models.OneToOneField(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to="jobs.job",
                    ),
                ),
                (
                    "namespace",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="namespaces.namespace",
                    ),
                ),
                (
                    "started_by",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "version",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE, related_name="service", to="registry.modelversion"
                    ),
                ),
            ],
            options={
                "abstract": False,
                "indexes": [models.Index(fields=["namespace", "id"], name="service_list")],
            },
        ),
    ]
