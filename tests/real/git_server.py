"""A real Git host on this machine: `git http-backend` behind a small HTTP server, with repositories made by `git`."""

from __future__ import annotations

import contextlib
import os
import subprocess
import threading
from collections.abc import Callable, Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

_WHO = {
    "GIT_AUTHOR_NAME": "Test", "GIT_AUTHOR_EMAIL": "test@example.org", "GIT_COMMITTER_NAME": "Test",
    "GIT_COMMITTER_EMAIL": "test@example.org", "GIT_CONFIG_NOSYSTEM": "1", "HOME": "/nonexistent",
    "GIT_AUTHOR_DATE": "2026-01-01T00:00:00Z", "GIT_COMMITTER_DATE": "2026-01-01T00:00:00Z",
}  # fmt: skip


def git(folder: Path, *arguments: str, stdin: bytes = b"") -> str:
    """Run git in the folder; returns what it printed."""
    ended = subprocess.run(
        ["git", "-c", "init.defaultBranch=main", "-c", "uploadpack.allowAnySHA1InWant=true", *arguments],
        cwd=folder, env={"PATH": os.environ["PATH"], **_WHO}, input=stdin, capture_output=True, check=False,
    )  # fmt: skip
    assert ended.returncode == 0, ended.stderr.decode()
    return ended.stdout.decode().strip()


class GitHost:
    """`requests`: method, path and the header Authorization of each; `answers`: what is answered at a path instead of
    what git says, as status and headers; `token`: what is asked for as a password, where it is set;
    `is_old`: it does not know version 2 of the protocol."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.requests: list[tuple[str, str, str]] = []
        self.answers: dict[str, tuple[int, Mapping[str, str], bytes]] = {}
        self.token = ""
        self.is_old = False
        self.before_answer: Callable[[str], None] = lambda path: None
        self.origin = ""

    def repository(self, name: str, files: Mapping[str, str | bytes] | None = None) -> Path:
        """A new repository, with one commit where there are files."""
        folder = self.root / name
        folder.mkdir(parents=True)
        git(folder, "init", "-q")
        if files:
            self.commit(folder, files)
        return folder

    def commit(self, folder: Path, files: Mapping[str, str | bytes], message: str = "Change") -> str:
        """One more commit, which has these files changed; returns its id."""
        for path, content in files.items():
            place = folder / path
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(content.encode() if isinstance(content, str) else content)
        git(folder, "add", "-A")
        git(folder, "commit", "-q", "--allow-empty", "-m", message)
        return git(folder, "rev-parse", "HEAD")

    def address(self, name: str) -> str:
        """Of this repository, as people write it."""
        return f"git+{self.origin}/{name}"


@contextlib.contextmanager
def git_host(root: Path) -> Iterator[GitHost]:
    """The host while the block runs, on this machine's loopback address."""
    host = GitHost(root)

    class Handler(_Handler):
        of = host

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    host.origin = f"http://127.0.0.1:{server.server_port}"
    try:
        yield host
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class _Handler(BaseHTTPRequestHandler):
    of: GitHost

    def do_GET(self) -> None:
        self._serve()

    def do_POST(self) -> None:
        self._serve()

    def log_message(self, *_: object) -> None:
        pass

    def _serve(self) -> None:
        path, _, query = self.path.partition("?")
        said = self.headers.get("Authorization", "")
        self.of.requests.append((self.command, path, said))
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.of.before_answer(path)
        if path in self.of.answers:
            status, headers, content = self.of.answers[path]
            self._answer(status, dict(headers), content)
        elif self.of.token and self.of.token not in _password(said):
            self._answer(401, {"WWW-Authenticate": 'Basic realm="git"'}, b"")
        else:
            self._backend(path, query, body)

    def _backend(self, path: str, query: str, body: bytes) -> None:
        environment = {
            "PATH": os.environ["PATH"], "GIT_PROJECT_ROOT": str(self.of.root), "GIT_HTTP_EXPORT_ALL": "1", **_WHO,
            "PATH_INFO": path, "QUERY_STRING": query, "REQUEST_METHOD": self.command, "REMOTE_ADDR": "127.0.0.1",
            "CONTENT_TYPE": self.headers.get("Content-Type", ""), "CONTENT_LENGTH": str(len(body)),
            "GIT_PROTOCOL": "" if self.of.is_old else self.headers.get("Git-Protocol", ""), "GIT_CONFIG_COUNT": "1",
            "GIT_CONFIG_KEY_0": "safe.directory", "GIT_CONFIG_VALUE_0": "*",
        }  # fmt: skip
        ended = subprocess.run(["git", "http-backend"], env=environment, input=body, capture_output=True, check=False)
        head, _, content = ended.stdout.partition(b"\r\n\r\n")
        headers = dict(line.split(": ", 1) for line in head.decode().split("\r\n") if ": " in line)
        self._answer(int(headers.pop("Status", "200").split()[0]), headers, content)

    def _answer(self, status: int, headers: dict[str, str], content: bytes) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        with contextlib.suppress(ConnectionError):
            self.wfile.write(content)


def _password(header: str) -> str:
    import base64

    with contextlib.suppress(ValueError):
        return base64.b64decode(header.removeprefix("Basic ")).decode().rpartition(":")[2]
    return ""
