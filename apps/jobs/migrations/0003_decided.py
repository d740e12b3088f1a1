from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("jobs", "0002_usage_over_time"),
        ("namespaces", "0001_initial"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.AddIndex(
            model_name="job",
            index=models.Index(
                condition=models.Q(("decided_at__isnull", False)),
                fields=["namespace", "decided_at"],
                name="job_decided",
            ),
        ),
    ]
