from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("workbench", "0006_spark_history"),
    ]

    operations = [
        migrations.AddField(
            model_name="workbenchsession",
            name="spark_executors",
            field=models.PositiveSmallIntegerField(default=0),
        ),
    ]
