from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("namespaces", "0004_priority_ceiling"),
    ]

    operations = [
        migrations.AddField(
            model_name=name,
            name="extended",
            field=models.JSONField(blank=True, default=dict),
        )
        for name in ("historicalquota", "quota")
    ]
