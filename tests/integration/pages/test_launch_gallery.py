"""How much a newcomer fills in: for each folder of the gallery, the fields of the launch form that must be changed
after its code was chosen. Counts may stay as they are proposed."""

from __future__ import annotations

import re
from collections.abc import Mapping

import pytest
from django.test import Client

from apps.jobs.models import Job
from tests.integration.gallery.folders import GALLERY, spec_of
from tests.integration.jobs.conftest import engine_settings, stores, world
from tests.integration.pages.form_of_page import form_of
from tests.integration.pages.test_launch_page import signed

__all__ = ["engine_settings", "signed", "stores", "world"]

pytestmark = pytest.mark.django_db

OVERVIEW = (GALLERY / "README.md").read_text()
POINTS = "the id of the points"
NEEDED: Mapping[str, Mapping[str, str]] = {
    "keras_requirements": {},
    "notebook": {},
    "one_model_dir": {},
    "package": {},
    "progress_bar": {},
    "relative_outputs": {},
    "strict_parser": {"inputs-0-dataset_version": POINTS, "arguments": "--report=$LOG_DIR/line.txt"},
    "tf1": {},
}
"""The fields, with what is written into them. Beside them there are three decisions: the folder, the counts, Launch."""
ELSEWHERE = {"own_image", "tfjob", "git"}
"""Folders that are no code to choose: each has a field of its own, or another page."""
SAME = ("strategy", "entry_point", "tf1", "command")
"""What makes a launch the right one, of what the folder's job file says."""


@pytest.fixture
def start(world, ada, signed: Client):
    """The form as it is proposed when the folder has been uploaded."""

    def begun(folder: str) -> dict[str, str]:
        place = GALLERY / folder
        texts = {str(one.relative_to(place)): one.read_text() for one in place.rglob("*") if one.suffix != ".pyc"
                 and one.is_file()}  # fmt: skip
        version = world.code_version(ada, texts)
        return form_of(signed.get(f"/jobs/launch/?code_version={version.pk}").content.decode())

    return begun


@pytest.fixture
def filled(world, ada):
    """What a newcomer writes into a field."""
    data = world.dataset_version(ada, {"points.csv": "x,y\n"})
    return lambda fields: {name: str(data.pk) if text == POINTS else text for name, text in fields.items()}


def is_right(signed: Client, folder: str, form: dict[str, str]) -> bool:
    """Whether the check has nothing to say, the launch is accepted, and the job is the one of the folder's job file."""
    said = signed.post("/jobs/launch/preview/", form).content.decode()
    if "launch-verdict-fits" not in said or "launch-list" in said:
        return False
    if signed.post("/jobs/launch/", form).status_code != 302:
        return False
    made, wanted = Job.objects.latest("created_at").spec, spec_of(folder)
    return all((made.get(name) or "") == (wanted.get(name) or "") for name in SAME)


def folders() -> set[str]:
    return {one.parent.name for one in GALLERY.glob("*/*") if one.is_file()}


def test_each_folder_is_counted():
    assert folders() - ELSEWHERE == set(NEEDED)


def test_each_folder_has_a_row_in_the_overview():
    rows = re.findall(r"^\| \[(\w+)\]\((\w+)\) \|.*`yardmaster [^`]*examples/gallery/(\w+)[/ ]", OVERVIEW, re.MULTILINE)
    assert {named for row in rows for named in row} == folders()
    assert all(len(set(row)) == 1 for row in rows)


@pytest.mark.parametrize("folder", NEEDED)
def test_a_launch_needs_these_fields_and_no_other(start, filled, signed: Client, folder: str):
    form = start(folder)
    assert is_right(signed, folder, form | filled(NEEDED[folder])), "more fields are needed"


@pytest.mark.parametrize(("folder", "field"), [(folder, field) for folder in NEEDED for field in NEEDED[folder]])
def test_none_of_these_fields_can_be_left_out(start, filled, signed: Client, folder: str, field: str):
    form = start(folder)
    some = {name: text for name, text in NEEDED[folder].items() if name != field}
    assert not is_right(signed, folder, form | filled(some)), "it is needed no more: take it out of the table"


def test_the_strategy_of_every_new_form_would_not_do(start, signed: Client):
    """The check of this test fails where a field is not right."""
    assert not is_right(signed, "tf1", start("tf1") | {"tf1": ""})
    assert not is_right(signed, "package", start("package") | {"runs": "file", "entry_point": "training/train.py"})
    assert not is_right(signed, "notebook", start("notebook") | {"strategy": "between_graph"})


def test_the_word_beside_the_button_of_a_phone_counts_the_notes(start, signed: Client):
    said = signed.post("/jobs/launch/preview/", start("strict_parser")).content.decode()
    assert "Fits now, 2 notes</span>" in said
    said = signed.post("/jobs/launch/preview/", start("progress_bar")).content.decode()
    assert "Fits now</span>" in said


def test_the_folder_with_requirements_is_launched_with_their_packages(start, signed: Client):
    form = start("keras_requirements")
    assert form["requirements"] == ""
    said = 'id="launch-requirements"'
    assert said in signed.post("/jobs/launch/", form | {"take": "check"}).content.decode()
    assert said not in signed.post("/jobs/launch/", form | {"take": "check", "requirements": "none"}).content.decode()
    assert is_right(signed, "keras_requirements", form)
    assert Job.objects.get().spec["requirements"] is None, "those of requirements.txt count"
