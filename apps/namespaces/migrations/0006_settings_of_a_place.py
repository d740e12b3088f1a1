from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("namespaces", "0005_limits_by_name"),
    ]

    operations = [
        migrations.AddField(
            model_name="place",
            name="settings_digest",
            field=models.CharField(blank=True, max_length=64),
        ),
    ]
