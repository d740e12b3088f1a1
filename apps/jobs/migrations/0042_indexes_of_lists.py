from typing import Any

from django.conf import settings
from django.db import migrations, models
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations.state import ProjectState


class AddIndexBeside(migrations.AddIndex):
    """As `AddIndex`; on PostgreSQL without keeping jobs from being written while a large table is read for it."""

    def database_forwards(
        self, app_label: str, schema_editor: BaseDatabaseSchemaEditor, from_state: ProjectState, to_state: ProjectState
    ) -> None:
        model = to_state.apps.get_model(app_label, self.model_name)
        if self.allow_migrate_model(schema_editor.connection.alias, model):
            how: dict[str, Any] = {}
            if schema_editor.connection.vendor == "postgresql":
                how = {"concurrently": True}
                # What an earlier try has left: built whole, or broken off and not valid.
                schema_editor.execute(f'DROP INDEX CONCURRENTLY IF EXISTS "{self.index.name}"')
            schema_editor.add_index(model, self.index, **how)


class Migration(migrations.Migration):
    """Which jobs lists show where no filter is chosen, and who held GPUs for how long. What failed half way is
    begun again."""

    atomic = False

    dependencies = [
        ("jobs", "0041_retention"),
        ("namespaces", "0014_preemption_of_classes"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        AddIndexBeside(
            model_name="job",
            index=models.Index(
                condition=models.Q(
                    ("archived_at__isnull", True),
                    ("deleted_at__isnull", True),
                    models.Q(("strategy", "service"), _negated=True),
                ),
                fields=["namespace", "id"],
                name="job_shown",
            ),
        ),
        AddIndexBeside(
            model_name="reservation",
            index=models.Index(
                condition=models.Q(("gpus__gt", 0)),
                fields=["job"],
                include=("gpus", "reserved_at", "released_at"),
                name="usage_of_gpus",
            ),
        ),
    ]
