import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

import yardmaster.ids
from apps.new_models import NewModel


class Migration(migrations.Migration):

    initial = True

    dependencies = [
        ('namespaces', '0008_quota_of_files'),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        NewModel(
            name='DataConnection',
            fields=[
                ('id', models.UUIDField(default=yardmaster.ids.new_id, editable=False, primary_key=True, serialize=False)),
                ('name', models.CharField(max_length=100)),
                ('hosts', models.CharField(max_length=1100)),
                ('tls', models.BooleanField(default=False)),
                ('certificate', models.CharField(blank=True, max_length=128)),
                ('certificate_password', models.CharField(blank=True, max_length=128)),
                ('ca', models.CharField(blank=True, max_length=128)),
                ('username', models.CharField(blank=True, max_length=128)),
                ('password', models.CharField(blank=True, max_length=128)),
                ('created_at', models.DateTimeField()),
                ('changed_at', models.DateTimeField()),
                ('state', models.CharField(choices=[('checking', 'Checking'), ('ready', 'Ready'), ('failed', 'Failed')], default='checking', max_length=10)),
                ('asked_at', models.DateTimeField()),
                ('ended_at', models.DateTimeField(blank=True, null=True)),
                ('problem', models.JSONField(blank=True, null=True)),
                ('found', models.JSONField(blank=True, null=True)),
                ('found_at', models.DateTimeField(blank=True, null=True)),
                ('tries', models.PositiveSmallIntegerField(default=0)),
                ('lease', models.UUIDField(blank=True, null=True)),
                ('leased_until', models.DateTimeField(blank=True, null=True)),
                ('next_look_at', models.DateTimeField(blank=True, db_index=True, null=True)),
                ('asked_by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('created_by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('namespace', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='namespaces.namespace')),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('namespace', 'name'), name='one_connection_of_a_name')],
            },
        ),
    ]
