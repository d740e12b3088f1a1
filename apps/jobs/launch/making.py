"""The button of a finding that has the portal make a dataset (`Finding.makes`): what it says, and the form with the
dataset among its inputs. Making it: `apps.datasets.making`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from django.conf import settings

from apps.accounts.models import User
from apps.datasets.making import dataset_make, version_made
from apps.datasets.models import MadeDataset
from apps.errors import DomainError, words_of
from apps.jobs.launch.fixes import with_fix
from apps.jobs.launch.parts import Values
from apps.jobs.launch.preview import Verdict
from apps.namespaces.models import Namespace
from yardmaster.code.known_data import dataset_name
from yardmaster.job.spec import Paths
from yardmaster.quantity import format_bytes

FOLDER, OTHER_FOLDER = "keras", "data"
"""Names of the inputs, where there are several."""


@dataclass(frozen=True)
class Offer:
    """What stands at the finding. `state`: `offered`, `making`, or `there`; `adds`: it was asked for in this form, and
    is added as soon as it is there."""

    source: str
    state: str
    label: str
    words: str = ""
    adds: bool = False


@dataclass(frozen=True)
class Asked:
    """The source that was asked for in this form, until it is among its inputs; `problem`: why it is not made."""

    source: str = ""
    problem: str = ""


NOTHING = Asked()


def asked_in(sent: Mapping[str, str]) -> Asked:
    """As the form has it that was sent."""
    return Asked(sent.get("making", ""))


def pressed(user: User, namespace: Namespace, values: Values, source: str) -> tuple[Values, Asked]:
    """After the button: the form with the dataset where it is there, else begin to make it. Never raises for what
    people can do."""
    try:
        made = dataset_make(namespace=namespace, user=user, source=source)
    except DomainError as problem:
        return values, Asked(source, words_of(problem))
    version = version_made(made)
    return (values, Asked(source)) if version is None else (with_input(values, str(version.pk)), NOTHING)


def offer_of(namespace: Namespace, values: Values, verdict: Verdict | None, asked: Asked) -> Offer | None:
    """What to show at the finding that can have a dataset made."""
    source = next((one.makes for one in verdict.warnings if one.makes), "") if verdict else ""
    if not source or not settings.YARDMASTER_DATASET_DOWNLOADS.allowed:
        return None
    name, note = dataset_name(source), _note(values)
    made = MadeDataset.objects.filter(namespace=namespace, source=source).first()
    is_asked, problem = asked.source == source and not asked.problem, asked.problem
    if made is not None and made.state == MadeDataset.State.MAKING and is_asked:
        received = f" {format_bytes(made.received)} received." if made.received else ""
        return Offer(source, "making", "", f"Making the dataset {name} …{received}", adds=True)
    if made is not None and version_made(made) is not None:
        return Offer(source, "there", f"Add the dataset {name}", problem or note, adds=is_asked)
    if is_asked and made is not None and made.problem:
        problem = f"{made.problem['detail']} {made.problem['remedy']}".strip()
    return Offer(source, "offered", f"Make the dataset {name}", problem or note)


def with_input(values: Values, version: str) -> Values:
    """With the dataset as the only input in the data folder, or beside the others in a folder of its own; and with the
    variable by which Keras finds it."""
    top = f"${values['paths'].get('data_env') or Paths().data_env}"
    rows = _filled(values)
    if any(row["dataset_version"] == version for row in rows):
        return values
    if not rows:
        return with_fix(
            values | {"inputs": [{"dataset_version": version, "name": ""}]}, f"environment.KERAS_HOME={top}"
        )
    taken = {row["name"].casefold() for row in rows}
    rows = [row if row["name"] else row | {"name": _free(OTHER_FOLDER, taken)} for row in rows]
    name = _free(FOLDER, taken)
    rows.append({"dataset_version": version, "name": name})
    return with_fix(values | {"inputs": rows}, f"environment.KERAS_HOME={top}/{name}")


def _filled(values: Values) -> list[Values]:
    return [row for row in values["inputs"] if row.get("dataset_version") or row.get("name")]


def _note(values: Values) -> str:
    """What changes for another input: alone it is the data folder, beside others it has one of its own."""
    if not any(not row.get("name") for row in _filled(values)):
        return ""
    top = f"${values['paths'].get('data_env') or Paths().data_env}"
    return f"The dataset that is attached now is then in {top}/{OTHER_FOLDER}."


def _free(name: str, taken: set[str]) -> str:
    number = 1
    while (chosen := name if number == 1 else f"{name}-{number}") in taken:
        number += 1
    taken.add(chosen)
    return chosen
