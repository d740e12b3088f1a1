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
            name="Image",
            fields=[
                (
                    "id",
                    models.UUIDField(default=yardmaster.ids.new_id, editable=False, primary_key=True, serialize=False),
                ),
                ("name", models.CharField(max_length=63, unique=True)),
                ("reference", models.CharField(max_length=500)),
                ("python", models.CharField(blank=True, max_length=16)),
                ("tensorflow", models.CharField(blank=True, max_length=32)),
                ("strategies", models.JSONField(blank=True, default=list)),
                ("gpus", models.BooleanField(default=False)),
                ("description", models.CharField(blank=True, max_length=500)),
                ("pull_secret", models.CharField(blank=True, max_length=128)),
                ("everyone", models.BooleanField(default=True)),
                ("enabled", models.BooleanField(default=True)),
                ("packages", models.JSONField(blank=True, null=True)),
                ("created_at", models.DateTimeField()),
                ("changed_at", models.DateTimeField()),
                (
                    "changed_by",
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
                ("namespaces", models.ManyToManyField(blank=True, related_name="+", to="namespaces.namespace")),
            ],
        ),
    ]
