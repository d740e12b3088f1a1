"""A TFJob on the launch page: it fills the form, says what is not the same, and loses nothing where it cannot."""

from __future__ import annotations

import html

import pytest

from tests.integration.jobs.conftest import engine_settings, stores, world
from tests.integration.jobs.test_jobs_imported_exported import TFJOB
from tests.integration.pages.test_launch_page import code, data, dataset_version, signed, value_of

__all__ = ["code", "data", "engine_settings", "signed", "stores", "world"]

pytestmark = pytest.mark.django_db
WITH_DATA = TFJOB.replace(
    "          containers:",
    "          volumes: [{name: v, persistentVolumeClaim: {claimName: mnist}}]\n          containers:",
).replace('"--lr=0.1"]', '"--data_dir=/data"], volumeMounts: [{name: v, mountPath: /data}]')


def pressed(client, data: dict[str, str], text: str, **headers: str) -> str:
    answer = client.post("/jobs/launch/", data | {"take": "import", "tfjob": text}, headers=headers)
    assert answer.status_code == 200
    return html.unescape(answer.content.decode())


def test_a_tfjob_fills_the_form_with_the_code_that_it_has(signed, data, code):
    page = pressed(signed, data, TFJOB)
    assert value_of(page, "name") == "mnist"
    assert value_of(page, "roles-worker-replicas") == "2"
    assert 'value="multi_worker_mirrored" id="preset-multi_worker_mirrored" checked' in page
    assert f'value="{code.pk}" selected' in page, "no code is called mnist"
    assert "To do before the launch" in page
    assert "The image team/mnist:1 is not taken" in page
    assert "kind: TFJob" in page, "what was pasted stays"


def test_with_scripts_the_answer_comes_in_parts(signed, data):
    page = pressed(signed, data, TFJOB, **{"HX-Request": "true"})
    assert 'id="launch-import-notes" hx-swap-oob="innerHTML"' in page
    assert "launch-import-notes" not in signed.post("/jobs/launch/preview/", data).content.decode(), "the notes stay"


def test_a_dataset_of_that_name_is_the_input_and_one_that_is_not_there_is_left_out(signed, data, ada):
    assert value_of(pressed(signed, data, WITH_DATA), "roles-worker-replicas") == "2"
    upload = "yardmaster datasets upload FOLDER --name mnist"
    assert upload in pressed(signed, data, WITH_DATA)
    version = dataset_version(ada)
    page = pressed(signed, data, WITH_DATA)
    assert upload not in page, "it is there"
    assert "It is there." in page
    assert f'value="{version.pk}" selected' in page
    assert "--data_dir=$DATA_DIR" in page


def test_what_is_no_tfjob_leaves_the_form_as_it_was(signed, data):
    page = pressed(signed, data, "kind: <script>")
    assert "Nothing was imported." in page
    assert "no object of kind TFJob" in page
    assert value_of(page, "name") == "digits"
    raw = signed.post("/jobs/launch/", data | {"take": "import", "tfjob": "kind: </textarea><script>"}).content.decode()
    assert "<script>\n" not in raw
    assert "</textarea><script>" not in raw


def test_the_manifests_page_offers_the_export(world, ada, web):
    job = world.launch(ada)
    page = web.get(f"/jobs/{job.pk}/manifests/").content.decode()
    assert f'action="/api/v1/jobs/{job.pk}/export/"' in page
    assert web.get(f"/api/v1/jobs/{job.pk}/export/?image=&claim=").status_code == 200
