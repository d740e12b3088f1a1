"""The program behind a notebook session, for real: JupyterLab on its socket, a kernel, a terminal, and what is kept."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import time
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

import pytest
from websockets.exceptions import InvalidStatus

from portal.env import workbench_python
from tests.integration.workbench.jupyter_session import (
    HOST,
    PATIENCE,
    PORTAL,
    SESSION,
    JupyterSession,
    jupyter_session,
)
from tests.real import scene
from tests.real.portal import ROOT
from yardmaster_runner.processes import descendants
from yardmaster_runner.workbench.opening import FOLDER

pytestmark = [pytest.mark.slow, pytest.mark.workbench]

PACKAGE = "[project]\nname = 'of-the-session'\nversion = '1'\n[tool.setuptools]\npy-modules = ['of_the_session']\n"


VERSION = "01a214d8-c46d-7265-ae3a-b95d95c603a4"


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[JupyterSession]:
    folder = tmp_path_factory.mktemp("j")
    secrets = {"YARDMASTER_URL": "http://127.0.0.1:9", "YARDMASTER_TOKEN": "of-the-user"}
    with jupyter_session(folder / "w", folder / "home", **secrets) as session:
        yield session


def test_it_answers_below_its_own_path_alone_and_asks_for_no_password(session: JupyterSession):
    assert session.client.get("api").json()["version"]
    page = session.client.get("lab")
    assert page.status_code == 200
    assert f'"baseUrl": "/w/{SESSION}/"' in page.text
    assert session.client.get(f"http://{HOST}/api").status_code == 404
    assert stat.S_IMODE(os.stat(session.socket).st_mode) == 0o600


def test_it_changes_nothing_for_pages_of_other_origins(session: JupyterSession):
    assert session.client.get("api").status_code == 200
    with session.stranger() as stranger:
        assert stranger.post("api/kernels", json={}).status_code == 403
    kernel = session.start_kernel()
    with pytest.raises(InvalidStatus) as refused:
        session.web_socket(f"api/kernels/{kernel}/channels", origin="http://elsewhere.example")
    assert refused.value.response.status_code == 403
    session.client.delete(f"api/kernels/{kernel}")


def test_a_kernel_that_only_starts_can_be_listed_too():
    code = "from yardmaster_runner.workbench.kernels import Kernel; print(Kernel().last_activity.isoformat())"
    environment = os.environ | {"PYTHONPATH": str(ROOT / "platform")}
    said = subprocess.run([workbench_python(), "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert datetime.fromisoformat(said.stdout.strip()).tzinfo is not None


def test_a_kernel_runs_in_the_kept_home_signed_in_and_without_what_is_the_runners(session: JupyterSession):
    code = "import json, os, sys; print(json.dumps([os.getcwd(), sys.prefix, dict(os.environ)]))"
    folder, prefix, seen = json.loads(session.run(code))
    assert folder == seen["HOME"] == str(session.home)
    assert prefix == str(session.work / "python")
    assert seen["XDG_CACHE_HOME"] == str(Path(session.temporary, "jp", "cache")), "it goes with the task"
    assert seen["YARDMASTER_TOKEN"] == "of-the-user"
    assert seen["YARDMASTER_PUBLIC_URL"] == PORTAL, "where links lead"
    assert not {"YARDMASTER_PROGRAM", "YARDMASTER_SERVICE_SOCKET", "YARDMASTER_TOKEN_FILE"} & seen.keys()
    said = "import yardmaster_client as c; print(c.Yardmaster.from_environment().transport.url)"
    assert session.run(said) == "http://127.0.0.1:9\n"
    assert session.run("import tensorflow, ipywidgets, matplotlib.pyplot; print('there')").endswith("there\n")


def test_notes_of_tensorflow_are_no_output_of_a_cell_unless_asked_for(session: JupyterSession):
    notes = (
        "I0000 00:00:1.5 7 cpu_feature_guard.cc:227] optimized",
        "2026-01-01 00:00:00.1: I core/util/port.cc:1] oneDNN",
    )
    shown = (
        "W0000 00:00:1.5 7 x.cc:1] a warning",
        "E0000 00:00:1.5 7 x.cc:1] an error",
        "I1125 22:11:33.1 140 mine.py:12] my own",
    )
    printed = "".join(f"os.write(2, b'{line}\\n'); time.sleep(0.2)\n" for line in (*notes, *shown))
    code = "import os, time\n" + printed + "time.sleep(2)\n"  # what reads them may be slower than the cell ends
    kernel = session.start_kernel()
    seen = session.run(code, kernel)
    assert all(line in seen for line in shown)
    assert not any(line in seen for line in notes)
    seen = session.run("import tensorflow as tf; print(tf.zeros(1).shape)", kernel)
    assert "absl::InitializeLog" not in seen
    assert "could not find cuda" not in seen.lower()
    seen = session.run("%env TF_CPP_MIN_LOG_LEVEL=0\n" + code, kernel)
    assert all(line in seen for line in (*notes, *shown))
    session.client.delete(f"api/kernels/{kernel}")


def test_a_kernel_listens_on_no_port_and_is_started_again_on_request(session: JupyterSession):
    kernel = session.start_kernel()
    found = json.loads(Path(session.temporary, "jp", "run", f"kernel-{kernel}.json").read_text())
    assert found["transport"] == "ipc"
    assert session.run("print(6 * 7)", kernel) == "42\n"
    session.client.post(f"api/kernels/{kernel}/restart").raise_for_status()
    assert session.run("print(6 * 8)", kernel) == "48\n"
    session.client.delete(f"api/kernels/{kernel}")


def test_what_pip_installs_is_found_by_kernels_and_goes_with_the_session(session: JupyterSession, tmp_path: Path):
    (tmp_path / "pyproject.toml").write_text(PACKAGE)
    (tmp_path / "of_the_session.py").write_text("WHERE = __file__\n")
    options = "--quiet --no-index --no-build-isolation"
    kernel = session.start_kernel()
    said = session.run(f"%pip install {options} {tmp_path}", kernel)
    place = session.run("import of_the_session; print(of_the_session.WHERE)", kernel).strip()
    assert place.startswith(str(session.work / "python")), said
    session.client.delete(f"api/kernels/{kernel}")


def test_a_terminal_starts_at_home_with_a_prompt_and_the_command(session: JupyterSession):
    name = session.client.post("api/terminals").raise_for_status().json()["name"]
    with session.web_socket(f"terminals/websocket/{name}") as socket:
        seen = ""

        def until(words: str) -> None:
            nonlocal seen
            deadline = time.monotonic() + PATIENCE
            while words not in seen:
                assert time.monotonic() < deadline, seen
                kind, *rest = json.loads(socket.recv(PATIENCE))
                seen += rest[0] if kind == "stdout" else ""

        until("~ # " if os.getuid() == 0 else "~ $ ")
        socket.send(json.dumps(["stdin", "yardmaster --help | grep -c Train; which python pip; pwd\r"]))
        until("python/bin/python\r\n")
        until("python/bin/pip\r\n")
        until(f"\n{session.home}\r\n")
        assert "\r1\r\n" in seen
    session.client.delete(f"api/terminals/{name}")


def test_a_terminal_says_whether_a_command_runs_in_it(session: JupyterSession):
    name = session.client.post("api/terminals").raise_for_status().json()["name"]

    def until(state: str, press: str = "") -> None:
        deadline = time.monotonic() + PATIENCE
        while session.client.get(f"api/terminals/{name}").json()["execution_state"] != state:
            assert time.monotonic() < deadline, f"it is never {state}"
            if press:  # a command that is only just begun may miss it
                socket.send(json.dumps(["stdin", press]))
            time.sleep(0.1)

    with session.web_socket(f"terminals/websocket/{name}") as socket:
        until("idle")
        socket.send(json.dumps(["stdin", "sleep 600 > /dev/null\r"]))
        until("busy")
        until("idle", press="\x03")
        socket.send(json.dumps(["stdin", "sleep 600 &\r"]))
        time.sleep(0.5)
        until("idle")
    assert [one["name"] for one in session.client.get("api/terminals").json()] == [name]
    session.client.delete(f"api/terminals/{name}")


def test_it_starts_with_the_starter_notebooks_and_keeps_nothing_else_of_its_own_at_home(session: JupyterSession):
    rows = session.client.get("api/contents/Starter notebooks").json()["content"]
    names = [row["name"] for row in rows if row["type"] == "notebook"]
    assert len(names) == 4
    for name in names:
        assert session.client.get(f"api/contents/Starter notebooks/{name}").json()["type"] == "notebook"
    assert not list(session.home.rglob("kernel-*.json"))


def test_its_own_pages_have_the_script_that_says_when_it_stops_and_those_of_users_have_not(session: JupyterSession):
    script = f'<script src="{session.client.base_url.path}.yardmaster/notice.js"></script></body>'
    answer = session.client.get("lab")
    assert script in answer.text
    assert int(answer.headers.get("content-length", len(answer.content))) == len(answer.content)
    (session.home / "own.html").write_text("<html><body>mine</body></html>")
    assert session.client.get("files/own.html").text == "<html><body>mine</body></html>"


def test_a_version_is_opened_in_a_notebook_that_is_made_once(session: JupyterSession):
    query = {"kind": "code", "version": VERSION, "name": 'a/b"@2'}
    for _ in range(2):
        answer = session.client.get("yardmaster/open", params=query)
        place = "From%20the%20portal/code%20a-b-%402.ipynb"
        assert (answer.status_code, answer.headers["Location"]) == (302, f"/w/{SESSION}/lab/tree/{place}")
    assert [one.name for one in (session.home / FOLDER).iterdir()] == ["code a-b-@2.ipynb"]
    cells = session.client.get(f"api/contents/{FOLDER}/code a-b-@2.ipynb").json()["content"]["cells"]
    assert f"portal.code.open('{VERSION}', folder)" in cells[-1]["source"]
    for wrong in ({"kind": "job"}, {"version": "x'); evil('"}, {"version": ""}):
        assert session.client.get("yardmaster/open", params=query | wrong).status_code == 400


def test_nothing_of_it_asks_servers_of_others(session: JupyterSession):
    page = session.client.get("lab").text
    for extension in ("apputils-extension:announcements", "extensionmanager-extension:plugin"):
        assert f"@jupyterlab/{extension}" in page, "what is switched off stands in the page"
    assert session.client.get("lab/api/news").json() == {"news": []}
    assert session.client.get("lab/api/update").json() == {"notification": None}


def test_it_is_light_or_dark_as_the_browser_prefers_until_users_choose(session: JupyterSession):
    themes = session.client.get("lab/api/settings/@jupyterlab/apputils-extension:themes").json()
    assert themes["schema"]["properties"]["adaptive-theme"]["default"] is True


def test_a_stop_ends_kernels_and_terminals_in_time_and_the_home_stays(tmp_path: Path):
    home = tmp_path / "home"
    with jupyter_session(tmp_path / "w", home) as session:
        kernel = session.start_kernel()
        session.run("open('kept.txt', 'w').write('mine')", kernel)
        session.client.post("api/terminals").raise_for_status()
        before = {one.pid for one in descendants(session.process.pid)}
        assert len(before) >= 2
        begun = time.monotonic()
        assert session.stop() == 0
        # The last of them were killed: that takes the kernel a moment.
        scene.until(lambda: not [pid for pid in before if _is_alive(pid)], 20, "the end of its processes")
        assert time.monotonic() - begun < 20
    assert stat.S_IMODE(home.stat().st_mode) == 0o700
    with jupyter_session(tmp_path / "w2", home) as session:
        assert session.client.get("api/contents/kept.txt").json()["content"] == "mine"


def _is_alive(pid: int) -> bool:
    try:
        return (Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]) != "Z"
    except FileNotFoundError:
        return False
