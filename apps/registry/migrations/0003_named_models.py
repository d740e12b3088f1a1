from typing import Any

import django.db.models.deletion
import django.utils.timezone
from django.conf import settings
from django.db import migrations, models

import yardmaster.ids
from yardmaster.storage.file_list import ListedFile, pack

STAGES = [("", "No stage"), ("staging", "Staging"), ("production", "Production"), ("archived", "Archived")]
USER = {"blank": True, "null": True, "on_delete": django.db.models.deletion.SET_NULL, "related_name": "+"}
LONGEST = 100


def name_models(apps: Any, schema_editor: Any) -> None:
    """Every model of a job becomes a version of the model of its name, in the order in which they were made. The ids
    stay; so do the files, where they lie."""
    old = apps.get_model("registry", "KeptModel").objects
    pending = apps.get_model("registry", "ModelUpload").objects
    for row in old.filter(completed_at__isnull=True).iterator(chunk_size=500):
        pending.create(upload_id=row.upload_id, job_id=row.job_id, attempt=row.attempt, stopped=row.stopped)
    rows = old.filter(completed_at__isnull=False).select_related("job").order_by("completed_at", "pk")
    for row in rows.iterator(chunk_size=500):
        _keep(apps, row)


def _keep(apps: Any, row: Any) -> None:
    upload = apps.get_model("uploads", "Upload").objects.filter(pk=row.upload_id).first()
    if upload is None or upload.state == "deleting":
        return
    models_, versions = apps.get_model("registry", "Model").objects, apps.get_model("registry", "ModelVersion").objects
    name = row.name.strip()[:LONGEST].strip() or "model"
    model, _ = models_.get_or_create(
        namespace_id=row.namespace_id, name=name, deleted_at=None, defaults={"created_by_id": row.job.owner_id}
    )
    model.latest_number += 1
    model.updated_at = row.completed_at
    model.save(update_fields=["latest_number", "updated_at"])
    _list_files(apps, row)
    spec = row.job.spec if isinstance(row.job.spec, dict) else {}
    version = versions.create(
        id=row.pk, parent=model, number=model.latest_number, upload_id=row.upload_id, key_prefix=upload.key_prefix,
        size=row.size, file_count=len(row.files), added=0, changed=0, removed=0, created_by_id=row.job.owner_id,
        job_id=row.job_id, source_job=row.job_id, job_name=row.job.name, attempt=row.attempt, stopped=row.stopped,
        source=_source(spec, row.job),
    )  # fmt: skip
    versions.filter(pk=version.pk).update(created_at=row.completed_at)
    if version.number == 1:
        models_.filter(pk=model.pk).update(created_at=row.completed_at)


def _list_files(apps: Any, row: Any) -> None:
    """The list of files is the upload's manifest; one that was lost is made of the row."""
    listed = [ListedFile(one["path"], one["size"], "", one["sha256"]) for one in row.files]
    apps.get_model("uploads", "Manifest").objects.get_or_create(upload_id=row.upload_id, defaults={"packed": pack(listed)})


def _source(spec: dict[str, Any], job: Any) -> dict[str, Any]:
    known = ("entry_point", "arguments", "strategy")
    inputs = spec.get("inputs") if isinstance(spec.get("inputs"), list) else []
    return {
        "engine": job.engine,
        **{key: spec[key] for key in known if key in spec},
        "code": {"version": spec["code"]} if spec.get("code") else None,
        "inputs": [
            {"version": one.get("dataset_version"), "as": one.get("name", "")} for one in inputs if isinstance(one, dict)
        ],
    }


def drop_nothing(apps: Any, schema_editor: Any) -> None:
    """Versions cannot become rows of one job again."""


class Migration(migrations.Migration):
    dependencies = [
        ("jobs", "0017_outputs"),
        ("namespaces", "0001_initial"),
        ("registry", "0002_model_of_a_stopped_job"),
        ("uploads", "0007_output_kind"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    run_before = [("uploads", "0008_files_in_blocks")]  # which puts the lists of files elsewhere

    operations = [
        migrations.RemoveIndex("model", "model_list"),
        migrations.RenameModel("Model", "KeptModel"),
        migrations.CreateModel(
            name="Model",
            fields=[
                ("id", models.UUIDField(default=yardmaster.ids.new_id, editable=False, primary_key=True, serialize=False)),
                ("name", models.CharField(max_length=100)),
                ("description", models.TextField(blank=True, max_length=10000)),
                ("latest_number", models.PositiveIntegerField(default=0)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("updated_at", models.DateTimeField(default=django.utils.timezone.now)),
                ("deleted_at", models.DateTimeField(blank=True, null=True)),
                ("created_by", models.ForeignKey(to=settings.AUTH_USER_MODEL, **USER)),
                ("deleted_by", models.ForeignKey(to=settings.AUTH_USER_MODEL, **USER)),
                ("namespace", models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name="+", to="namespaces.namespace")),
            ],
            options={
                "indexes": [
                    models.Index(fields=["namespace", "id"], name="model_list"),
                    models.Index(condition=models.Q(("deleted_at__isnull", False)), fields=["deleted_at"], name="model_deleted"),
                ],
                "constraints": [
                    models.UniqueConstraint(condition=models.Q(("deleted_at__isnull", True)), fields=("namespace", "name"), name="model_name_is_unique_in_namespace")
                ],
            },
        ),
        migrations.CreateModel(
            name="ModelVersion",
            fields=[
                ("id", models.UUIDField(editable=False, primary_key=True, serialize=False)),
                ("number", models.PositiveIntegerField()),
                ("note", models.CharField(blank=True, max_length=1000)),
                ("upload_id", models.UUIDField(unique=True)),
                ("key_prefix", models.CharField(max_length=200)),
                ("size", models.BigIntegerField()),
                ("file_count", models.PositiveIntegerField()),
                ("added", models.PositiveIntegerField()),
                ("changed", models.PositiveIntegerField()),
                ("removed", models.PositiveIntegerField()),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("source_job", models.UUIDField(db_index=True)),
                ("job_name", models.CharField(max_length=200)),
                ("attempt", models.PositiveIntegerField()),
                ("stopped", models.BooleanField(default=False)),
                ("source", models.JSONField(default=dict)),
                ("metrics", models.JSONField(default=list)),
                ("contents", models.JSONField(blank=True, null=True)),
                ("stage", models.CharField(blank=True, choices=STAGES, default="", max_length=10)),
                ("deleted_at", models.DateTimeField(blank=True, null=True)),
                ("created_by", models.ForeignKey(to=settings.AUTH_USER_MODEL, **USER)),
                ("deleted_by", models.ForeignKey(to=settings.AUTH_USER_MODEL, **USER)),
                ("job", models.ForeignKey(to="jobs.job", **USER)),
                ("parent", models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name="versions", to="registry.model")),
            ],
            options={
                "indexes": [
                    models.Index(condition=models.Q(("deleted_at__isnull", False)), fields=["deleted_at"], name="modelversion_deleted"),
                    models.Index(condition=models.Q(("contents__isnull", True)), fields=["id"], name="modelversion_unread"),
                ],
                "constraints": [
                    models.UniqueConstraint(fields=("parent", "number"), name="modelversion_numbers_are_unique"),
                    models.UniqueConstraint(condition=models.Q(("stage__in", ["staging", "production"])), fields=("parent", "stage"), name="one_version_per_stage"),
                ],
            },
        ),
        migrations.CreateModel(
            name="ModelUpload",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("upload_id", models.UUIDField(unique=True)),
                ("attempt", models.PositiveIntegerField()),
                ("stopped", models.BooleanField(default=False)),
                ("job", models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name="+", to="jobs.job")),
            ],
        ),
        migrations.CreateModel(
            name="StageChange",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("number", models.PositiveIntegerField()),
                ("before", models.CharField(blank=True, choices=STAGES, max_length=10)),
                ("after", models.CharField(blank=True, choices=STAGES, max_length=10)),
                ("note", models.CharField(blank=True, max_length=1000)),
                ("at", models.DateTimeField()),
                ("by", models.ForeignKey(to=settings.AUTH_USER_MODEL, **USER)),
                ("model", models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name="stage_changes", to="registry.model")),
            ],
            options={"indexes": [models.Index(fields=["model", "id"], name="stage_changes_of_model")]},
        ),
        migrations.RunPython(name_models, drop_nothing),
        migrations.DeleteModel("KeptModel"),
    ]
