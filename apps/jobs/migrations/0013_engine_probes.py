from django.db import migrations, models


class Migration(migrations.Migration):
    """What was known of the engines is tried again within seconds: nothing is carried over."""

    dependencies = [
        ("jobs", "0012_engine_reach"),
    ]

    operations = [
        migrations.CreateModel(
            name="EngineProbe",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("engine", models.CharField(max_length=63)),
                ("probe", models.CharField(max_length=16)),
                ("settings_digest", models.CharField(blank=True, max_length=64)),
                ("is_well", models.BooleanField(blank=True, null=True)),
                ("failures", models.PositiveIntegerField(default=0)),
                ("message", models.TextField(blank=True)),
                ("remedy", models.TextField(blank=True)),
                ("tried_at", models.DateTimeField(blank=True, null=True)),
                ("next_at", models.DateTimeField()),
            ],
        ),
        migrations.AddConstraint(
            model_name="engineprobe",
            constraint=models.UniqueConstraint(fields=("engine", "probe"), name="one_row_per_probe"),
        ),
        migrations.DeleteModel(
            name="EngineReach",
        ),
    ]
