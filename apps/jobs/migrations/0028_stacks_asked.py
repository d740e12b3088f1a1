from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('jobs', '0027_packages'),
    ]

    operations = [
        migrations.AddField(
            model_name='taskfact',
            name='stacks_asked',
            field=models.PositiveIntegerField(default=0),
        ),
    ]
