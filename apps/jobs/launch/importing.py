"""The launch form that a text says: a job file, or a TFJob. What a TFJob names is looked for in the namespace of the
form: code and datasets that are not there yet leave the form's own code, and no input.

Not here: how the texts are read (`job_file`, `tfjob_file`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import Q

from apps.accounts.models import User
from apps.errors import DomainError
from apps.images.selectors import images_visible_to
from apps.jobs.engines.images import engines_with_images
from apps.jobs.launch import choices
from apps.jobs.launch.job_file import job_of_yaml
from apps.jobs.launch.parts import Values
from apps.jobs.launch.spec_values import values_of_spec
from apps.jobs.launch.tfjob_file import ImportedFile, job_of_tfjob, with_image, with_uploads
from apps.jobs.state.specs import asked_spec
from apps.namespaces.models import Namespace
from apps.namespaces.selectors import namespace_for
from yardmaster.errors import Problem, SpecRejected
from yardmaster.job.spec_images import LONGEST_REFERENCE
from yardmaster.job.spec_reading import NO_ID
from yardmaster.job.tfjob import Kind, Note

TITLES = {
    Kind.TO_DO: "To do before the launch",
    Kind.CHANGED: "Changed",
    Kind.LEFT_OUT: "Left out",
    Kind.TAKEN: "Taken",
}


@dataclass(frozen=True)
class Import:
    """What a text made of the form: new `values` and the notes, or what is wrong with it."""

    values: Values
    notes: Sequence[Note] = ()
    problems: Sequence[Problem] = ()

    @property
    def groups(self) -> list[tuple[str, list[Note]]]:
        """The notes under their titles."""
        found = [(title, [one for one in self.notes if one.kind is kind]) for kind, title in TITLES.items()]
        return [(title, notes) for title, notes in found if notes]


def form_of_file(user: User, values: Values, text: str) -> Import:
    """The form that the job file says; where it says none, the form stays."""
    try:
        file = job_of_yaml(text)
        namespace = namespace_for(user, file.namespace or values["namespace"] or None)
        spec = asked_spec(choices.versions_resolve(user, file.spec, namespace))
    except SpecRejected as error:
        return Import(values, problems=error.problems)
    except DomainError as problem:
        return Import(values, problems=[Problem("", problem.code, problem.detail, problem.remedy)])
    if spec.program:
        message = "The form has no field for program, and would launch another job without it."
        remedy = "Launch the file with the command: yardmaster jobs launch job.yaml."
        return Import(values, problems=[Problem("program", "not_in_form", message, remedy)])
    return Import(values_of_spec(spec) | {"namespace": namespace.slug, "engine": file.engine or ""})


def imported_job(user: User, text: str, namespace: Namespace) -> ImportedFile:
    """The job file of a TFJob, with its image where the catalogue has that for this user and an engine runs images.
    Code and datasets of the namespace that have the names in it need not be uploaded."""
    return _imported_with_versions(user, text, namespace)[0]


def _imported_with_versions(user: User, text: str, namespace: Namespace) -> tuple[ImportedFile, _Versions]:
    found = job_of_tfjob(text)
    versions = _versions_of(user, found.spec, namespace)
    return _with_image_of_catalogue(user, with_uploads(found, versions.are_there)), versions


def _with_image_of_catalogue(user: User, found: ImportedFile) -> ImportedFile:
    if not 0 < len(found.image) <= LONGEST_REFERENCE or not engines_with_images():
        return found
    same = Q(reference=found.image) | Q(reference__startswith=f"{found.image}@")
    image = images_visible_to(user).filter(same, enabled=True).first()
    return found if image is None else with_image(found, image.name)


def form_of_tfjob(user: User, values: Values, text: str) -> Import:
    """The form with this TFJob's job; as it was where the text has none."""
    try:
        namespace = namespace_for(user, values["namespace"] or None)
        found, versions = _imported_with_versions(user, text, namespace)
        spec = _with_versions(user, found.spec, values["code"], versions)
        made = values_of_spec(asked_spec(spec))
    except SpecRejected as error:
        return Import(values, problems=error.problems)
    except DomainError as problem:
        return Import(values, problems=[Problem("", problem.code, problem.detail, problem.remedy)])
    place = {"namespace": namespace.slug, "engine": values["engine"]}
    return Import(made | place | ({"code": ""} if spec["code"] == str(NO_ID) else {}), found.notes)


@dataclass(frozen=True)
class _Versions:
    """What of the names in a specification the namespace has."""

    code: str
    """The id of the code's newest version, or empty."""
    inputs: Sequence[Mapping[str, Any]]
    """Those whose dataset is there, with its version."""
    are_there: frozenset[str]
    """The names that were found, as `Note.upload` has them."""


def _versions_of(user: User, spec: Mapping[str, Any], namespace: Namespace) -> _Versions:
    code = _resolved(user, {"code": spec["code"]}, namespace)
    inputs = [(one["dataset"], _resolved(user, {"inputs": [one]}, namespace)) for one in spec.get("inputs", [])]
    there = [(f"dataset:{name}", found["inputs"][0]) for name, found in inputs if found is not None]
    names = [f"code:{spec['code']}"] * bool(code) + [name for name, _ in there]
    return _Versions(str(code["code"]) if code else "", [one for _, one in there], frozenset(names))


def _with_versions(user: User, spec: Mapping[str, Any], code: str, versions: _Versions) -> dict[str, Any]:
    """With versions in the place of names, where there are any."""
    version = versions.code or code
    made = {**spec, "code": version or str(NO_ID), "inputs": versions.inputs}
    if entry := spec.get("entry_point"):
        made["entry_point"] = file_meant(entry, choices.scripts_of(user, version))
    return made


def file_meant(entry: str, files: Sequence[str]) -> str:
    """The one file of the code that has the script's name, where the script is not at the place that it was given."""
    same = [one for one in files if one.rpartition("/")[2] == entry.rpartition("/")[2]]
    return same[0] if entry not in files and len(same) == 1 else entry


def _resolved(user: User, part: Mapping[str, Any], namespace: Namespace) -> dict[str, Any] | None:
    try:
        return choices.versions_resolve(user, part, namespace)
    except SpecRejected:
        return None
