"""What an engine keeps for a namespace is called an engine namespace."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("namespaces", "0006_settings_of_a_place")]

    operations = [
        migrations.RemoveConstraint("place", "one_place_per_engine"),
        migrations.RenameModel("Place", "EngineNamespace"),
        migrations.AddConstraint(
            "enginenamespace",
            models.UniqueConstraint(fields=["namespace_id", "engine"], name="one_per_engine"),
        ),
    ]
