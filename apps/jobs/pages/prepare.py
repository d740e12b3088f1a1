"""The page "Prepare": a form that makes a preparation job of a dataset version. What a preparation is: `preparing`."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django import forms
from django.conf import settings
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import URLPattern, URLResolver, path, reverse
from django.views.decorators.http import require_http_methods

from apps.accounts.models import User
from apps.accounts.selectors import user_of
from apps.datasets.models import DatasetVersion
from apps.datasets.selectors import DATASETS
from apps.errors import DomainError
from apps.jobs.engines.configured import engine_names, why_not
from apps.jobs.launch.choices import choices_of
from apps.jobs.launch.program_form import ProgramForm
from apps.jobs.preparing import CPU, MEMORY, Preparation, preparation_launch
from apps.jobs.selectors import job_for
from apps.uploads.versioned.selectors import version_for
from yardmaster.errors import Misconfigured, YardmasterError
from yardmaster.job.programs import PREPARE
from yardmaster.job.spec import Role, TrainingSpec
from yardmaster.job.spec_stored import stored_spec
from yardmaster.quantity import exact_bytes, format_cpu

_FORMATS = (
    ("auto", "Automatic: the format of most files"), ("images", "Images in one folder per class"),
    ("text", "Text files in one folder per class"), ("csv", "CSV with a header"), ("jsonl", "JSON lines"),
    ("numpy", "NumPy arrays (.npy)"),
)  # fmt: skip
_SHARDS = (
    ("100", "100 MB"), ("150", "150 MB: suits most data"), ("200", "200 MB"), ("500", "500 MB"), ("1000", "1 GB"),
    ("size", "Another size"), ("records", "A number of records"),
)  # fmt: skip
_OF_OPTIONS = ("format", "label", "split", "seed", "compression", "on_bad_record", "step")


class PrepareForm(ProgramForm):
    """What is asked for, with defaults that suit most data."""

    to = forms.CharField(label="New dataset", max_length=100, help_text="If it exists already, it gets a new version.")
    format = forms.ChoiceField(label="Format of the files", choices=_FORMATS, initial="auto")
    label = forms.CharField(
        label="Label column",
        required=False,
        max_length=255,
        help_text="For CSV and JSON lines. With images and text, folders are the classes.",
    )
    split = forms.CharField(
        label="Split", initial="90/10", max_length=11,
        help_text="Percent of train/validation or train/validation/test. Folders of these names are kept as splits.",
    )  # fmt: skip
    seed = forms.IntegerField(
        label="Seed", initial=1, min_value=0, max_value=2**31 - 1, help_text="Another number splits differently."
    )
    shards = forms.ChoiceField(
        label="Size of a shard", choices=_SHARDS, initial="150", required=False, help_text="Before compression."
    )
    shard_megabytes = forms.IntegerField(
        label="Another size in MB",
        required=False,
        min_value=1,
        max_value=5_000,
        help_text="Where that is chosen above.",
    )
    records_per_shard = forms.IntegerField(
        label="Records of a shard",
        required=False,
        min_value=1,
        max_value=10**9,
        help_text="Where that is chosen above.",
    )
    compression = forms.ChoiceField(label="Compression", choices=(("none", "None"), ("gzip", "GZIP")), initial="none")
    on_bad_record = forms.ChoiceField(
        label="Bad records", choices=(("fail", "Stop at the first one"), ("skip", "Leave out and list")), initial="fail"
    )
    workers = forms.IntegerField(
        label="Workers", initial=1, min_value=1, max_value=1_000, help_text="They divide the files, and tables by rows."
    )
    cpu = forms.CharField(label="CPU of one worker", initial=str(CPU), max_length=20)
    memory = forms.CharField(label="Memory of one worker", initial=MEMORY, max_length=20)
    code = forms.ChoiceField(label="Code with a step", required=False)
    step = forms.CharField(
        label="Step", required=False, max_length=255, help_text="A file of the code with map_record(record): step.py"
    )
    engine = forms.ChoiceField(label="Engine", required=False)
    note = forms.CharField(label="Note", required=False, max_length=1_000)

    def __init__(self, *args: Any, user: User, **options: Any) -> None:
        super().__init__(*args, **options)
        engines = [(name, name) for name in engine_names() if _may_launch_on(user, name)]
        usual = ("", f"Default: {settings.YARDMASTER_DEFAULT_ENGINE}")
        self.fields["engine"].choices = [usual, *engines]  # type: ignore[attr-defined]
        codes = [(one.id, one.title) for one in choices_of(user, {"code": ()})["code"]]
        self.fields["code"].choices = [("", "None"), *codes]  # type: ignore[attr-defined]
        for field in self.fields.values():
            kind = "form-select" if isinstance(field.widget, forms.Select) else "form-control"
            field.widget.attrs |= {"class": kind, "autocomplete": "off"}

    @property
    def main(self) -> list[forms.BoundField]:
        return [self[name] for name in ("to", "format", "label", "split", "workers")]

    @property
    def more(self) -> list[forms.BoundField]:
        chosen = {field.name for field in self.main}
        return [field for field in self if field.name not in chosen]

    def clean(self) -> dict[str, Any]:
        said = super().clean() or {}
        missing = {"size": "shard_megabytes", "records": "records_per_shard"}.get(said.get("shards", ""))
        if missing and missing not in self.errors and not said.get(missing):
            self.add_error(missing, "Enter a number, or choose a size above.")
        return said

    @property
    def wanted(self) -> Preparation:
        """What the valid form says."""
        said = self.cleaned_data
        options = {name: said[name] for name in _OF_OPTIONS}
        if said["shards"] == "records":
            options["records_per_shard"] = said["records_per_shard"]
        else:
            megabytes = int(said["shards"]) if said["shards"].isdecimal() else said["shard_megabytes"] or 150
            options["shard_bytes"] = megabytes * 1_000_000
        return Preparation(
            dataset=said["to"], note=said["note"], workers=said["workers"], cpu=said["cpu"], memory=said["memory"],
            code=said["code"] or None, options=options,
        )  # fmt: skip


def _may_launch_on(user: User, name: str) -> bool:
    """An engine that cannot be made is not offered."""
    try:
        return why_not(user, name) is None
    except Misconfigured:
        return False


def initial_of(spec: TrainingSpec) -> dict[str, Any]:
    """What the form says for another preparation like this one; nothing for a job that is none."""
    if spec.program != PREPARE or spec.publishes is None or Role.WORKER not in spec.roles:
        return {}
    worker, options = spec.roles[Role.WORKER], spec.options
    found: dict[str, Any] = {name: options[name] for name in _OF_OPTIONS if name in options}
    megabytes = int(options.get("shard_bytes", 150_000_000)) // 1_000_000
    is_preset = str(megabytes) in dict(_SHARDS)
    found |= {"shards": str(megabytes)} if is_preset else {"shards": "size", "shard_megabytes": megabytes}
    if options.get("records_per_shard"):
        found |= {"shards": "records", "records_per_shard": options["records_per_shard"]}
    return found | {
        "to": spec.publishes.dataset, "note": spec.publishes.note, "workers": worker.replicas,
        "cpu": format_cpu(worker.resources.cpu), "memory": exact_bytes(worker.resources.memory),
        "code": "" if spec.code_version is None else str(spec.code_version),
    }  # fmt: skip


@login_required
@require_http_methods(["GET", "POST"])
def prepare_page(request: HttpRequest, version_id: UUID) -> HttpResponse:
    """The form; POST launches the job and leads to its page."""
    user = user_of(request)
    version = version_for(DATASETS, user, version_id)
    item = version.parent
    at_first = {"to": f"{item.name[:90]}-prepared"}
    if request.method == "GET" and (older := request.GET.get("from")):
        job = job_for(user, older)
        at_first |= initial_of(stored_spec(job.spec)) | {"engine": job.engine}
    form = PrepareForm(request.POST or None, user=user, initial=at_first)
    if request.method == "POST" and form.is_valid():
        try:
            job, _ = preparation_launch(
                user=user, version=version, namespace=item.namespace, wanted=form.wanted,
                engine=form.cleaned_data["engine"] or None,
            )  # fmt: skip
            return redirect("job_page", job.pk)
        except (DomainError, YardmasterError) as error:
            form.add_refusal(error)
    return render(request, "datasets/prepare.html", _context(version, form), status=400 if form.errors else 200)


def _context(version: DatasetVersion, form: PrepareForm) -> dict[str, Any]:
    item = version.parent
    way = [(reverse("datasets_page"), "Datasets"), (reverse("dataset_page", args=[item.pk]), item.name)]
    return {"form": form, "version": version, "item": item, "breadcrumbs": way}


urlpatterns: list[URLPattern | URLResolver] = [
    path("datasets/versions/<uuid:version_id>/prepare/", prepare_page, name="dataset_prepare_page"),
]
