"""Try it, in a browser: a model server is started with resources of its own, its form filled with samples of the
dataset, and predictions of every kind are shown."""

from __future__ import annotations

import json
import math
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from tests.browser.axe import serious_findings
from tests.browser.test_keyboard import focused, tabbed_to
from tests.browser.visitor import DESK_FIRST, Look, Visitor, visitor
from tests.browser.world import TASK, World
from tests.real.scene import until

pytestmark = [pytest.mark.tensorflow, pytest.mark.timeout(400)]
STARTS = 120_000
EXPORT = """
import os
import tensorflow as tf

v1 = tf.compat.v1
with tf.Graph().as_default() as graph, v1.Session(graph=graph) as session:
    image, examples = v1.placeholder(tf.float32, [None, 64]), v1.placeholder(tf.string, [None])
    pixels = tf.io.parse_example(examples, {"image": tf.io.FixedLenFeature([64], tf.float32)})["image"]
    names = tf.tile(tf.constant([["digit %d" % n for n in range(10)]]), [tf.shape(pixels)[0], 1])
    signatures = {
        "serving_default": v1.saved_model.predict_signature_def(
            {"image": image}, {"probabilities": tf.nn.softmax(8 * image[:, 10:20])}
        ),
        "labels": v1.saved_model.classification_signature_def(examples, names, tf.nn.softmax(8 * pixels[:, 10:20])),
        "ink": v1.saved_model.regression_signature_def(examples, tf.reduce_sum(pixels, axis=1)),
    }
    builder = v1.saved_model.Builder(os.path.join(os.environ["MODEL_DIR"], "saved"))
    builder.add_meta_graph_and_variables(session, ["serve"], signature_def_map=signatures)
    builder.save()
"""


@pytest.fixture(scope="module")
def version(empty_world: World) -> str:
    """The id of a version of a model that was trained on the digits."""
    client = empty_world.client
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "main.py").write_text(EXPORT)
        code = client.code.put("export", [Path(folder)]).latest
    assert code is not None
    job = client.jobs.launch(
        {
            "name": "ink", "strategy": "single", "code": code.id, "entry_point": "main.py", "retries": 0,
            "paths": {"data_flag": "", "log_flag": ""}, "roles": {"worker": dict(TASK)}, "reclaim_delay": 1,
            "inputs": [{"dataset_version": empty_world.ids["dataset-version"]}],
        }
    )  # fmt: skip
    assert client.jobs.wait(job.id, timeout=180).phase == "SUCCEEDED"
    return str(until(lambda: client.jobs.get(job.id).model, 60, "the model"))


@pytest.fixture(params=DESK_FIRST, ids=str)
def guest(request: pytest.FixtureRequest, browser: Browser, empty_world: World, owner_state) -> Iterator[Visitor]:
    look: Look = request.param
    with visitor(browser, empty_world.url, look, storage_state=owner_state) as one:
        yield one


def assert_good_page(one: Visitor) -> None:
    one.page.wait_for_load_state("networkidle")
    assert one.page.evaluate("document.documentElement.scrollWidth <= innerWidth"), "the page is wider than the screen"
    assert serious_findings(one.page) == []
    one.assert_content()


def likeliest(pixels: list[float]) -> tuple[int, str]:
    """The class that the model gives the most, and how it is shown."""
    shares = [math.exp(8 * one) for one in pixels[10:20]]
    best = max(range(10), key=lambda at: shares[at])
    return best, f"{shares[best] / sum(shares) * 100:.1f} %"


def test_what_is_wrong_with_the_resources_is_said_at_their_fields(guest: Visitor, version: str):
    page = guest.page
    guest.goto(f"/model-versions/{version}/try/")
    page.locator("#try-it summary", has_text="Resources").click()
    expect(page.get_by_label("Memory", exact=True)).to_have_attribute("placeholder", "2Gi")
    expect(page.locator("#try-left")).to_contain_text("Left in the quota of ada: memory")
    assert_good_page(guest)
    page.get_by_label("Memory", exact=True).fill("much")
    page.get_by_label("CPU cores").fill("0.5")
    page.get_by_role("button", name="Start", exact=True).click()
    wrong = page.get_by_label("Memory", exact=True)
    expect(wrong).to_have_accessible_description("Enter an amount between 64Mi and 64Ti, such as 2Gi.")
    expect(wrong).to_have_value("much")
    expect(wrong).to_have_attribute("aria-invalid", "true")
    expect(page.get_by_label("CPU cores")).to_have_value("0.5")
    assert_good_page(guest)


def test_from_the_start_to_predictions_for_samples_of_the_dataset(owner: Visitor, empty_world: World, version: str):
    page = owner.page
    owner.goto(f"/model-versions/{version}/")
    expect(page.get_by_role("button", name="Start", exact=True)).to_be_visible()
    page.get_by_label("Stop if unused for").focus()
    page.keyboard.press("Tab")
    assert focused(page) == "Resources"
    page.keyboard.press("Enter")
    tabbed_to(page, "try-memory", 2)
    page.keyboard.type("1.5Gi")
    page.get_by_role("button", name="Start", exact=True).press("Enter")
    expect(page.get_by_role("link", name="Use a sample")).to_be_visible(timeout=STARTS)
    service = empty_world.client.services.of(version)
    assert service is not None
    page.locator("#try-it summary", has_text="Address for programs").click()
    expect(page.get_by_text(f"{empty_world.url}{service.url}/v1/models/ink:predict")).to_be_visible()
    assert empty_world.client.jobs.get(service.job).spec["roles"]["worker"]["memory"] == 3 << 29
    filled = page.get_by_label("JSON of image")
    page.get_by_role("link", name="Use a sample").click()
    expect(filled).not_to_have_value("")
    first = filled.input_value()
    page.get_by_role("link", name="Next sample").click()
    expect(filled).not_to_have_value(first)
    pixels = json.loads(filled.input_value())
    assert len(pixels) == 64
    page.get_by_role("button", name="Predict").click()
    best, percent = likeliest(pixels)
    rows = page.locator("#try-result tbody tr")
    expect(rows).to_have_count(10)
    expect(rows.first).to_contain_text(f"{best}")
    expect(rows.first).to_contain_text(percent)
    owner.assert_content()


@pytest.fixture(scope="module")
def served(empty_world: World, version: str) -> str:
    """The version, which answers."""
    services = empty_world.client.services
    assert services.wait(services.start(version).id, timeout=120).state == "ready"
    return version


def test_examples_are_edited_as_features_and_classified(guest: Visitor, served: str):
    page = guest.page
    guest.goto(f"/model-versions/{served}/try/?signature=labels")
    page.get_by_role("link", name="Use a sample").click()
    editor = page.get_by_label("JSON of inputs")
    expect(editor).not_to_have_value("")
    example = json.loads(editor.input_value())
    assert set(example) == {"image", "label"}
    page.get_by_role("button", name="Predict").click()
    best, percent = likeliest(example["image"])
    row = page.locator("#try-result tbody tr").first
    expect(row).to_contain_text(f"digit {best}")
    expect(row).to_contain_text(percent)
    assert_good_page(guest)


def test_a_value_is_shown_and_what_the_model_refuses_is_said(owner: Visitor, served: str):
    page = owner.page
    owner.goto(f"/model-versions/{served}/try/")
    page.get_by_label("Signature").select_option("ink")
    page.get_by_label("JSON of inputs").fill(json.dumps({"image": [0.5] * 64}))
    page.get_by_role("button", name="Predict").click()
    expect(page.locator("#try-result")).to_contain_text("32.0")
    page.get_by_label("JSON of inputs").fill(json.dumps({"image": [1] * 64}))
    page.get_by_role("button", name="Predict").click()
    expect(page.locator("#try-result").get_by_role("alert")).to_contain_text("float")
    owner.assert_content()
