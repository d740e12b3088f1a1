"""As 0001 to 0014 together, for databases that have none of them."""

import django.core.validators
import django.db.models.deletion
import simple_history.models
from django.conf import settings
from django.db import migrations, models

import yardmaster.ids
from apps.new_models import NewModel


class Migration(migrations.Migration):
    replaces = [
        ("namespaces", "0001_initial"),
        ("namespaces", "0002_places"),
        ("namespaces", "0003_service_of_a_place"),
        ("namespaces", "0004_priority_ceiling"),
        ("namespaces", "0005_limits_by_name"),
        ("namespaces", "0006_settings_of_a_place"),
        ("namespaces", "0007_engine_namespaces"),
        ("namespaces", "0008_quota_of_files"),
        ("namespaces", "0009_invitations"),
        ("namespaces", "0010_more_quotas"),
        ("namespaces", "0011_shares"),
        ("namespaces", "0012_service_accounts"),
        ("namespaces", "0013_scheduled_quotas"),
        ("namespaces", "0014_preemption_of_classes"),
    ]

    initial = True

    dependencies = [
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        NewModel(
            name="Namespace",
            fields=[
                (
                    "id",
                    models.UUIDField(default=yardmaster.ids.new_id, editable=False, primary_key=True, serialize=False),
                ),
                ("slug", models.SlugField(max_length=63, unique=True)),
                ("title", models.CharField(blank=True, max_length=100)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("closed_at", models.DateTimeField(blank=True, editable=False, null=True)),
                (
                    "owner",
                    models.OneToOneField(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="personal_namespace",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
        ),
        NewModel(
            name="DefaultQuota",
            fields=[
                (
                    "kind",
                    models.CharField(
                        choices=[("personal", "Personal namespaces"), ("team", "Team namespaces")],
                        max_length=10,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("limits", models.JSONField(default=dict)),
                ("changed_at", models.DateTimeField()),
                (
                    "changed_by",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
        ),
        NewModel(
            name="EngineNamespace",
            fields=[
                (
                    "id",
                    models.UUIDField(default=yardmaster.ids.new_id, editable=False, primary_key=True, serialize=False),
                ),
                ("namespace_id", models.UUIDField()),
                ("slug", models.CharField(max_length=63)),
                ("engine", models.CharField(max_length=63)),
                ("goes", models.BooleanField(default=False)),
                ("shaped_at", models.DateTimeField(blank=True, null=True)),
                ("settings_digest", models.CharField(blank=True, max_length=64)),
                ("next_look_at", models.DateTimeField(db_index=True)),
                ("setbacks", models.PositiveIntegerField(default=0)),
                ("problem", models.TextField(blank=True)),
                ("remedy", models.TextField(blank=True)),
                ("left", models.JSONField(blank=True, default=list)),
            ],
            options={
                "constraints": [models.UniqueConstraint(fields=("namespace_id", "engine"), name="one_per_engine")],
            },
        ),
        NewModel(
            name="Invitation",
            fields=[
                (
                    "id",
                    models.UUIDField(default=yardmaster.ids.new_id, editable=False, primary_key=True, serialize=False),
                ),
                ("digest", models.CharField(editable=False, max_length=64, unique=True)),
                ("email", models.EmailField(blank=True, max_length=254)),
                (
                    "role",
                    models.CharField(
                        choices=[("viewer", "Viewer"), ("member", "Member"), ("manager", "Manager")],
                        default="member",
                        max_length=10,
                    ),
                ),
                ("created_at", models.DateTimeField()),
                ("expires_at", models.DateTimeField()),
                ("uses", models.PositiveSmallIntegerField(default=1)),
                ("used", models.PositiveSmallIntegerField(default=0)),
                ("revoked_at", models.DateTimeField(blank=True, null=True)),
                (
                    "created_by",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="invitations",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "namespace",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="invitations",
                        to="namespaces.namespace",
                    ),
                ),
            ],
        ),
        NewModel(
            name="InvitationUse",
            fields=[
                (
                    "id",
                    models.UUIDField(default=yardmaster.ids.new_id, editable=False, primary_key=True, serialize=False),
                ),
                ("username", models.CharField(max_length=150)),
                ("at", models.DateTimeField()),
                (
                    "invitation",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="used_by", to="namespaces.invitation"
                    ),
                ),
                (
                    "user",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
        ),
        NewModel(
            name="Quota",
            fields=[
                (
                    "namespace",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="quota",
                        serialize=False,
                        to="namespaces.namespace",
                    ),
                ),
                ("cpu", models.DecimalField(blank=True, decimal_places=3, max_digits=12, null=True)),
                ("memory", models.BigIntegerField(blank=True, null=True)),
                ("gpus", models.IntegerField(blank=True, null=True)),
                ("storage", models.BigIntegerField(blank=True, null=True)),
                ("files", models.BigIntegerField(blank=True, null=True)),
                ("running_jobs", models.IntegerField(blank=True, null=True)),
                ("logs", models.BigIntegerField(blank=True, null=True)),
                ("sessions", models.IntegerField(blank=True, null=True)),
                ("queued_jobs", models.IntegerField(blank=True, null=True)),
                ("extended", models.JSONField(blank=True, default=dict)),
                (
                    "priority_ceiling",
                    models.IntegerField(default=0, validators=[django.core.validators.MinValueValidator(0)]),
                ),
                ("usual", models.JSONField(blank=True, db_default={}, default=dict)),
            ],
        ),
        NewModel(
            name="HistoricalQuota",
            fields=[
                ("cpu", models.DecimalField(blank=True, decimal_places=3, max_digits=12, null=True)),
                ("memory", models.BigIntegerField(blank=True, null=True)),
                ("gpus", models.IntegerField(blank=True, null=True)),
                ("storage", models.BigIntegerField(blank=True, null=True)),
                ("files", models.BigIntegerField(blank=True, null=True)),
                ("running_jobs", models.IntegerField(blank=True, null=True)),
                ("logs", models.BigIntegerField(blank=True, null=True)),
                ("sessions", models.IntegerField(blank=True, null=True)),
                ("queued_jobs", models.IntegerField(blank=True, null=True)),
                ("extended", models.JSONField(blank=True, default=dict)),
                (
                    "priority_ceiling",
                    models.IntegerField(default=0, validators=[django.core.validators.MinValueValidator(0)]),
                ),
                ("usual", models.JSONField(blank=True, db_default={}, default=dict)),
                ("history_change_reason", models.CharField(max_length=300, null=True)),
                ("history_id", models.AutoField(primary_key=True, serialize=False)),
                ("history_date", models.DateTimeField(db_index=True)),
                (
                    "history_type",
                    models.CharField(choices=[("+", "Created"), ("~", "Changed"), ("-", "Deleted")], max_length=1),
                ),
                (
                    "history_user",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "namespace",
                    models.ForeignKey(
                        blank=True,
                        db_constraint=False,
                        null=True,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        related_name="+",
                        to="namespaces.namespace",
                    ),
                ),
            ],
            options={
                "verbose_name": "historical quota",
                "verbose_name_plural": "historical quotas",
                "ordering": ("-history_date", "-history_id"),
                "get_latest_by": ("history_date", "history_id"),
            },
            bases=(simple_history.models.HistoricalChanges, models.Model),
        ),
        NewModel(
            name="ServiceAccount",
            fields=[
                (
                    "id",
                    models.UUIDField(default=yardmaster.ids.new_id, editable=False, primary_key=True, serialize=False),
                ),
                ("name", models.CharField(max_length=40)),
                ("description", models.CharField(blank=True, max_length=200)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("ended_at", models.DateTimeField(blank=True, editable=False, null=True)),
                (
                    "made_by",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "namespace",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="service_accounts",
                        to="namespaces.namespace",
                    ),
                ),
                (
                    "user",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="service_account",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
        ),
        NewModel(
            name="Membership",
            fields=[
                (
                    "id",
                    models.UUIDField(default=yardmaster.ids.new_id, editable=False, primary_key=True, serialize=False),
                ),
                (
                    "role",
                    models.CharField(
                        choices=[("viewer", "Viewer"), ("member", "Member"), ("manager", "Manager")],
                        default="member",
                        max_length=10,
                    ),
                ),
                ("source", models.CharField(blank=True, db_default="", default="", editable=False, max_length=100)),
                (
                    "user",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="memberships",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "namespace",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="memberships",
                        to="namespaces.namespace",
                    ),
                ),
            ],
            options={
                "constraints": [models.UniqueConstraint(fields=("namespace", "user"), name="one_role_per_member")],
            },
        ),
        NewModel(
            name="PriorityClass",
            fields=[
                (
                    "id",
                    models.UUIDField(default=yardmaster.ids.new_id, editable=False, primary_key=True, serialize=False),
                ),
                ("name", models.CharField(max_length=63, unique=True)),
                (
                    "value",
                    models.IntegerField(
                        validators=[
                            django.core.validators.MinValueValidator(-1000),
                            django.core.validators.MaxValueValidator(1000),
                        ]
                    ),
                ),
                ("description", models.CharField(blank=True, max_length=300)),
                (
                    "users",
                    models.CharField(
                        choices=[
                            ("everyone", "Everyone"),
                            ("namespaces", "Named namespaces"),
                            ("administrators", "Administrators"),
                        ],
                        default="everyone",
                        max_length=16,
                    ),
                ),
                ("is_default", models.BooleanField(default=False)),
                ("preempts", models.BooleanField(db_default=False, default=False)),
                ("is_preemptible", models.BooleanField(db_default=True, default=True)),
                ("namespaces", models.ManyToManyField(blank=True, related_name="+", to="namespaces.namespace")),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        condition=models.Q(("is_default", True)), fields=("is_default",), name="one_default_class"
                    )
                ],
            },
        ),
        NewModel(
            name="ScheduledQuota",
            fields=[
                (
                    "id",
                    models.UUIDField(default=yardmaster.ids.new_id, editable=False, primary_key=True, serialize=False),
                ),
                ("limits", models.JSONField()),
                ("starts_at", models.DateTimeField()),
                ("ends_at", models.DateTimeField()),
                ("reason", models.CharField(max_length=300)),
                ("made_at", models.DateTimeField()),
                ("begun_at", models.DateTimeField(blank=True, null=True)),
                ("over_at", models.DateTimeField(blank=True, null=True)),
                ("cancelled", models.BooleanField(default=False)),
                (
                    "made_by",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "namespace",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="scheduled_quotas",
                        to="namespaces.namespace",
                    ),
                ),
            ],
            options={
                "indexes": [
                    models.Index(
                        condition=models.Q(("over_at", None)), fields=["starts_at"], name="scheduled_quotas_open"
                    )
                ],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("ends_at__gt", models.F("starts_at"))), name="quota_ends_after_start"
                    )
                ],
            },
        ),
        NewModel(
            name="ShareNode",
            fields=[
                (
                    "id",
                    models.UUIDField(default=yardmaster.ids.new_id, editable=False, primary_key=True, serialize=False),
                ),
                ("name", models.CharField(blank=True, max_length=63)),
                (
                    "weight",
                    models.IntegerField(
                        default=1,
                        validators=[
                            django.core.validators.MinValueValidator(0),
                            django.core.validators.MaxValueValidator(1000),
                        ],
                    ),
                ),
                ("guaranteed", models.JSONField(blank=True, default=dict)),
                ("is_default", models.BooleanField(default=False)),
                (
                    "namespace",
                    models.OneToOneField(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="share",
                        to="namespaces.namespace",
                    ),
                ),
                (
                    "parent",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="children",
                        to="namespaces.sharenode",
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        condition=models.Q(("namespace", None)), fields=("name",), name="one_group_of_a_name"
                    ),
                    models.UniqueConstraint(
                        condition=models.Q(("is_default", True)), fields=("is_default",), name="one_default"
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("namespace", None), models.Q(("name", ""), _negated=True)),
                            models.Q(("is_default", False), ("name", ""), ("namespace__isnull", False)),
                            _connector="OR",
                        ),
                        name="is_group_or_namespace",
                    ),
                ],
            },
        ),
    ]
