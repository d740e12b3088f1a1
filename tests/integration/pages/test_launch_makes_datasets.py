"""The button of the launch form that has the portal make a dataset: pressed, made, added to the form."""

from __future__ import annotations

import html
import re

import pytest
from django.test import Client

from apps.datasets import making
from apps.datasets.models import DatasetVersion, MadeDataset
from apps.jobs.launch.forms import new_values
from apps.jobs.launch.making import with_input
from portal.dataset_downloads import DatasetDownloads
from tests.integration.jobs.conftest import engine_settings, stores, world
from tests.integration.pages.test_launch_page import rows, value_of

__all__ = ["engine_settings", "stores", "world"]
pytestmark = pytest.mark.django_db
SCRIPT = "import keras\nkeras.datasets.mnist.load_data()\n"
MAKE = "make:keras/mnist"
BUTTON = f'name="take" value="{MAKE}"'


@pytest.fixture
def signed(client, ada) -> Client:
    client.force_login(ada)
    return client


@pytest.fixture
def sent(world, ada) -> dict[str, str]:
    world.engine.has_way_out = False
    version = world.code_version(ada, {"train.py": SCRIPT})
    return {
        "strategy": "single", "name": "digits", "code": str(version.pk), "entry_point": "train.py",
        "roles-worker-replicas": "1", **rows("inputs"), **rows("environment"),
    }  # fmt: skip


def shown(signed: Client, address: str, sent: dict[str, str], **more: str) -> str:
    return html.unescape(signed.post(address, sent | more, headers={"HX-Request": "true"}).content.decode())


def made_version(world, ada) -> DatasetVersion:
    version = world.dataset_version(ada, {"datasets/mnist.npz": "digits"})
    MadeDataset.objects.update(state="ready", version_id=version.pk)
    return version


def test_pressed_it_is_made_and_added_when_it_is_there(signed, world, ada, sent):
    assert f"{BUTTON} " in shown(signed, "/jobs/launch/preview/", sent)
    page = shown(signed, "/jobs/launch/", sent, take=MAKE)
    assert "Making the dataset keras-mnist …" in page
    assert BUTTON not in page
    assert value_of(page, "making") == "keras/mnist"
    assert (MadeDataset.objects.get().state, MadeDataset.objects.get().asked_by) == ("making", ada)
    MadeDataset.objects.update(received=5 << 20)
    waiting = shown(signed, "/jobs/launch/preview/", sent, making="keras/mnist")
    assert "5 MiB received" in waiting
    assert 'hx-trigger="load delay:2s"' in waiting

    version = made_version(world, ada)
    there = shown(signed, "/jobs/launch/preview/", sent, making="keras/mnist")
    assert re.search(rf'{BUTTON}[^>]* hx-trigger="load, click"', there)
    added = shown(signed, "/jobs/launch/", sent, take=MAKE, making="keras/mnist")
    assert f'<option value="{version.pk}" selected' in added
    assert value_of(added, "environment-0-name") == "KERAS_HOME"
    assert value_of(added, "environment-0-value") == "$DATA_DIR"
    assert "keras.datasets.mnist is downloaded" not in added
    assert 'name="making"' not in added


def test_another_button_meanwhile_does_not_forget_it(signed, world, sent):
    shown(signed, "/jobs/launch/", sent, take=MAKE)
    page = shown(signed, "/jobs/launch/", sent, take="add:environment", making="keras/mnist")
    assert value_of(page, "making") == "keras/mnist"


def test_one_that_is_there_is_offered_and_added_only_when_asked(signed, world, ada, sent):
    shown(signed, "/jobs/launch/", sent, take=MAKE)
    made_version(world, ada)
    page = shown(signed, "/jobs/launch/preview/", sent)
    assert "Add the dataset keras-mnist" in page
    assert 'hx-trigger="load, click"' not in page


def test_what_failed_is_said_and_changes_nothing(signed, world, sent, monkeypatch):
    shown(signed, "/jobs/launch/", sent, take=MAKE)
    MadeDataset.objects.update(state="failed", problem={"detail": "No way there.", "remedy": "Name a mirror."})
    page = shown(signed, "/jobs/launch/preview/", sent, making="keras/mnist")
    assert "No way there. Name a mirror." in page
    assert BUTTON in page
    assert "No way there" not in shown(signed, "/jobs/launch/preview/", sent)
    monkeypatch.setattr(making, "AT_ONCE", 0)
    assert "are being made" in shown(signed, "/jobs/launch/", sent, take=MAKE)
    assert MadeDataset.objects.get().state == "failed"


def test_where_downloads_are_off_there_is_no_button(signed, world, sent, settings):
    settings.YARDMASTER_DATASET_DOWNLOADS = DatasetDownloads(False)
    page = shown(signed, "/jobs/launch/preview/", sent)
    assert "keras.datasets.mnist is downloaded" in page
    assert BUTTON not in page


def test_beside_another_input_each_has_a_folder():
    values = new_values("single") | {
        "inputs": [{"dataset_version": "a", "name": ""}, {"dataset_version": "", "name": ""}]
    }
    found = with_input(values, "b")
    assert [(one["dataset_version"], one["name"]) for one in found["inputs"]] == [("a", "data"), ("b", "keras")]
    assert found["environment"] == [{"name": "KERAS_HOME", "value": "$DATA_DIR/keras"}]
    assert with_input(found, "b") == found
    third = with_input(found, "c")
    assert [one["name"] for one in third["inputs"]] == ["data", "keras", "keras-2"]
