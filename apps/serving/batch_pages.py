"""The page "Predict over a dataset" of a model's version: a form that makes a job. What that job is: `batch`."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django import forms
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import URLPattern, URLResolver, path, reverse
from django.views.decorators.http import require_http_methods

from apps.accounts.models import User
from apps.accounts.selectors import user_of
from apps.datasets.selectors import DATASETS
from apps.errors import DomainError, NotFound
from apps.jobs.foreign import FIELD, ForeignModel
from apps.jobs.launch.choices import choices_of, grouped
from apps.jobs.launch.program_form import ProgramForm
from apps.jobs.selectors import job_for
from apps.registry.models import ModelVersion
from apps.registry.selectors import model_version_for
from apps.serving.batch import BatchInference, batch_launch
from apps.uploads.versioned.selectors import version_for
from yardmaster.errors import YardmasterError
from yardmaster.job.programs import PREDICT
from yardmaster.job.spec import Role
from yardmaster.job.spec_stored import stored_spec
from yardmaster.quantity import exact_bytes, format_cpu

_FORMATS = (
    ("auto", "Automatic"), ("tfrecord", "TFRecord"), ("csv", "CSV with a header"), ("jsonl", "JSON lines"),
    ("images", "Images in folders"), ("text", "Text files in folders"), ("numpy", "NumPy arrays (.npy)"),
)  # fmt: skip
_WRITTEN = (("jsonl", "JSON lines"), ("tfrecord", "TFRecord"), ("tfrecord-gzip", "TFRecord, GZIP"))
_MOST_SIGNATURES = 50


class BatchForm(ProgramForm):
    """What is asked for, with defaults that suit most models."""

    dataset_version = forms.ChoiceField(label="Dataset", error_messages={"required": "Choose a dataset."})
    to = forms.CharField(
        label="Predictions", max_length=100, help_text="A dataset of this name gets a new version; or it is created."
    )
    signature = forms.ChoiceField(label="Signature", required=False)
    keep = forms.CharField(
        label="Columns to keep", required=False, max_length=2000,
        help_text="Written beside the predictions: id, label. File and row always are.",
    )  # fmt: skip
    workers = forms.IntegerField(label="Workers", initial=1, min_value=1, max_value=1_000)
    most_bad = forms.IntegerField(
        label="Bad records to skip", initial=0, min_value=0, max_value=10**9,
        help_text="Listed with file and row. 0: the job fails at the first one.",
    )  # fmt: skip
    columns = forms.CharField(
        label="Columns of the inputs", required=False, max_length=2000,
        help_text="Where names differ: x=pixels, or x=a+b+c for numbers in this order.",
    )  # fmt: skip
    split = forms.CharField(label="Split", required=False, max_length=255, help_text="Of a prepared dataset: test.")
    format = forms.ChoiceField(label="Format of the files", choices=_FORMATS, initial="auto")
    pixels = forms.ChoiceField(label="Pixels of images", choices=(("0-255", "0 to 255"), ("0-1", "0 to 1")))
    batch = forms.IntegerField(label="Records per batch", initial=64, min_value=1, max_value=10_000)
    write = forms.ChoiceField(label="Format of the predictions", choices=_WRITTEN, initial="jsonl")
    shard_megabytes = forms.IntegerField(label="File size in MB", initial=150, min_value=1, max_value=5_000)
    cpu = forms.CharField(label="CPU of one worker", required=False, max_length=20)
    memory = forms.CharField(label="Memory of one worker", required=False, max_length=20)
    note = forms.CharField(label="Note", required=False, max_length=1_000)

    def __init__(self, *args: Any, user: User, version: ModelVersion, **options: Any) -> None:
        super().__init__(*args, **options)
        chosen = [str((self.data if self.is_bound else self.initial).get("dataset_version", ""))]
        found = choices_of(user, {"dataset": chosen})["dataset"]
        datasets = grouped(found, version.parent.namespace.slug)
        self.has_datasets = bool(datasets)
        self.fields["dataset_version"].choices = [("", "Choose a dataset"), *datasets]  # type: ignore[attr-defined]
        names = [str(one["name"]) for one in (version.contents or {}).get("signatures", [])[:_MOST_SIGNATURES]]
        self.fields["signature"].choices = [("", "Default"), *((one, one) for one in names)]  # type: ignore[attr-defined]
        for field in self.fields.values():
            kind = "form-select" if isinstance(field.widget, forms.Select) else "form-control"
            field.widget.attrs |= {"class": kind, "autocomplete": "off"}
        for name in ("cpu", "memory"):
            self.fields[name].widget.attrs["placeholder"] = "as a model server"

    @property
    def main(self) -> list[forms.BoundField]:
        return [self[name] for name in ("dataset_version", "to", "signature", "keep", "workers", "most_bad")]

    @property
    def more(self) -> list[forms.BoundField]:
        chosen = {field.name for field in self.main}
        return [field for field in self if field.name not in chosen]

    @property
    def wanted(self) -> BatchInference:
        """What the valid form says."""
        said = self.cleaned_data
        names = ("signature", "format", "split", "columns", "keep", "pixels", "batch", "write", "most_bad")
        options = {name: said[name] for name in names} | {"shard_bytes": said["shard_megabytes"] * 1_000_000}
        return BatchInference(
            dataset=said["to"], note=said["note"], workers=said["workers"], cpu=said["cpu"] or None,
            memory=said["memory"] or None, options=options,
        )  # fmt: skip


def _of_job(user: User, job_id: str) -> dict[str, Any]:
    """The form as an earlier batch inference was asked for, but for its note; empty where there is none. Raises 404."""
    if not job_id:
        return {}
    try:
        spec = stored_spec(job_for(user, UUID(job_id)).spec)
    except ValueError:
        raise NotFound() from None
    if spec.program != PREDICT or spec.publishes is None:
        return {}
    worker = spec.roles[Role.WORKER]
    found: dict[str, Any] = {**spec.options, "to": spec.publishes.dataset, "workers": worker.replicas}
    if size := found.pop("shard_bytes", 0):
        found["shard_megabytes"] = max(1, int(size) // 1_000_000)
    found |= {"cpu": format_cpu(worker.resources.cpu), "memory": exact_bytes(worker.resources.memory)}
    data = next((one.dataset_version for one in spec.inputs if one.dataset_version is not None), "")
    return found | {"dataset_version": str(data)}


@login_required
@require_http_methods(["GET", "POST"])
def batch_page(request: HttpRequest, version_id: UUID) -> HttpResponse:
    """The form; POST launches the job and leads to its page. `?from=` fills it in as that job was, `?dataset_version=`
    chooses the data."""
    user = user_of(request)
    version = model_version_for(user, version_id)
    first = {"to": f"{version.parent.name[:85]}-predictions", "dataset_version": request.GET.get("dataset_version", "")}
    first |= _of_job(user, request.GET.get("from", ""))
    form = BatchForm(request.POST or None, user=user, version=version, initial=first)
    asks = False
    if request.method == "POST" and form.is_valid():
        try:
            job, _ = batch_launch(
                user=user, version=version, namespace=version.parent.namespace, wanted=form.wanted,
                data=version_for(DATASETS, user, UUID(form.cleaned_data["dataset_version"])),
                confirmed=request.POST.get(FIELD) == "1",
            )  # fmt: skip
            return redirect("job_page", job.pk)
        except ForeignModel as error:
            asks = True
            form.add_error(None, error.detail)
        except (DomainError, YardmasterError) as error:
            form.add_refusal(error)
    way = [
        (reverse("models_page"), "Models"),
        (reverse("model_page", args=[version.parent.pk]), version.parent.name),
        (reverse("model_version_page", args=[version.pk]), f"Version {version.number}"),
    ]
    context = {"form": form, "version": version, "model": version.parent, "asks": asks, "breadcrumbs": way}
    return render(request, "models/batch.html", context, status=400 if form.errors else 200)


pages_urlpatterns: list[URLPattern | URLResolver] = [
    path("model-versions/<uuid:version_id>/batch/", batch_page, name="model_batch_page"),
]
