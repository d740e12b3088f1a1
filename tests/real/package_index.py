"""A real package index on this machine, with wheels that tests make: pages in HTML (PEP 503), a port of its own."""

from __future__ import annotations

import base64
import contextlib
import hashlib
import io
import threading
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


def wheel(
    name: str, version: str, files: Mapping[str, str], requires: Sequence[str] = (), program: str = ""
) -> tuple[str, bytes]:
    """The name and the bytes of a pure Python wheel. `program`: `command = module:function`."""
    info = f"{name}-{version}.dist-info"
    metadata = [f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"]
    metadata += [f"Requires-Dist: {one}\n" for one in requires]
    content = {
        **files,
        f"{info}/METADATA": "".join(metadata),
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    if program:
        content[f"{info}/entry_points.txt"] = f"[console_scripts]\n{program}\n"
    rows = [f"{path},{_digest(text.encode())},{len(text.encode())}\n" for path, text in content.items()]
    content[f"{info}/RECORD"] = "".join([*rows, f"{info}/RECORD,,\n"])
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for path, text in content.items():
            archive.writestr(zipfile.ZipInfo(path), text)
    return f"{name}-{version}-py3-none-any.whl", packed.getvalue()


def _digest(content: bytes) -> str:
    return "sha256=" + base64.urlsafe_b64encode(hashlib.sha256(content).digest()).decode().rstrip("=")


class PackageIndex:
    """`files` by name; `requests` are the paths that were asked for; with `is_away` it answers 503."""

    def __init__(self, files: Sequence[tuple[str, bytes]]) -> None:
        self.files = dict(files)
        self.requests: list[str] = []
        self.is_away = False
        self.url = ""

    def page(self, project: str) -> str:
        named = [one for one in self.files if one.split("-")[0].replace("_", "-").lower() == project]
        links = [f'<a href="/files/{one}#sha256={self._sha256(one)}">{one}</a>' for one in named]
        return "<!DOCTYPE html><html><body>" + "\n".join(links) + "</body></html>" if named else ""

    def _sha256(self, file: str) -> str:
        return hashlib.sha256(self.files[file]).hexdigest()


@contextlib.contextmanager
def package_index(*files: tuple[str, bytes]) -> Iterator[PackageIndex]:
    """The index while it runs."""
    index = PackageIndex(files)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            index.requests.append(self.path)
            kind, _, name = self.path.strip("/").partition("/")
            content = index.page(name).encode() if kind == "simple" else index.files.get(name, b"")
            self.send_response(503 if index.is_away else 200 if content else 404)
            self.send_header("Content-Type", "text/html" if kind == "simple" else "application/octet-stream")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: Any) -> None:
            """Requests are remembered, not printed."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    index.url = f"http://127.0.0.1:{server.server_port}/simple"
    try:
        yield index
    finally:
        server.shutdown()
        server.server_close()
