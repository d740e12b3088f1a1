"""A real JupyterLab as the runner starts it, but without the gate: the program on its unix socket, and a browser's part
of the talk with it.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.cookies import SimpleCookie
from pathlib import Path
from typing import Any

import httpx2
from websockets.sync.client import ClientConnection, unix_connect

from portal.env import workbench_python
from yardmaster_runner.own_programs import Orders, to_variable
from yardmaster_runner.workbench import jupyter

ROOT = Path(__file__).resolve().parents[3]
SESSION = "0192b3c4-5d6e-7f80-8123-456789abcdef"
HOST = "workbench.example:8443"
PATIENCE = 100.0
MAKE_PYTHON = "import sys; from yardmaster_runner import own_python; own_python.make(sys.argv[1])"


def lacks_jupyterlab() -> str:
    """Why no notebook can be started here; empty where one can."""
    return (
        "" if os.access(workbench_python(), os.X_OK) else "JupyterLab is not installed in .venv-workbench (make setup)"
    )


class JupyterSession:
    """The running program of a task in `work`, with `home` as what is kept."""

    def __init__(self, work: Path, home: Path, **variables: str) -> None:
        self.work, self.home = work, home
        self.socket = str(work / "s")
        self.log = work / "log"
        self._client: httpx2.Client | None = None
        (work / "tmp").mkdir(parents=True, exist_ok=True)
        base = {"PATH": os.environ["PATH"], "LANG": "C.UTF-8", "PYTHONPATH": str(ROOT / "platform")}
        subprocess.run([workbench_python(), "-c", MAKE_PYTHON, str(work)], env=base, check=True)
        own = work / "python"
        orders = Orders({"session": SESSION, "owner": "x"}, *[""] * 5, task=0, tasks=1, home_dir=str(home))
        environment = base | to_variable(orders) | {
            "PATH": f"{own / 'bin'}:{base['PATH']}",
            "VIRTUAL_ENV": str(own),
            "PIP_REQUIRE_VIRTUALENV": "1",
            "TMPDIR": str(work / "tmp"),
            "HOME": str(work / "home"),
            jupyter.SOCKET: self.socket,
            **variables,
        }  # fmt: skip
        command = [str(own / "bin" / "python"), "-u", "-m", "yardmaster_runner.workbench.jupyter"]
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                command, cwd=work, env=environment, stdout=log, stderr=log, stdin=subprocess.DEVNULL,
                start_new_session=True,
            )  # fmt: skip

    def until(self, what: Callable[[], Any], named: str = "it") -> Any:
        deadline = time.monotonic() + PATIENCE
        while not (found := what()):
            assert self.process.poll() is None, self.said()
            assert time.monotonic() < deadline, f"{named}: {self.said()}"
            time.sleep(0.05)
        return found

    def said(self) -> str:
        return self.log.read_text(errors="replace")

    @property
    def client(self) -> httpx2.Client:
        """A browser that has opened JupyterLab, and has its XSRF cookie."""
        if self._client is None:
            self.until(lambda: _accepts(self.socket), "JupyterLab")
            client = self.stranger()
            client.get("lab")
            client.event_hooks["request"] = [_with_xsrf_header]
            self._client = client
        return self._client

    def stranger(self) -> httpx2.Client:
        """One that has not."""
        transport = httpx2.HTTPTransport(uds=self.socket)
        return httpx2.Client(transport=transport, base_url=f"http://{HOST}/w/{SESSION}/", timeout=PATIENCE)

    def web_socket(self, path: str, origin: str = f"http://{HOST}") -> ClientConnection:
        cookies = "; ".join(f"{name}={value}" for name, value in self.client.cookies.items())
        return unix_connect(
            self.socket, f"ws://{HOST}/w/{SESSION}/{path}", origin=origin,  # type: ignore[arg-type]
            additional_headers={"Cookie": cookies}, open_timeout=PATIENCE, compression=None,
        )  # fmt: skip

    def start_kernel(self) -> str:
        return str(self.client.post("api/kernels", json={"name": "python3"}).raise_for_status().json()["id"])

    def run(self, code: str, kernel: str | None = None) -> str:
        """What a cell prints, in this kernel or one of its own. An exception of the cell is one here."""
        own = kernel or self.start_kernel()
        with self.web_socket(f"api/kernels/{own}/channels") as connection:
            asked = uuid.uuid4().hex
            connection.send(json.dumps(_execute(code, asked)))
            printed = "".join(_output_of(connection, asked))
        if kernel is None:
            self.client.delete(f"api/kernels/{own}")
        return printed

    def stop(self) -> int:
        """As the runner does it: SIGTERM to the group. The exit code."""
        if self._client is not None:
            self._client.close()
        os.killpg(self.process.pid, signal.SIGTERM)
        return self.process.wait(30)

    def kill(self) -> None:
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()


@contextmanager
def jupyter_session(work: Path, home: Path, **variables: str) -> Iterator[JupyterSession]:
    """It, ended at the end."""
    session = JupyterSession(work, home, **variables)
    try:
        yield session
        if session.process.poll() is None:
            session.stop()
    finally:
        session.kill()


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
        elif kind == "error":
            raise AssertionError("\n".join(content["traceback"]))
        elif kind == "status" and content["execution_state"] == "idle":
            return
