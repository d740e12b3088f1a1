"""What the scripts of an attempt wrote with `tf.summary`, beside scalars: read from the index files that tasks send
with their outputs. Reads only; that the user may see the job was checked before."""

from __future__ import annotations

import re
import uuid

from django.http import HttpResponse

from apps.errors import NotFound
from apps.jobs.models import JobOutput
from apps.jobs.state.output_files import output_for, outputs_of
from apps.stores import storage
from yardmaster.formats.summaries import (
    FOLDER,
    INDEX,
    LARGEST_IMAGE,
    LARGEST_INDEX,
    Summaries,
    image_type,
    is_image_file,
    merged,
    read_index,
)

MOST_TASKS = 4
HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Content-Security-Policy": "default-src 'none'; sandbox",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "private, max-age=60",
}
_TASKS_INDEX = rf"^([a-z]+-[0-9]+/)?{FOLDER}/{re.escape(INDEX)}$"
_OF_IMAGE = re.compile(rf"(?:[a-z]+-[0-9]+/)?{FOLDER}/(.+)")


def summaries_of(job_id: uuid.UUID, attempt: int) -> Summaries:
    """Of the first tasks that have any, all together."""
    found = outputs_of(job_id, attempt).filter(name__endswith=f"{FOLDER}/{INDEX}", name__regex=_TASKS_INDEX)
    return merged([read_index(_bytes(one, LARGEST_INDEX), one.name.removesuffix(INDEX)) for one in found[:MOST_TASKS]])


def image_response(job_id: uuid.UUID, attempt: int, name: str) -> HttpResponse:
    """An image with the content type that its bytes have; opened by itself it is a file to save, and no page. 404 for
    any other output."""
    found = _OF_IMAGE.fullmatch(name)
    if found is None or not is_image_file(found.group(1)):
        raise NotFound("This attempt of the job has no such image.", remedy="Its summaries name them.")
    data = _bytes(output_for(job_id, attempt, name), LARGEST_IMAGE)
    kind = image_type(data)
    if kind is None:
        raise NotFound("This file is no image.", remedy="Only PNG and JPEG files are shown.")
    filename = name.rpartition("/")[2]
    return HttpResponse(
        data, content_type=kind, headers={**HEADERS, "Content-Disposition": f'attachment; filename="{filename}"'}
    )


def _bytes(output: JobOutput, most: int) -> bytes:
    """Its bytes; none where they are too many."""
    if output.size > most or len(output.segments) != 1:
        return b""
    with storage().open_range(output.segments[0]["key"]) as stream:
        return stream.read(most + 1)
