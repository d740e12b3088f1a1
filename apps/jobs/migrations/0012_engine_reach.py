from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("jobs", "0011_refusals"),
    ]

    operations = [
        migrations.CreateModel(
            name="EngineReach",
            fields=[
                ("engine", models.CharField(max_length=63, primary_key=True, serialize=False)),
                ("subject", models.CharField(blank=True, max_length=64)),
                ("reached", models.BooleanField(blank=True, null=True)),
                ("failures", models.PositiveIntegerField(default=0)),
                ("message", models.TextField(blank=True)),
                ("remedy", models.TextField(blank=True)),
                ("tried_at", models.DateTimeField(blank=True, null=True)),
                ("next_at", models.DateTimeField()),
            ],
        ),
    ]
