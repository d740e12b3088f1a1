"""What a Git address says: `git+https://host/owner/repository[@ref][#subdirectory=path]`, as pip writes it. A plain
`https://` address is read, too, and so are a ref and a folder that are named beside it.

Pure. Not here: which hosts may be asked (`hosts`), and whether there is such a ref (`refs`).
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from urllib.parse import SplitResult, quote, unquote, urlsplit

from yardmaster.errors import Problem, SpecRejected
from yardmaster.job.spec_limits import shorten

PREFIX = "git+"
LONGEST = 1_000
_DEFAULT_PORTS = {"https": 443, "http": 80}
_FORM = "Write git+https://host/owner/repository, with @ref and #subdirectory=path where they are needed."
_HOST = re.compile(r"[a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?|\[[0-9a-f:.]{2,45}\]", re.ASCII)
_PAGE = re.compile(r"(/[^/]+(?:/[^/]+)+?)/(?:-/)?(?:tree|blob|commit|src/branch|src/tag)/([^/]+)(?:/(.*))?")
_REF = re.compile(r"[^\x00-\x20\x7f~^:?*\[\\@{}-][^\x00-\x20\x7f~^:?*\[\\]{0,254}")


@dataclass(frozen=True)
class GitAddress:
    """A repository, the ref (empty: the default branch) and the folder (empty: all) that are meant."""

    scheme: str
    host: str
    port: int
    path: str
    """With its leading slash, and escaped as in a URL."""
    ref: str = ""
    folder: str = ""

    @property
    def origin(self) -> str:
        """`https://host`, with the port where it is not the usual one."""
        usual = self.port == _DEFAULT_PORTS[self.scheme]
        return f"{self.scheme}://{self.host}" + ("" if usual else f":{self.port}")

    @property
    def repository(self) -> str:
        """The address of the repository alone, that a browser can open."""
        return self.origin + self.path

    @property
    def name(self) -> str:
        """What the repository is called."""
        return unquote(self.path).rstrip("/").rpartition("/")[2].removesuffix(".git")

    def __str__(self) -> str:
        ref = f"@{self.ref}" if self.ref else ""
        return PREFIX + self.repository + ref + (f"#subdirectory={quote(self.folder)}" if self.folder else "")


def git_address(text: str, ref: str = "", folder: str = "") -> GitAddress:
    """What `text` says. `ref` and `folder` stand in the place of those in it. Raises `SpecRejected`, whose problems
    have the fields `address`, `ref` and `folder`."""
    text = text.strip()
    if not 0 < len(text) <= LONGEST or any(sign <= " " or sign == "\x7f" for sign in text):
        raise _refused("address", "git_address", "This is no address of a Git repository.", _FORM, text)
    parts = _split(text)
    path, at, said_ref = parts.path.rpartition("@")
    path = (path if at else parts.path).rstrip("/")
    if not path.strip("/") or any(one in (".", "..", "") for one in unquote(path).split("/")[1:]):
        raise _refused("address", "git_address", "The address names no repository.", _FORM, text)
    found = GitAddress(
        parts.scheme, _host_of(parts, text), parts.port or _DEFAULT_PORTS[parts.scheme],
        quote(unquote(path), safe="/~+!$&'(),;=:@-._"),
    )  # fmt: skip
    _refuse_page(found, text)
    return replace(found, ref=_ref(ref or unquote(said_ref if at else "")), folder=_folder(folder or _said_in(parts)))


def _refuse_page(found: GitAddress, text: str) -> None:
    """Pages of hosts are what people copy: they name the ref and the folder, but do not say where one ends."""
    page = _PAGE.fullmatch(found.path)
    if page is None:
        return
    meant = f"git+{found.origin}{page[1]}@{page[2]}" + (f"#subdirectory={page[3]}" if page[3] else "")
    message = f"This is a page about the repository {found.origin}{page[1]}."
    raise _refused("address", "git_page", message, f"Write for instance {shorten(meant, 300)}.", text)


def _split(text: str) -> SplitResult:
    try:
        parts = urlsplit(text.removeprefix(PREFIX))
        parts.port  # noqa: B018 (raises where it is none)
    except ValueError as error:
        raise _refused("address", "git_address", "This is no address of a Git repository.", _FORM, text) from error
    if parts.scheme not in _DEFAULT_PORTS:
        message = f"Code is fetched over https alone, not by {shorten(parts.scheme or 'a path')}."
        raise _refused("address", "git_scheme", message, _FORM, text)
    if parts.username is not None or parts.password is not None:
        message = "An address must not contain a user name, a password or a token."
        remedy = "Store the token as a secret of the namespace, and name the secret (git_token)."
        raise _refused("address", "git_credentials", message, remedy, "")  # not repeated: it is one
    if parts.query:
        raise _refused("address", "git_address", "The address of a repository has no ?query.", _FORM, text)
    return parts


def _host_of(parts: SplitResult, text: str) -> str:
    host = (parts.hostname or "").lower().rstrip(".")
    host = f"[{host}]" if ":" in host else host
    if not _HOST.fullmatch(host):
        raise _refused("address", "git_address", "The address names no host.", _FORM, text)
    return host


def _said_in(parts: SplitResult) -> str:
    """The folder that the fragment names."""
    if not parts.fragment:
        return ""
    key, _, value = parts.fragment.partition("=")
    if key != "subdirectory" or not value:
        message = "Behind # only subdirectory=path is understood."
        raise _refused("folder", "git_folder", message, "Write #subdirectory=path/in/the/repository.", parts.fragment)
    return unquote(value)


def _ref(text: str) -> str:
    text = text.strip()
    if text and (not _REF.fullmatch(text) or ".." in text or "//" in text or text.endswith(("/", ".", ".lock"))):
        message = "This can be no branch, tag or commit."
        raise _refused("ref", "git_ref", message, "Name a branch, a tag, or a whole commit id of 40 digits.", text)
    return text


def _folder(text: str) -> str:
    text = text.strip().strip("/")
    if not text:
        return ""
    parts = text.split("/")
    is_plain = all(one not in ("", ".", "..") and one.lower() != ".git" for one in parts)
    if len(text) > 512 or not is_plain or "\\" in text or not text.isprintable():
        message = "This is no folder of a repository."
        raise _refused("folder", "git_folder", message, "Write its path from the top, such as examples/mnist.", text)
    return text


def _refused(field: str, code: str, message: str, remedy: str, value: str) -> SpecRejected:
    return SpecRejected([Problem(field, code, message, remedy, shorten(value))])
