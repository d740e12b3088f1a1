"""From nothing to a finished job with the command alone: every process of the portal, and the local engine."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.real.portal import ROOT, RealPortal, whole_portal
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


def test_a_model_from_elsewhere_is_kept_as_the_documentation_says(yardmaster, tmp_path: Path):
    told = (ROOT / "docs" / "models.md").read_text().partition("## A model from elsewhere")[2].partition("\n## ")[0]
    code, job = (re.search(rf"^```{kind}\n(.*?)^```", told, re.MULTILINE | re.DOTALL) for kind in ("python", "yaml"))
    assert code
    assert job
    saved = {"saved_model.pb": b"graph", "variables/variables.index": b"index", "assets/words.txt": b"words"}
    for path, content in ({f"saved/{path}": content for path, content in saved.items()} | {
        "code/keep.py": code[1].encode(), "keep.yaml": job[1].encode()
    }).items():  # fmt: skip
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_bytes(content)
    assert yardmaster("datasets", "upload", tmp_path / "saved", "--name", "digits-saved").code == 0
    done = yardmaster("jobs", "launch", tmp_path / "keep.yaml", "--code", tmp_path / "code", "--wait")
    assert done.code == 0, done.err + done.out
    assert "digits-saved" in yardmaster("models", "show", "digits").out
    assert yardmaster("models", "download", "digits", "--to", tmp_path / "model").code == 0
    there = {path.relative_to(tmp_path / "model").as_posix(): path for path in (tmp_path / "model").rglob("*")}
    assert {name: path.read_bytes() for name, path in there.items() if path.is_file()} == saved


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


def test_a_failed_job_is_retried_with_changes_and_waited_for(yardmaster, script: Path, job_file: Path, tmp_path: Path):
    (script / "train.py").write_text(
        "import os, pathlib, sys\n"
        "pathlib.Path(os.environ['LOG_DIR']).mkdir(parents=True, exist_ok=True)\n"
        "for name in ('a.csv', 'b.txt'):\n"
        "    pathlib.Path(os.environ['LOG_DIR'], name).write_text('x')\n"
        "sys.exit(0 if os.environ.get('ANSWER') == '42' and '--again' in sys.argv else 3)\n"
    )
    assert (
        yardmaster("jobs", "launch", job_file, "--code", script, "--set", "name=again", "--set", "retries=0").code == 0
    )
    failed = yardmaster("jobs", "wait", "again")
    assert failed.code == 1
    assert "FAILED" in failed.err
    until(lambda: yardmaster("jobs", "show", "again", "--json").json["job"]["cleaned_up_at"], 60)
    done = yardmaster("jobs", "retry", "again", "-e", "ANSWER=42", "--set", "arguments=[--again]", "--wait", "--json")
    assert (done.code, done.json["attempt"], done.json["phase"]) == (0, 2, "SUCCEEDED"), done.out
    assert yardmaster("jobs", "wait", "again", "--quiet").code == 0
    listed = yardmaster("jobs", "outputs", "again", "--only", "*.csv", "--json").json
    assert [one["path"].rpartition("/")[2] for one in listed] == ["a.csv"]
    assert yardmaster("jobs", "outputs", "again", "--only", "*.txt", "-d", tmp_path / "out").code == 0
    assert [file.name for file in (tmp_path / "out").rglob("*") if file.is_file()] == ["b.txt"]
