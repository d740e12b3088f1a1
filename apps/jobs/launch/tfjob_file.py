"""The text of a TFJob, as Kubeflow's users keep it, as a job file with notes. Not here: what becomes of each part of it
(`yardmaster.job.tfjob`).

It is read by the job file's own reader, within the same bounds: what is not small in a sandboxed process. Changes
nothing, and asks nothing of the database: the code and datasets that the job file names need not exist.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from apps.jobs.launch.job_file import LONGEST_FILE, job_as_yaml, read_bounded
from yardmaster.errors import Problem, SpecRejected
from yardmaster.job.spec_limits import shorten
from yardmaster.job.tfjob import Kind, Note, find_tfjob, import_tfjob
from yardmaster.quantity import format_bytes
from yardmaster.sandbox.function import Sandbox
from yardmaster_client.jobfile import JobFileError, documents_from_text

_READER = Sandbox("apps.jobs.launch.tfjob_file:read_tfjob", packages=["yaml"], seconds=8)


@dataclass(frozen=True)
class ImportedFile:
    """The job file's text and data, and what is to be said about it."""

    job_file: str
    spec: dict[str, Any]
    notes: Sequence[Note]
    image: str = ""
    """As the TFJob names it: no image of the catalogue."""

    @property
    def is_ready(self) -> bool:
        """Whether nothing has to be done before the launch."""
        return not any(one.kind is Kind.TO_DO for one in self.notes)


def job_of_tfjob(text: str) -> ImportedFile:
    """The job that the one TFJob of a YAML text stands for. Raises `SpecRejected` where there is none."""
    if (size := len(text.encode("utf-8", "surrogatepass"))) > LONGEST_FILE:
        message = f"The text has {format_bytes(size)}; the most is {format_bytes(LONGEST_FILE)}."
        raise SpecRejected([Problem("", "too_large", message, "Import the TFJob alone.", str(size))])
    found = read_bounded(text, read_tfjob, _READER, "Try again, with the TFJob alone.")
    if "problems" in found:
        raise SpecRejected([Problem(*one) for one in found["problems"]])
    spec = found["spec"]
    if (size := len(json.dumps(spec))) > LONGEST_FILE:
        message = f"The job of this TFJob has {format_bytes(size)}; the most is {format_bytes(LONGEST_FILE)}."
        raise SpecRejected([Problem("", "too_large", message, "Put long values into a file of the code.", str(size))])
    notes = [Note(Kind(kind), *rest) for kind, *rest in found["notes"]]
    return ImportedFile(job_as_yaml(spec), spec, notes, found["image"])


def with_image(found: ImportedFile, name: str) -> ImportedFile:
    """With this image of the catalogue, which is the one that the TFJob names."""
    spec = {**found.spec, "image": name}
    notes = [one for one in found.notes if one.field != "image" or shorten(found.image, 200) not in one.message]
    taken = Note(Kind.TAKEN, "image", f"The image {shorten(found.image, 200)} is {name} of the catalogue.")
    return ImportedFile(job_as_yaml(spec), spec, [*notes, taken], found.image)


def with_uploads(found: ImportedFile, are_there: Collection[str]) -> ImportedFile:
    """With nothing to do about these: `Note.upload` of what exists."""
    notes = [
        replace(one, kind=Kind.TAKEN, message=f"{one.message} It is there.", remedy="")
        if one.upload in are_there
        else one
        for one in found.notes
    ]
    return replace(found, notes=sorted(notes, key=lambda one: one.kind is Kind.TAKEN))


def read_tfjob(text: str) -> dict[str, Any]:
    """`spec` and `notes`, or `problems`, as plain values: it also runs in a process of its own."""
    try:
        tfjob, others = find_tfjob(documents_from_text(text, Path("tfjob.yaml")))
        made = import_tfjob(tfjob)
    except JobFileError as error:
        where = f"Line {error.line}: " if error.line else ""
        message = f"{where}{str(error).partition(': ')[2]}."
        return {"problems": [["", "bad_value", message, "Correct the text: it is YAML, as kubectl reads it.", ""]]}
    except SpecRejected as error:
        return {"problems": [[one.field, one.code, one.message, one.remedy, one.value] for one in error.problems]}
    notes = [[one.kind.value, one.field, one.message, one.remedy, one.upload] for one in [*made.notes, *_about(others)]]
    return {"spec": made.spec, "notes": notes, "image": made.image}


def _about(others: Sequence[str]) -> list[Note]:
    """What else the text holds."""
    message = "{} is not imported: only the TFJob is."
    return [Note(Kind.LEFT_OUT, "", message.format(shorten(one, 100))) for one in others]
