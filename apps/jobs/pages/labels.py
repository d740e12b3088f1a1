"""The page on which people rename a job, write a note, set its tags, archive it or pin it to their list."""

from __future__ import annotations

from uuid import UUID

from django import forms
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import URLPattern, URLResolver, path, reverse
from django.views.decorators.http import require_http_methods

from apps.accounts.models import User
from apps.accounts.selectors import user_of
from apps.api.problems import show_in_form
from apps.errors import DomainError
from apps.jobs.labels import LONGEST_NOTE, LONGEST_TAG, MOST_TAGS, job_change, job_pin, job_unpin, pins_of, tags_known
from apps.jobs.models import Job
from apps.jobs.selectors import job_for
from apps.namespaces.models import Role


class LabelsForm(forms.Form):
    name = forms.CharField(max_length=200, widget=forms.TextInput(attrs={"maxlength": 200}))
    tags = forms.CharField(
        required=False, max_length=MOST_TAGS * (LONGEST_TAG + 2),
        help_text=f"Words to find the job by, with commas between them, {MOST_TAGS} at most.",
    )  # fmt: skip
    note = forms.CharField(required=False, max_length=LONGEST_NOTE, widget=forms.Textarea(attrs={"rows": 5}))
    archived = forms.BooleanField(required=False, label="Archived: left out of lists")
    pinned = forms.BooleanField(required=False, label="Pinned to the top of my list")

    @staticmethod
    def values_of(user: User, job: Job) -> dict[str, object]:
        return {
            "name": job.name,
            "tags": ", ".join(job.tags),
            "note": job.note,
            "archived": job.archived_at is not None,
            "pinned": pins_of(user).filter(job=job).exists(),
        }


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def job_edit(request: HttpRequest, job_id: UUID) -> HttpResponse:
    user = user_of(request)
    job = job_for(user, job_id, at_least=Role.MEMBER)
    form = LabelsForm(request.POST if request.method == "POST" else None, initial=LabelsForm.values_of(user, job))
    if form.is_bound and form.is_valid() and _saved(form, user, job):
        messages.success(request, "Saved.")
        return redirect("job_page", job_id)
    way = [(reverse("jobs_page"), "Jobs"), (reverse("job_page", args=[job_id]), job.name)]
    context = {"job": job, "form": form, "breadcrumbs": way, "known_tags": tags_known(job.namespace)}
    return render(request, "jobs/job/edit.html", context, status=422 if form.errors else 200)


def _saved(form: LabelsForm, user: User, job: Job) -> bool:
    """Save it. False: what speaks against it is in the form, and nothing was saved."""
    wanted = form.cleaned_data
    try:
        with transaction.atomic():
            job_change(
                user=user, job=job, name=wanted["name"], note=wanted["note"], tags=wanted["tags"].split(","),
                archived=wanted["archived"],
            )  # fmt: skip
            (job_pin if wanted["pinned"] else job_unpin)(user=user, job=job)
    except DomainError as problem:
        show_in_form(form, problem)
        return False
    return True


urlpatterns: list[URLPattern | URLResolver] = [
    path("jobs/<uuid:job_id>/edit/", job_edit, name="job_edit_page"),
]
