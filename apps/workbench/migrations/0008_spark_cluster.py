from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("workbench", "0007_spark_executors"),
    ]

    operations = [
        migrations.AddField(
            model_name="workbenchsession",
            name="spark_cluster",
            field=models.CharField(blank=True, default="", max_length=63),
        ),
    ]
