from django.db import migrations, models


def note_what_roles_need(apps, schema_editor):
    """Jobs that wait are admitted without their specification: what each role needs stands beside the whole."""
    Job = apps.get_model("jobs", "Job")
    changed = []
    for job in Job.objects.filter(phase="QUEUED").only("spec", "needs").iterator(500):
        job.needs["roles"] = {role: _times(one, one.get("replicas", 1)) for role, one in job.spec["roles"].items()}
        changed.append(job)
    Job.objects.bulk_update(changed, ["needs"], batch_size=500)


def _times(one, replicas):
    found = {name: one.get(name, 0) * replicas for name in ("cpu", "memory", "gpus")}
    return {**found, "extended": {name: count * replicas for name, count in one.get("extended", {}).items()}}


class Migration(migrations.Migration):
    dependencies = [
        ("jobs", "0005_what_lists_show"),
    ]

    operations = [
        migrations.AddField(
            model_name="job", name="turn_at", field=models.DateTimeField(blank=True, null=True)
        ),
        migrations.AddField(
            model_name="job", name="waiting_digest", field=models.CharField(blank=True, default="", max_length=24),
            preserve_default=False,
        ),
        migrations.CreateModel(
            name="QueuePass",
            fields=[
                ("engine", models.CharField(max_length=63, primary_key=True, serialize=False)),
                ("asked", models.BooleanField(default=False)),
                ("next_at", models.DateTimeField(blank=True, null=True)),
                ("lease_owner", models.CharField(blank=True, max_length=32)),
                ("lease_until", models.DateTimeField(blank=True, null=True)),
                ("setbacks", models.PositiveIntegerField(default=0)),
                ("refreshed_at", models.DateTimeField(blank=True, null=True)),
            ],
        ),
        migrations.RunPython(note_what_roles_need, migrations.RunPython.noop),
    ]
