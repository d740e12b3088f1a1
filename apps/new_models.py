"""How migrations make the tables of an empty database in little time.

Not here: what the models are (the migrations of each app), and why some replace others (decision 045).
"""

from typing import Any, cast

from django.db import migrations
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations.state import ProjectState


class NewModel(migrations.CreateModel):
    """As `CreateModel`, for a model that none of those before it refers to.

    Django again makes every model that is related to the added one, directly or not. Ours all are, by their users and
    namespaces: with 120 models, more than ten seconds of them. It does so to keep the state of before free of the
    relations to the added model, and nothing looks at that state while a table is created.
    """

    def state_forwards(self, app_label: str, state: ProjectState) -> None:
        made = state.__dict__.pop("apps", None)  # without it, the model is added to the state alone
        super().state_forwards(app_label, state)
        if made is not None:
            state.apps = made
            made.render_multiple([state.models[app_label, self.name_lower]])


class RunWithoutModels(migrations.RunPython):
    """As `RunPython`, for what needs the connection alone. It is given None for the models, which Django would all make
    for it."""

    def database_forwards(
        self, app_label: str, schema_editor: BaseDatabaseSchemaEditor, from_state: Any, to_state: Any
    ) -> None:
        self.code(cast(Any, None), schema_editor)


class RunWhereRows(migrations.RunPython):
    """As `RunPython`, for what changes rows of `table`: nothing happens, and no models are made, where it has none."""

    def __init__(self, table: str, code: Any) -> None:
        super().__init__(code, migrations.RunPython.noop)
        self.table = table

    def database_forwards(
        self, app_label: str, schema_editor: BaseDatabaseSchemaEditor, from_state: Any, to_state: Any
    ) -> None:
        with schema_editor.connection.cursor() as cursor:
            cursor.execute(f"SELECT 1 FROM {schema_editor.quote_name(self.table)} LIMIT 1")
            if cursor.fetchone() is None:
                return
        super().database_forwards(app_label, schema_editor, from_state, to_state)
