from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('jobs', '0023_volume_identity'),
    ]

    operations = [
        migrations.AddField(
            model_name='job',
            name='watched_until',
            field=models.DateTimeField(blank=True, null=True),
        ),
    ]
