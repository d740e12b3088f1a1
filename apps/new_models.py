"""How migrations add many models in little time.

Not here: what the models are (the migrations of each app), and why some replace others (decision 045).
"""

from django.db import migrations
from django.db.migrations.state import ProjectState


class NewModel(migrations.CreateModel):
    """As `CreateModel`, for a model that none of those before it refers to.

    Django makes every model anew that is related to the added one, directly or not. Ours all are, by their users and
    namespaces: with 120 models, more than ten seconds of them. It does so to keep the state of before free of the
    relations to the added model, and nothing looks at that state while a table is created.
    """

    def state_forwards(self, app_label: str, state: ProjectState) -> None:
        made = state.__dict__.pop("apps", None)  # without it, the model is added to the state alone
        super().state_forwards(app_label, state)
        if made is not None:
            state.apps = made
            made.render_multiple([state.models[app_label, self.name_lower]])
