"""Puts the script into a session's pages by which they say that the session is about to stop. The portal serves it.

For JupyterLab this is one of Tornado's output transforms, a class of which each request has an instance.
"""

from __future__ import annotations

from typing import Any, Tuple

SCRIPT = ".yardmaster/notice.js"
END = b"</body>"


def with_notices(page: bytes, prefix: str) -> bytes:
    """The HTML with the script. `prefix`: the path below which the session is, with a slash at its end."""
    return with_script(page, prefix + SCRIPT)


def with_script(page: bytes, address: str) -> bytes:
    """The HTML with the script of this address at its end; what is no page stays as it is."""
    before, end, after = page.rpartition(END)
    return before + ('<script src="%s"></script>' % address).encode() + end + after if end else page


def transform_for(prefix: str) -> type:
    """The transform of JupyterLab's own pages below this path, not of users' files. It comes before compression."""

    class Notices:
        def __init__(self, request: Any) -> None:
            self._is_own = request.path.startswith((prefix + "lab", prefix + "doc"))

        def transform_first_chunk(
            self, status_code: int, headers: Any, chunk: bytes, finishing: bool
        ) -> Tuple[int, Any, bytes]:
            if self._is_own and finishing and headers.get("Content-Type", "").startswith("text/html"):
                chunk = with_notices(chunk, prefix)
                if "Content-Length" in headers:
                    headers["Content-Length"] = str(len(chunk))
            return status_code, headers, chunk

        def transform_chunk(self, chunk: bytes, finishing: bool) -> bytes:
            return chunk

    return Notices
