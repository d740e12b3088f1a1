import django.core.validators
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("namespaces", "0003_service_of_a_place"),
    ]

    operations = [
        migrations.AddField(
            model_name=name,
            name="priority_ceiling",
            field=models.IntegerField(default=0, validators=[django.core.validators.MinValueValidator(0)]),
        )
        for name in ("historicalquota", "quota")
    ]
