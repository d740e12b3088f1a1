"""As 0001 to 0006 together, for databases that have none of them."""

import django.core.serializers.json
import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

import yardmaster.ids
from apps.new_models import NewModel


class Migration(migrations.Migration):
    replaces = [
        ("notifications", "0001_initial"),
        ("notifications", "0002_announcements"),
        ("notifications", "0003_digests"),
        ("notifications", "0004_broadcasts"),
        ("notifications", "0005_unsubscribing"),
        ("notifications", "0006_limit_of_quota_level"),
    ]

    initial = True

    dependencies = [
        ("accounts", "0002_browsers"),
        ("jobs", "0001_initial"),
        ("namespaces", "0014_preemption_of_classes"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        NewModel(
            name="MailChoices",
            fields=[
                (
                    "user",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="mail_choices",
                        serialize=False,
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                ("on_success", models.BooleanField(default=False)),
                ("on_failure", models.BooleanField(default=True)),
                ("on_stop", models.BooleanField(default=False)),
                ("on_wait", models.BooleanField(default=False)),
                (
                    "wait_minutes",
                    models.PositiveIntegerField(
                        choices=[(15, "15 minutes"), (60, "an hour"), (240, "4 hours"), (1440, "a day")], default=60
                    ),
                ),
                ("with_log", models.BooleanField(default=True)),
                ("daily_hour", models.PositiveSmallIntegerField(db_default=8, default=8)),
                ("flood", models.PositiveSmallIntegerField(db_default=10, default=10)),
            ],
        ),
        NewModel(
            name="Broadcast",
            fields=[
                (
                    "id",
                    models.UUIDField(default=yardmaster.ids.new_id, editable=False, primary_key=True, serialize=False),
                ),
                ("text", models.CharField(max_length=500)),
                (
                    "kind",
                    models.CharField(
                        choices=[("information", "Information"), ("warning", "Warning")],
                        default="information",
                        max_length=16,
                    ),
                ),
                ("begins_at", models.DateTimeField()),
                ("ends_at", models.DateTimeField(blank=True, null=True)),
                ("on_sign_in", models.BooleanField(default=False)),
                ("at", models.DateTimeField()),
                ("by_mail", models.BooleanField(default=False)),
                ("mailed_upto", models.UUIDField(blank=True, null=True)),
                ("mailed_at", models.DateTimeField(blank=True, null=True)),
                (
                    "by",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("ends_at", None), ("ends_at__gt", models.F("begins_at")), _connector="OR"),
                        name="a_notice_ends_after_it_begins",
                    )
                ],
            },
        ),
        NewModel(
            name="HiddenBroadcast",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                (
                    "broadcast",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="hidden",
                        to="notifications.broadcast",
                    ),
                ),
                (
                    "user",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="+", to=settings.AUTH_USER_MODEL
                    ),
                ),
            ],
            options={
                "constraints": [models.UniqueConstraint(fields=("broadcast", "user"), name="a_notice_is_hidden_once")],
            },
        ),
        NewModel(
            name="Note",
            fields=[
                (
                    "id",
                    models.UUIDField(default=yardmaster.ids.new_id, editable=False, primary_key=True, serialize=False),
                ),
                ("key", models.CharField(max_length=100)),
                ("kind", models.CharField(max_length=40)),
                ("way", models.CharField(choices=[("mail", "mail"), ("chat", "chat"), ("none", "none")], max_length=4)),
                ("body", models.JSONField(encoder=django.core.serializers.json.DjangoJSONEncoder)),
                ("created_at", models.DateTimeField()),
                ("due_at", models.DateTimeField(blank=True, null=True)),
                (
                    "namespace",
                    models.ForeignKey(
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="namespaces.namespace",
                    ),
                ),
                (
                    "user",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "indexes": [
                    models.Index(condition=models.Q(("due_at__isnull", False)), fields=["due_at"], name="notes_due"),
                    models.Index(fields=["user", "kind", "created_at"], name="notes_of_user"),
                    models.Index(fields=["created_at"], name="notes_by_age"),
                    models.Index(fields=["namespace"], name="notes_of_namespace"),
                ],
                "constraints": [models.UniqueConstraint(fields=("user", "key"), name="one_note_per_key")],
            },
        ),
        NewModel(
            name="Notice",
            fields=[
                (
                    "id",
                    models.UUIDField(default=yardmaster.ids.new_id, editable=False, primary_key=True, serialize=False),
                ),
                ("attempt", models.PositiveIntegerField()),
                (
                    "event",
                    models.CharField(
                        choices=[
                            ("succeeded", "Succeeded"),
                            ("failed", "Failed"),
                            ("stopped", "Stopped"),
                            ("waits", "Waits"),
                        ],
                        max_length=10,
                    ),
                ),
                ("created_at", models.DateTimeField()),
                ("due_at", models.DateTimeField(blank=True, null=True)),
                ("tries", models.PositiveIntegerField(default=0)),
                ("sent_at", models.DateTimeField(blank=True, null=True)),
                ("problem", models.CharField(blank=True, max_length=300)),
                ("sent_by", models.CharField(blank=True, db_default="", default="", max_length=6)),
                (
                    "job",
                    models.ForeignKey(
                        db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name="+", to="jobs.job"
                    ),
                ),
                (
                    "user",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "indexes": [
                    models.Index(fields=["user", "id"], name="notices_of_user"),
                    models.Index(condition=models.Q(("due_at__isnull", False)), fields=["due_at"], name="notices_due"),
                ],
                "constraints": [
                    models.UniqueConstraint(fields=("job", "attempt", "event", "user"), name="one_notice_per_event")
                ],
            },
        ),
        NewModel(
            name="NoticeChoice",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("kind", models.CharField(max_length=40)),
                ("way", models.CharField(choices=[("mail", "mail"), ("chat", "chat"), ("none", "none")], max_length=4)),
                (
                    "pace",
                    models.CharField(choices=[("now", "now"), ("hourly", "hourly"), ("daily", "daily")], max_length=6),
                ),
                (
                    "namespace",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="namespaces.namespace",
                    ),
                ),
                (
                    "user",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("user", "kind", "namespace"), name="one_notice_choice"),
                    models.UniqueConstraint(
                        condition=models.Q(("namespace__isnull", True)),
                        fields=("user", "kind"),
                        name="one_notice_choice_of_kind",
                    ),
                ],
            },
        ),
        NewModel(
            name="QuotaLevel",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("resource", models.CharField(max_length=300)),
                ("level", models.PositiveSmallIntegerField()),
                ("limit", models.FloatField(null=True)),
                ("at", models.DateTimeField()),
                (
                    "namespace",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="namespaces.namespace",
                    ),
                ),
            ],
            options={
                "constraints": [models.UniqueConstraint(fields=("namespace", "resource"), name="one_quota_level")],
            },
        ),
        NewModel(
            name="Announcement",
            fields=[
                (
                    "id",
                    models.UUIDField(default=yardmaster.ids.new_id, editable=False, primary_key=True, serialize=False),
                ),
                ("key", models.CharField(max_length=100)),
                ("kinds", models.CharField(blank=True, db_default="", default="", max_length=800)),
                ("subject", models.CharField(max_length=200)),
                ("body", models.TextField()),
                ("created_at", models.DateTimeField()),
                ("due_at", models.DateTimeField(blank=True, null=True)),
                ("tries", models.PositiveIntegerField(default=0)),
                ("sent_at", models.DateTimeField(blank=True, null=True)),
                ("problem", models.CharField(blank=True, max_length=300)),
                (
                    "user",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="+", to=settings.AUTH_USER_MODEL
                    ),
                ),
            ],
            options={
                "indexes": [
                    models.Index(
                        condition=models.Q(("due_at__isnull", False)), fields=["due_at"], name="announcements_due"
                    )
                ],
                "constraints": [models.UniqueConstraint(fields=("user", "key"), name="one_announcement_per_key")],
            },
        ),
    ]
