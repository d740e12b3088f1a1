"""The bytes of outputs, for a user who may see the job: one file, or all of an attempt as one zip."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponseRedirect, StreamingHttpResponse
from django.http.response import HttpResponseBase

from apps.accounts.models import User
from apps.audit.services import download_record
from apps.jobs.models import Job, JobOutput
from apps.jobs.state import output_files
from apps.uploads.delivery import archive_response, content_type_of, file_response


def output_response(request: HttpRequest, user: User, job: Job, output: JobOutput) -> HttpResponseBase:
    """A redirect to where the bytes lie; the bytes themselves where they lie in several places."""
    download_record(user, "outputs", job.pk, job.namespace, name=job.name, attempt=output.attempt)
    address = output_files.signed_address(output, content_type=content_type_of(output.name))
    if address is not None:
        return HttpResponseRedirect(address)
    return file_response(request, output_files.stored_file(output))


def outputs_archive(request: HttpRequest, user: User, job: Job, attempt: int) -> StreamingHttpResponse:
    """All files of an attempt as one zip, made while it is sent."""
    download_record(user, "outputs", job.pk, job.namespace, name=job.name, attempt=attempt)
    files = list(output_files.stored_files(job.pk, attempt))
    return archive_response(request, f"{job.name}-{attempt}-outputs.zip", files)
