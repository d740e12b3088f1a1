"""The versions that a job names are called its inputs."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("jobs", "0014_leadership_moves")]

    operations = [
        migrations.RenameModel("JobVersion", "JobInput"),
        migrations.AlterField(
            model_name="jobinput",
            name="job",
            field=models.ForeignKey(
                db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name="inputs", to="jobs.job"
            ),
        ),
    ]
