"""Jobs and attempts are cleaned up, and all tasks of a job restart as a gang: in columns and in kinds of events."""

from django.db import migrations

KINDS = {"tidied": "cleaned_up", "restarted_together": "gang_restart"}


def renamed(kinds):
    def run(apps, schema_editor):
        events = apps.get_model("jobs", "JobEvent").objects.using(schema_editor.connection.alias)
        for old, new in kinds.items():
            events.filter(kind=old).update(kind=new)

    return run


class Migration(migrations.Migration):
    dependencies = [("jobs", "0015_job_inputs")]

    operations = [
        migrations.RenameField("job", "tidied_at", "cleaned_up_at"),
        migrations.RenameField("jobattempt", "tidied_at", "cleaned_up_at"),
        migrations.RunPython(renamed(KINDS), renamed({new: old for old, new in KINDS.items()})),
    ]
