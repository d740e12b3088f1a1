from django.db import migrations, models


class Migration(migrations.Migration):
    """Attempts that there are keep None: some of their tasks may have started without asking."""

    dependencies = [("jobs", "0045_host_machines")]

    operations = [
        migrations.AddField("jobattempt", "agreed", models.JSONField(blank=True, null=True)),
        migrations.AlterField("jobattempt", "agreed", models.JSONField(blank=True, default=dict, null=True)),
    ]
