"""Places on a cluster have a Service now, below which tasks are named: the next job of each waits until it is there."""

from django.db import migrations


def look_again(apps, schema_editor):
    apps.get_model("namespaces", "Place").objects.filter(goes=False).update(shaped_at=None)


class Migration(migrations.Migration):
    dependencies = [("namespaces", "0002_places")]
    operations = [migrations.RunPython(look_again, migrations.RunPython.noop)]
