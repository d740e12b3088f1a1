import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    """The files of an upload as one row. Filled and the old rows dropped by the next one: what a transaction has just
    written cannot be altered in it."""

    dependencies = [("uploads", "0001_initial")]

    operations = [
        migrations.AddField("upload", "example", models.CharField(blank=True, default="", max_length=512), preserve_default=False),
        migrations.AddIndex("upload", models.Index(condition=models.Q(("used", False)), fields=["namespace"], name="upload_unused")),
        migrations.AddIndex("upload", models.Index(condition=models.Q(("used", False)), fields=["created_by"], name="upload_unused_of_user")),
        migrations.CreateModel(
            name="Manifest",
            fields=[
                ("upload", models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, primary_key=True, related_name="+", serialize=False, to="uploads.upload")),
                ("packed", models.BinaryField()),
            ],
        ),
        migrations.CreateModel(
            name="FileBatch",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("number", models.PositiveIntegerField()),
                ("begun", models.JSONField(default=dict)),
                ("found", models.JSONField(default=dict)),
                ("upload", models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name="+", to="uploads.upload")),
            ],
        ),
        migrations.AddConstraint("filebatch", models.UniqueConstraint(fields=("upload", "number"), name="one_batch_per_number")),
    ]
