from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("workbench", "0008_spark_cluster"),
    ]

    operations = [
        migrations.AddField(
            model_name="workbenchsession",
            name="spark_cores",
            field=models.PositiveSmallIntegerField(default=1),
        ),
        migrations.AddField(
            model_name="workbenchsession",
            name="spark_memory",
            field=models.BigIntegerField(default=1073741824),
        ),
    ]
