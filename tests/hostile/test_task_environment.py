"""A script that installs, writes and hides things changes neither the portal's environment nor what later jobs find."""

from __future__ import annotations

import json
import os
import sys
import zipfile
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest

from portal.env import task_python
from tests.real.scene import Scene, until

pytestmark = [pytest.mark.slow, pytest.mark.linux, pytest.mark.timeout(300)]

WHEEL = "planted-1.0-py3-none-any.whl"
INSTALL = f"""
import subprocess, sys
subprocess.run([sys.executable, "-m", "pip", "install", "--no-index", "./{WHEEL}"], check=True)
import planted
print("imported", planted.WORD, planted.__file__)
for line in ("pip", "pip3", "python -m pip", "python3 -m pip"):
    subprocess.run(f"{{line}} install --no-index --force-reinstall ./{WHEEL}", shell=True, check=True)
subprocess.run([sys.executable, "-m", "pip", "install", "--user", "--no-index", "./{WHEEL}"])
"""
LOOK = """
import importlib.util, json, os, shutil, socket, sys, tempfile
place = tempfile.mkdtemp()
one = socket.socket(socket.AF_UNIX)
one.bind(os.path.join(place, "a-socket-with-a-name-of-its-own"))
found = {
    "there": [name for name in ("planted", "django", "portal", "numpy", "tensorflow", "sklearn", "pip")
              if importlib.util.find_spec(name) is not None],
    "home": os.path.expanduser("~"), "tmp": os.path.realpath(place), "work": os.environ["YARDMASTER_WORK_DIR"],
    "seen": [sys.executable, *map(shutil.which, ("pip", "python", "python3"))],
}
open(os.path.join(found["home"], "mine"), "w").close()
os.makedirs(os.path.join(found["home"], "closed", "inside"))
os.chmod(os.path.join(found["home"], "closed"), 0o500)
print("FOUND", json.dumps(found))
"""


@pytest.fixture(scope="module")
def wheel() -> bytes:
    """A package that is nowhere else, with a command."""
    held = BytesIO()
    with zipfile.ZipFile(held, "w") as archive:
        about = "planted-1.0.dist-info"
        archive.writestr("planted.py", "WORD = 'here'\ndef main():\n    print('planted')\n")
        archive.writestr(f"{about}/METADATA", "Metadata-Version: 2.1\nName: planted\nVersion: 1.0\n")
        archive.writestr(f"{about}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(f"{about}/entry_points.txt", "[console_scripts]\nplanted = planted:main\n")
        archive.writestr(f"{about}/RECORD", "")
    return held.getvalue()


def listing() -> dict[str, tuple[int, int, int]]:
    """Every file of the portal's and the tasks' environment: kind and rights, size, when it was changed. What Python
    itself compiles of modules that the tests import is no matter of tasks."""
    found: dict[str, tuple[int, int, int]] = {}
    for top in {Path(sys.prefix).resolve(), Path(task_python()).parent.parent.resolve()}:
        for place, folders, files in os.walk(top):
            folders[:] = [name for name in folders if name != "__pycache__" or top != Path(sys.prefix).resolve()]
            for name in [*files, *folders]:
                path = os.path.join(place, name)
                about = os.lstat(path)
                size = 0 if name in folders else about.st_size
                found[path] = (about.st_mode, size, 0 if name in folders else about.st_mtime_ns)
    return found


@pytest.fixture
def unchanged() -> Iterator[None]:
    before = listing()
    yield
    after = listing()
    assert {path for path in before.keys() | after.keys() if before.get(path) != after.get(path)} == set()


def found_by(attacked: Scene) -> dict[str, Any]:
    job = attacked.launch(LOOK)
    assert attacked.ended(job).phase == "SUCCEEDED", attacked.lines(job)
    line = next(line for line in attacked.lines(job) if line.startswith("FOUND "))
    found = json.loads(line.removeprefix("FOUND "))
    for place in ("home", "tmp"):
        folder = attacked.portal.home / "local" / "runs"
        assert Path(found[place]).is_relative_to(folder.resolve()), found[place]
    until(lambda: not Path(found["home"]).exists(), what="the task's home to go with the run")
    return found


@pytest.mark.usefixtures("unchanged")
@pytest.mark.long
def test_what_a_script_installs_is_there_for_it_and_for_nothing_else(attacked: Scene, wheel: bytes):
    code = attacked.put_code({"main.py": INSTALL, WHEEL: wheel})
    job = attacked.client.jobs.launch(attacked.spec(code, roles={"worker": {"cpu": 0.5, "memory": "1Gi"}}))
    ended = attacked.ended(job)
    said = attacked.lines(job)
    assert ended.phase == "SUCCEEDED", said
    runs = str((attacked.portal.home / "local" / "runs").resolve())
    assert any(line.startswith(f"imported here {runs}") for line in said), said
    assert "planted" not in found_by(attacked)["there"]


@pytest.mark.usefixtures("unchanged")
def test_a_script_has_a_home_and_a_temporary_folder_of_its_own_and_sees_no_package_of_the_portal(attacked: Scene):
    found = found_by(attacked)
    assert found["there"] == ["numpy", "tensorflow", "sklearn", "pip"]
    assert found["seen"] == [f"{found['work']}/python/bin/{name}" for name in ("python", "pip", "python", "python3")]


def test_a_user_s_own_variables_still_win(attacked: Scene, tmp_path: Path):
    script = "import os; print('HOME IS', os.environ['HOME'])"
    job = attacked.launch(script, environment={"HOME": str(tmp_path)})
    attacked.ended(job)
    assert f"HOME IS {tmp_path}" in attacked.lines(job)
