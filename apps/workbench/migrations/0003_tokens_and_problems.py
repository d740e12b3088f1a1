from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("workbench", "0002_homes")]

    operations = [
        migrations.AddField("workbenchsession", "token_start", models.PositiveIntegerField(default=0)),
        migrations.AddField(
            "workbenchsession", "problem", models.CharField(blank=True, default="", max_length=500)
        ),
    ]
