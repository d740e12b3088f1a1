"""The page of a notebook among a job's outputs. What is shown of it is made in a sandboxed process, and is texts and
PNG pictures alone: no HTML and no script of a notebook reaches a page of the portal."""

from __future__ import annotations

import tempfile
from typing import Any
from uuid import UUID

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import URLPattern, URLResolver, path, reverse
from django.views.decorators.http import require_GET

from apps.accounts.selectors import user_of
from apps.jobs.models import JobOutput
from apps.jobs.pages.outputs import LONGEST_NAME, attempt_of
from apps.jobs.selectors import job_for
from apps.jobs.state import output_files
from apps.stores import storage
from yardmaster.formats.notebook import LARGEST
from yardmaster.sandbox.function import NoResult, Sandbox

READER = Sandbox("yardmaster.formats.notebook:read_shown", seconds=4, memory=1 << 30)
_PIECE = 1 << 20


@login_required
@require_GET
def notebook(request: HttpRequest, job_id: UUID) -> HttpResponse:
    """The cells of `?path=` of `?attempt=` (the newest)."""
    job = job_for(user_of(request), job_id)
    attempt = attempt_of(request, job)
    output = output_files.output_for(job.pk, attempt, request.GET.get("path", "")[:LONGEST_NAME])
    above = [(reverse("jobs_page"), "Jobs"), (reverse("job_page", args=[job_id]), job.name)]
    outputs = f"{reverse('job_outputs_page', args=[job_id])}?attempt={attempt}"
    context = {
        "job": job,
        "attempt": attempt,
        "output": output,
        "shown": shown_of(output),
        "breadcrumbs": [*above, (outputs, "Outputs")],
    }
    return render(request, "jobs/notebook.html", context)


def shown_of(output: JobOutput) -> dict[str, Any]:
    """`cells` and `left_out`, or a `problem` with its `remedy`."""
    remedy = "Download it, and open it in Jupyter."
    if output.size > LARGEST:
        return {"problem": f"The notebook has more than {LARGEST >> 20} MiB.", "remedy": remedy}
    file = output_files.stored_file(output)
    try:
        with tempfile.NamedTemporaryFile() as copy:
            for key in file.keys:
                with storage().open_range(key) as stream:
                    while piece := stream.read(_PIECE):
                        copy.write(piece)
            copy.flush()
            found: dict[str, Any] = READER.call(copy.name)
    except NoResult as error:
        words = "Too many notebooks are being read." if error.is_busy else "Reading the notebook takes too long."
        return {"problem": words, "remedy": "Try again soon." if error.is_busy else remedy}
    return found


urlpatterns: list[URLPattern | URLResolver] = [
    path("jobs/<uuid:job_id>/outputs/notebook/", notebook, name="job_notebook_page"),
]
