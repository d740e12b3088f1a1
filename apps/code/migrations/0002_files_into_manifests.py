from itertools import groupby
from typing import Any

from django.db import migrations

from yardmaster.storage.file_list import ListedFile, pack


def gather(apps: Any, schema_editor: Any) -> None:
    """The files of every version into the manifest of its upload, one version at a time."""
    manifests = apps.get_model("uploads", "Manifest").objects
    rows = apps.get_model("code", "CodeFile").objects.select_related("version").order_by("version_id", "path")
    for version, files in groupby(rows.iterator(chunk_size=2000), key=lambda row: row.version):
        listed = [ListedFile(row.path, row.size, "", row.sha256) for row in files]
        manifests.update_or_create(upload_id=version.upload_id, defaults={"packed": pack(listed)})


class Migration(migrations.Migration):
    dependencies = [("code", "0001_initial"), ("uploads", "0003_files_into_manifests")]

    operations = [migrations.RunPython(gather), migrations.DeleteModel("CodeFile")]
