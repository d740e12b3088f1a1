"""As 0001 to 0004 together, for databases that have none of them."""

import django.db.models.functions.text
from django.db import migrations, models

import yardmaster.ids
from apps.audit import append_only
from apps.new_models import NewModel, RunWithoutModels


def _guard(apps, schema_editor):
    """The triggers, and on PostgreSQL an index of the words of facts; SQLite looks at each row."""
    append_only.guard(schema_editor.connection)
    if schema_editor.connection.vendor == "postgresql":
        schema_editor.execute(
            "CREATE INDEX IF NOT EXISTS audit_words ON audit_auditevent USING gin (to_tsvector('simple', facts))"
        )


def _unguard(apps, schema_editor):
    append_only.unguard(schema_editor.connection)


class Migration(migrations.Migration):
    replaces = [
        ("audit", "0001_initial"),
        ("audit", "0002_whence_and_counts"),
        ("audit", "0003_engine_namespaces"),
        ("audit", "0004_append_only"),
    ]

    initial = True

    dependencies = []

    operations = [
        NewModel(
            name="AuditRetention",
            fields=[
                ("id", models.PositiveSmallIntegerField(default=1, editable=False, primary_key=True, serialize=False)),
                ("until", models.DateTimeField(null=True)),
            ],
        ),
        NewModel(
            name="AuditEvent",
            fields=[
                (
                    "id",
                    models.UUIDField(default=yardmaster.ids.new_id, editable=False, primary_key=True, serialize=False),
                ),
                ("at", models.DateTimeField(auto_now_add=True)),
                ("actor_id", models.UUIDField(blank=True, db_index=True, null=True)),
                ("actor_name", models.CharField(blank=True, max_length=150)),
                ("action", models.CharField(max_length=64)),
                ("subject", models.CharField(max_length=200)),
                ("namespace_id", models.UUIDField(blank=True, null=True)),
                ("facts", models.JSONField(default=dict)),
                ("address", models.GenericIPAddressField(blank=True, null=True)),
                ("agent", models.CharField(blank=True, max_length=200)),
                ("count", models.PositiveIntegerField(default=1)),
                ("repeat_key", models.CharField(blank=True, max_length=64, null=True, unique=True)),
            ],
            options={
                "indexes": [
                    models.Index(fields=["namespace_id", "-id"], name="audit_of_a_namespace"),
                    models.Index(fields=["action", "-id"], name="audit_of_an_action"),
                    models.Index(fields=["at"], name="audit_by_time"),
                    models.Index(fields=["subject", "-id"], name="audit_of_a_subject"),
                    models.Index(fields=["address", "-id"], name="audit_of_an_address"),
                    models.Index(
                        django.db.models.functions.text.Upper("actor_name"),
                        models.OrderBy(models.F("id"), descending=True),
                        name="audit_of_a_name",
                    ),
                ],
            },
        ),
        RunWithoutModels(_guard, _unguard),
    ]
