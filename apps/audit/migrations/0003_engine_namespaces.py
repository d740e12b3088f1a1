"""The removal of what an engine kept for a namespace has another name now."""

from django.db import migrations

OLD, NEW = "place.removed", "engine_namespace.removed"


def renamed(old, new):
    def run(apps, schema_editor):
        events = apps.get_model("audit", "AuditEvent").objects.using(schema_editor.connection.alias)
        events.filter(action=old).update(action=new)

    return run


class Migration(migrations.Migration):
    dependencies = [("audit", "0002_whence_and_counts")]

    operations = [migrations.RunPython(renamed(OLD, NEW), renamed(NEW, OLD))]
