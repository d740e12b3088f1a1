"""The page of an executed notebook: what it shows, and that nothing of a notebook runs there."""

from __future__ import annotations

import base64
import json

import pytest

from tests.integration.jobs.conftest import engine_settings, stores, world
from tests.integration.jobs.test_job_outputs import send
from tests.integration.jobs.world import task_of
from yardmaster.formats import notebook

__all__ = ["engine_settings", "stores", "world"]

pytestmark = pytest.mark.django_db
PNG = base64.b64encode(b"\x89PNG\r\n\x1a\n rest").decode()
HOSTILE = "<script>alert(1)</script>"


def book(*cells: dict) -> bytes:
    return json.dumps({"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": cells}).encode()


def code(source: str, *outputs: dict) -> dict:
    return {"cell_type": "code", "source": source, "metadata": {}, "execution_count": 7, "outputs": list(outputs)}


@pytest.fixture
def page_of(world, ada, client):
    """The page of a notebook that a task has sent, and the job's own page."""
    version = world.code_version(ada, {"train.ipynb": book().decode()})
    job = world.launch(ada, code=str(version.pk), entry_point="train.ipynb")
    world.settle()
    job = world.again(job)
    client.force_login(ada)

    def page(content: bytes, path: str = "notebooks/train.ipynb") -> str:
        send(task_of(job), {path: content}, shared=True)
        answer = client.get(f"/jobs/{job.pk}/outputs/notebook/?path={path}")
        assert answer.status_code == 200
        return answer.content.decode()

    page.job = job
    return page


def test_cells_and_their_outputs_are_shown(page_of, client):
    text = {"cell_type": "markdown", "source": "# Title\nof it", "metadata": {}}
    picture = {"output_type": "display_data", "data": {"image/png": PNG}}
    page = page_of(book(text, code("print(1)", {"output_type": "stream", "text": "one\n"}, picture)))
    for part in ("# Title<br>of it", "[7]", "print(1)", "one\n", f'src="data:image/png;base64,{PNG}"'):
        assert part in page
    for place in ("", "outputs/"):
        linked = client.get(f"/jobs/{page_of.job.pk}/{place}").content.decode()
        assert "outputs/notebook/?attempt=1&amp;path=notebooks/train.ipynb" in linked


def test_nothing_of_a_notebook_reaches_the_page_as_html(page_of):
    hostile = [
        {"output_type": "display_data", "data": {"text/html": HOSTILE}},
        {"output_type": "display_data", "data": {"image/svg+xml": HOSTILE, HOSTILE: 1}},
        {"output_type": "display_data", "data": {"image/png": f'x" onerror="alert(1){HOSTILE}'}},
        {"output_type": "execute_result", "data": {"text/plain": HOSTILE}},
        {"output_type": "error", "ename": HOSTILE, "evalue": HOSTILE, "traceback": [HOSTILE]},
    ]
    cells = [code(HOSTILE, *hostile), {"cell_type": "markdown", "source": HOSTILE, "metadata": {"tags": [HOSTILE]}}]
    page = page_of(book(*cells))
    assert HOSTILE not in page
    assert 'onerror="' not in page
    assert "&lt;script&gt;" in page


@pytest.mark.parametrize("content", [b"no json", b'{"nbformat": 3}', b"[" * 50_000])
def test_what_is_no_notebook_is_said(page_of, content):
    assert "It is" in page_of(content)


def test_one_that_is_too_large_is_not_read(page_of, monkeypatch):
    monkeypatch.setattr("apps.jobs.pages.notebook.LARGEST", 10)
    assert "Download it" in page_of(book())
    assert notebook.LARGEST > 10


def test_others_do_not_see_it(page_of, bob, client):
    page_of(book())
    client.force_login(bob)
    assert client.get(f"/jobs/{page_of.job.pk}/outputs/notebook/?path=notebooks/train.ipynb").status_code == 404
