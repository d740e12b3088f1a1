
import django.db.models.deletion
import yardmaster.ids
from django.conf import settings
from django.db import migrations, models

from apps.new_models import NewModel


class Migration(migrations.Migration):

    initial = True

    dependencies = [
        ('namespaces', '0014_preemption_of_classes'),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        NewModel(
            name='SparkCluster',
            fields=[
                ('id', models.UUIDField(default=yardmaster.ids.new_id, editable=False, primary_key=True, serialize=False)),
                ('name', models.CharField(max_length=63, unique=True)),
                ('master', models.CharField(max_length=500)),
                ('driver_address', models.CharField(max_length=253)),
                ('python', models.CharField(default='python3', max_length=300)),
                ('sealed', models.BinaryField(null=True)),
                ('key_id', models.CharField(blank=True, max_length=16)),
                ('most_executors', models.PositiveIntegerField(blank=True, null=True)),
                ('most_cores', models.PositiveIntegerField(blank=True, null=True)),
                ('most_memory', models.BigIntegerField(blank=True, null=True)),
                ('most_cores_at_once', models.PositiveIntegerField(blank=True, null=True)),
                ('everyone', models.BooleanField(default=True)),
                ('enabled', models.BooleanField(default=True)),
                ('created_at', models.DateTimeField()),
                ('changed_at', models.DateTimeField()),
                ('state', models.CharField(choices=[('checking', 'Checking'), ('reachable', 'Reachable'), ('unreachable', 'Unreachable')], default='checking', max_length=12)),
                ('problem', models.CharField(blank=True, max_length=1000)),
                ('asked_at', models.DateTimeField()),
                ('checked_at', models.DateTimeField(blank=True, null=True)),
                ('changed_by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('created_by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('namespaces', models.ManyToManyField(blank=True, related_name='+', to='namespaces.namespace')),
            ],
        ),
    ]
