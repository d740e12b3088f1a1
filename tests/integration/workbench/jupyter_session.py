"""A real JupyterLab as the runner starts it, but without the gate: the program on its unix socket, and a browser's part
of the talk with it.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from http.cookies import SimpleCookie
from pathlib import Path
from typing import Any

import httpx2
from websockets.sync.client import ClientConnection, unix_connect

from portal.env import workbench_python
from yardmaster_runner.own_programs import Orders, to_variable
from yardmaster_runner.shell_host import as_of_any_program
from yardmaster_runner.workbench import jupyter

ROOT = Path(__file__).resolve().parents[3]
SESSION = "0192b3c4-5d6e-7f80-8123-456789abcdef"
HOST = "workbench.example:8443"
PORTAL = "https://portal.example"
PATIENCE = 100.0
MAKE_PYTHON = "import sys; from yardmaster_runner import own_python; own_python.make(sys.argv[1])"


def lacks_jupyterlab() -> str:
    """Why no notebook can be started here; empty where one can."""
    return (
        "" if os.access(workbench_python(), os.X_OK) else "JupyterLab is not installed in .venv-workbench (make setup)"
    )


class Jupyter:
    """A browser's part of the talk with a JupyterLab that listens, or soon will, on this socket. `said` has what it
    printed, `is_alive` whether it can still come."""

    def __init__(self, socket_path: str, home: Path, session: str = SESSION) -> None:
        self.socket, self.home, self._at = socket_path, home, f"{HOST}/w/{session}"
        self._client: httpx2.Client | None = None

    def is_alive(self) -> bool:
        return True

    def said(self) -> str:
        return ""

    @property
    def client(self) -> httpx2.Client:
        """A browser that has opened JupyterLab, and has its XSRF cookie."""
        if self._client is None:
            self._wait()
            client = self.stranger()
            client.get("lab")
            client.event_hooks["request"] = [_with_xsrf_header]
            self._client = client
        return self._client

    def stranger(self) -> httpx2.Client:
        """One that has not."""
        transport = httpx2.HTTPTransport(uds=self.socket)
        return httpx2.Client(transport=transport, base_url=f"http://{self._at}/", timeout=PATIENCE)

    def web_socket(self, path: str, origin: str = f"http://{HOST}") -> ClientConnection:
        cookies = "; ".join(f"{name}={value}" for name, value in self.client.cookies.items())
        return unix_connect(
            self.socket, f"ws://{self._at}/{path}", origin=origin,  # type: ignore[arg-type]
            additional_headers={"Cookie": cookies}, open_timeout=PATIENCE, compression=None,
        )  # fmt: skip

    def start_kernel(self) -> str:
        return str(self.client.post("api/kernels", json={"name": "python3"}).raise_for_status().json()["id"])

    def run_notebook(self, path: str) -> list[str]:
        """What each cell of a notebook in the home shows, run from top to bottom in a kernel of its own."""
        notebook = self.client.get(f"api/contents/{path}").raise_for_status().json()["content"]
        wanted = {"path": path, "name": path, "type": "notebook", "kernel": {"name": "python3"}}
        begun = self.client.post("api/sessions", json=wanted).raise_for_status().json()
        cells = [one["source"] for one in notebook["cells"] if one["cell_type"] == "code"]
        shown = [self.run(cell, begun["kernel"]["id"]) for cell in cells]
        self.client.delete(f"api/sessions/{begun['id']}")
        return shown

    def run(self, code: str, kernel: str | None = None) -> str:
        """What a cell prints and shows, in this kernel or one of its own. An exception of the cell is one here."""
        own = kernel or self.start_kernel()
        with self.web_socket(f"api/kernels/{own}/channels") as connection:
            asked = uuid.uuid4().hex
            connection.send(json.dumps(_execute(code, asked)))
            printed = "".join(_output_of(connection, asked))
        if kernel is None:
            self.client.delete(f"api/kernels/{own}")
        return printed

    def close(self) -> None:
        if self._client is not None:
            self._client.close()

    def _wait(self) -> None:
        deadline = time.monotonic() + PATIENCE
        while not _accepts(self.socket):
            assert self.is_alive(), self.said()
            assert time.monotonic() < deadline, self.said()
            time.sleep(0.05)


class JupyterSession(Jupyter):
    """The program as the runner starts it in the folder `work` of a task, with `home` as what is kept. `options`: more
    of those that the portal gives it."""

    def __init__(self, work: Path, home: Path, options: Mapping[str, Any] | None = None, **variables: str) -> None:
        self.work, self.log = work, work / "log"
        self.temporary = tempfile.mkdtemp(prefix="j-")  # short, as the engine's
        super().__init__(f"{self.temporary}/s", home)
        work.mkdir(parents=True)
        base = {"PATH": os.environ["PATH"], "LANG": "C.UTF-8", "PYTHONPATH": str(ROOT / "platform")}
        subprocess.run([workbench_python(), "-c", MAKE_PYTHON, str(work)], env=base, check=True)
        own = work / "python" / "bin"
        said = {"session": SESSION, "owner": "x", "portal": PORTAL, **(options or {})}
        orders = Orders(said, *[""] * 5, task=0, tasks=1, home_dir=str(home))
        environment = base | to_variable(orders) | {
            "PATH": f"{own}:{base['PATH']}",
            "VIRTUAL_ENV": str(own.parent),
            "PIP_REQUIRE_VIRTUALENV": "1",
            "TMPDIR": self.temporary,
            "HOME": str(work / "home"),
            jupyter.SOCKET: self.socket,
            **variables,
        }  # fmt: skip
        command = [str(own / "python"), "-u", "-m", "yardmaster_runner.workbench.jupyter"]
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                command, cwd=work, env=environment, stdout=log, stderr=log, stdin=subprocess.DEVNULL,
                start_new_session=True, preexec_fn=as_of_any_program,
            )  # fmt: skip

    def is_alive(self) -> bool:
        return self.process.poll() is None

    def said(self) -> str:
        return self.log.read_text(errors="replace")

    def stop(self) -> int:
        """As the runner does it: SIGTERM to the group. The exit code."""
        self.close()
        os.killpg(self.process.pid, signal.SIGTERM)
        return self.process.wait(30)

    def kill(self) -> None:
        """With all that is left of it."""
        if self.is_alive():
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
        shutil.rmtree(self.temporary, ignore_errors=True)


@contextmanager
def jupyter_session(
    work: Path, home: Path, options: Mapping[str, Any] | None = None, **variables: str
) -> Iterator[JupyterSession]:
    """It, ended at the end."""
    session = JupyterSession(work, home, options, **variables)
    try:
        yield session
        if session.is_alive():
            session.stop()
    finally:
        session.kill()


def socket_of_task(run: Path) -> str:
    """Where the JupyterLab of this run of the local engine listens, behind the gate."""
    mark = f"YARDMASTER_WORK_DIR={run}/tasks/worker-0/work".encode()
    option = "--ServerApp.sock="
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        for folder in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):  # it has ended meanwhile
                if mark in (folder / "environ").read_bytes().split(b"\0"):
                    words = (folder / "cmdline").read_text().split("\0")
                    if found := [word for word in words if word.startswith(option)]:
                        return found[0].removeprefix(option)
        time.sleep(0.1)
    raise AssertionError(f"no JupyterLab in {run}")


def _accepts(path: str) -> bool:
    with socket.socket(socket.AF_UNIX) as probe:
        return probe.connect_ex(path) == 0


def _with_xsrf_header(request: httpx2.Request) -> None:
    """As JupyterLab's own script does it."""
    cookies = SimpleCookie(request.headers.get("Cookie", ""))
    if "_xsrf" in cookies:
        request.headers["X-XSRFToken"] = cookies["_xsrf"].value


def _execute(code: str, asked: str) -> dict[str, Any]:
    header = {"msg_id": asked, "msg_type": "execute_request", "session": "test", "username": "", "version": "5.3"}
    content = {"code": code, "silent": False, "store_history": False, "allow_stdin": False, "stop_on_error": True}
    return {"header": header, "parent_header": {}, "metadata": {}, "content": content, "channel": "shell"}


def _output_of(connection: ClientConnection, asked: str) -> Iterator[str]:
    while True:
        message = json.loads(connection.recv(PATIENCE))
        content, kind = message["content"], message["header"]["msg_type"]
        if message["parent_header"].get("msg_id") != asked:
            continue
        if kind == "stream":
            yield content["text"]
        elif kind in ("display_data", "update_display_data", "execute_result"):
            yield content["data"].get("text/html", content["data"].get("text/plain", ""))
        elif kind == "error":
            raise AssertionError("\n".join(content["traceback"]))
        elif kind == "status" and content["execution_state"] == "idle":
            return
