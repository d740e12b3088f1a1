"""From nothing to a finished job with the command alone: every process of the portal, and the local engine."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.real.portal import RealPortal, whole_portal
from tests.real.scene import until
from yardmaster_client import Yardmaster

__all__ = ["whole_portal"]

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def ada(whole_portal: RealPortal) -> Iterator[Yardmaster]:
    """An administrator of the whole portal."""
    with Yardmaster(whole_portal.url, whole_portal.token_of("ada", is_staff=True)) as portal:
        yield portal


def test_a_job_is_launched_followed_and_succeeds(yardmaster, script: Path, job_file: Path, tmp_path: Path):
    (script / "train.py").write_text(
        "import os, pathlib\n"
        "print('hello from', os.environ['MODEL_DIR'])\n"
        "pathlib.Path(os.environ['MODEL_DIR']).mkdir(parents=True, exist_ok=True)\n"
        "pathlib.Path(os.environ['MODEL_DIR'], 'weights').write_text('42')\n"
    )
    done = yardmaster("jobs", "launch", job_file, "--code", script, "--follow")
    assert done.code == 0, done.err + done.out
    assert "worker-0 | hello from" in done.out
    assert "SUCCEEDED" in done.err
    assert "SUCCEEDED" in yardmaster("jobs", "show", "hello").out
    assert yardmaster("models", "download", "hello", "--to", tmp_path / "model").code == 0
    assert (tmp_path / "model" / "weights").read_text() == "42"


def test_a_model_exported_after_a_stop_is_kept(yardmaster, script: Path, job_file: Path, tmp_path: Path):
    (script / "train.py").write_text(
        "import os, pathlib, signal, sys, time\n"
        "def export(number, frame):\n"
        "    model = pathlib.Path(os.environ['MODEL_DIR'])\n"
        "    model.mkdir(parents=True, exist_ok=True)\n"
        "    (model / 'weights').write_text('exported in the grace period')\n"
        "    sys.exit(0)\n"
        "signal.signal(signal.SIGTERM, export)\n"
        "print('trains', flush=True)\n"
        "time.sleep(600)\n"
    )
    assert yardmaster("jobs", "launch", job_file, "--code", script, "--set", "name=stopped").code == 0
    until(lambda: "trains" in yardmaster("jobs", "logs", "stopped").out, 60)
    assert yardmaster("jobs", "stop", "stopped", "--wait").code == 0
    assert "STOPPED" in yardmaster("jobs", "show", "stopped").out
    assert yardmaster("models", "download", "stopped", "--to", tmp_path / "model").code == 0
    assert (tmp_path / "model" / "weights").read_text() == "exported in the grace period"


def test_servers_are_launched_and_their_notebook_names_them(yardmaster, tmp_path: Path):
    file = tmp_path / "servers.yaml"
    file.write_text("name: servers\nstrategy: in_graph\nroles:\n  ps: {cpu: 0.1, memory: 512Mi}\n"
                    "  worker: {cpu: 0.1, memory: 512Mi}\n")  # fmt: skip
    assert yardmaster("jobs", "launch", file).code == 0
    until(lambda: yardmaster("jobs", "notebook", "servers", "-o", "drive.ipynb").code == 0, 60)
    target = yardmaster("jobs", "show", "servers", "--json").json["job"]["serving"]["target"]
    cells = json.loads((tmp_path / "drive.ipynb").read_text())["cells"]
    assert target in "".join(line for cell in cells for line in cell["source"])
    assert yardmaster("jobs", "stop", "servers", "--wait").code == 0


def test_a_job_that_fails_is_exit_1_with_the_reason(yardmaster, script: Path, job_file: Path):
    (script / "train.py").write_text("import nothing_of_this_name\n")
    changes = ["--set", "retries=0", "--set", "name=broken"]
    done = yardmaster("jobs", "launch", job_file, "--code", script, "--wait", *changes)
    assert done.code == 1
    assert "FAILED" in done.err
    why = yardmaster("jobs", "why", "broken").out
    assert "ModuleNotFoundError" in why
    assert "ModuleNotFoundError" in yardmaster("jobs", "logs", "broken").out
