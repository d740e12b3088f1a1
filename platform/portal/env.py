"""Typed readers of the environment. They fail at start, with the variable's name, what stood there, and what would do.

Not here: which variables there are (`settings`).
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from django.core.exceptions import ImproperlyConfigured

from apps.workbench.proxy import origins
from yardmaster.quantity import format_bytes, parse_memory

_UNIX_SOCKET_LIMIT = 100  # sun_path holds 108 bytes on Linux, 104 on macOS


DEFAULTS: dict[str, str] = {}
"""Of each variable that this process has read, what counts without it; empty: nothing, or it is not said here."""


def text(name: str, default: str = "") -> str:
    DEFAULTS[name] = default
    return os.environ.get(name, "") or default


def flag(name: str, default: bool = False) -> bool:
    value = text(name, "1" if default else "0").lower()
    if value in {"1", "true", "yes", "on"}:
        return True
    if value in {"0", "false", "no", "off"}:
        return False
    raise ImproperlyConfigured(f"{name}={value!r} is neither true nor false: set it to 1 or 0.")


def number(name: str, default: int, *, least: int = 0) -> int:
    value = text(name, str(default))
    try:
        result = int(value)
    except ValueError as error:
        raise ImproperlyConfigured(f"{name}={value!r} is not a whole number.") from error
    if result < least:
        raise ImproperlyConfigured(f"{name}={result} is too small: it must be at least {least}.")
    return result


def one_of(name: str, words: Sequence[str], default: str) -> str:
    value = text(name, default)
    if value not in words:
        raise ImproperlyConfigured(f"{name}={value!r} is none of: {', '.join(words)}.")
    return value


def limit(name: str, read: Callable[[str], float]) -> float | None:
    """An amount that must not be exceeded, read by `read`; unset: None, unlimited."""
    value = text(name)
    if not value:
        return None
    try:
        result = read(value)
    except ValueError as error:
        raise ImproperlyConfigured(f"{name}={value!r} is not an amount: {error}.") from error
    if result < 0:
        raise ImproperlyConfigured(f"{name}={value!r} is below 0: unset it for no limit.")
    return result


def size(name: str, default: str, *, least: int = 0) -> int:
    """Bytes, written as in job files (`512Mi`)."""
    value = text(name, default)
    try:
        result = parse_memory(value)
    except ValueError as error:
        raise ImproperlyConfigured(f"{name}={value!r} is not an amount of bytes: {error}.") from error
    if result < least:
        raise ImproperlyConfigured(f"{name}={value!r} is too small: it must be at least {format_bytes(least)}.")
    return result


def task_python(name: str = "YARDMASTER_TASK_PYTHON") -> str:
    """The interpreter of tasks; unset: that of `.venv-tasks`, beside the environment that this process runs in."""
    return text(name, str(Path(sys.prefix).resolve().parent / ".venv-tasks" / "bin" / "python"))


def workbench_python(name: str = "YARDMASTER_WORKBENCH_PYTHON") -> str:
    """The interpreter of notebooks; unset: that of `.venv-workbench`, in the same place."""
    return text(name, str(Path(sys.prefix).resolve().parent / ".venv-workbench" / "bin" / "python"))


OFFERED = "offered"
"""Of the environment of Spark, what scripts may import."""


def spark_folder(name: str = "YARDMASTER_SPARK") -> str:
    """The folder with Spark's Python packages; unset: what `make spark` has installed beside the portal's Python, empty
    where it has not."""
    beside = Path(sys.prefix).resolve().parent / ".venv-spark" / OFFERED
    return text(name, str(beside) if (beside / "pyspark").exists() else "")


def words(name: str, default: str = "") -> list[str]:
    """A comma-separated list; empty entries are dropped."""
    return [word.strip() for word in text(name, default).split(",") if word.strip()]


def table(name: str) -> dict[str, Any]:
    """A JSON object; unset: an empty one."""
    value = text(name, "{}")
    try:
        result = json.loads(value)
    except ValueError as error:
        raise ImproperlyConfigured(f"{name} is no JSON: {error}.") from error
    if not isinstance(result, dict):
        raise ImproperlyConfigured(f'{name}={value!r} is no JSON object: write {{"name": value}}.')
    return result


def secret(name: str, file: Path) -> str:
    """The variable, else what the file holds. There is no default: a known secret is none."""
    value = text(name)
    if not value and file.is_file():
        value = file.read_text().strip()
    if len(value) < 32:
        raise ImproperlyConfigured(
            f"{name} is missing or shorter than 32 characters, and {file.name} is not in the portal's home: "
            f"start the portal once with `make up`, which makes one, or set {name}."
        )
    return value


def workbench(name: str, portal_url: str) -> origins.Origins:
    """Where sessions of the workbench are shown; unset: beside the portal, on the next port."""
    value = text(name, origins.default(portal_url))
    try:
        return origins.origins(value, portal_url)
    except ValueError as error:
        raise ImproperlyConfigured(f"{name}={value!r} cannot be used: {error}.") from error


def fingerprint(secret: str, purpose: str) -> str:
    """A name that everybody may see, the same for ever and for every process that has this secret."""
    return hmac.new(secret.encode(), f"yardmaster {purpose}".encode(), hashlib.sha256).hexdigest()[:16]


def socket_folder(home: Path) -> Path:
    """Where unix sockets go: the home's `run` folder, or a short private stand-in where its path is too long."""
    folder = home / "run"
    if len(str(folder / "valkey.sock").encode()) <= _UNIX_SOCKET_LIMIT:
        return folder
    digest = hashlib.sha256(str(home).encode()).hexdigest()[:12]
    return Path(tempfile.gettempdir()) / f"yardmaster-{os.getuid()}-{digest}"


@dataclass(frozen=True)
class MailServer:
    """Where mail goes. `is_real` False: it is only printed."""

    backend: str = "django.core.mail.backends.console.EmailBackend"
    is_real: bool = False
    host: str = ""
    port: int = 25
    user: str = ""
    password: str = ""
    use_starttls: bool = False
    use_tls: bool = False


def mail_server(name: str) -> MailServer:
    """From a URL: `smtp://user:password@host:587` (STARTTLS; `?starttls=no`: in the clear) or `smtps://…:465` (TLS from
    the start); unset or `console:`: mail is printed."""
    value = text(name, "console:")
    url = urlsplit(value)
    if url.scheme == "console":
        return MailServer()
    # The value is not repeated: it may hold a password.
    if url.scheme not in {"smtp", "smtps"} or not url.hostname:
        raise ImproperlyConfigured(f"{name} must be smtp://host:port, smtps://host:port or console:.")
    options = dict(parse_qsl(url.query))
    starttls = options.pop("starttls", "yes")
    try:
        port = url.port
    except ValueError as error:
        raise ImproperlyConfigured(f"{name} has a port that is no port.") from error
    if options or starttls not in {"yes", "no"}:
        raise ImproperlyConfigured(f"{name} knows one option: starttls=yes or starttls=no.")
    is_tls = url.scheme == "smtps"
    return MailServer(
        backend="django.core.mail.backends.smtp.EmailBackend",
        is_real=True,
        host=url.hostname,
        port=port or (465 if is_tls else 587),
        user=unquote(url.username or ""),
        password=unquote(url.password or ""),
        use_starttls=not is_tls and starttls == "yes",
        use_tls=is_tls,
    )


def database(name: str, default_file: Path) -> dict[str, Any]:
    """A Django database from a URL: `postgres://user:password@host:port/name?option=value`, or `sqlite:///file`."""
    url = urlsplit(text(name, f"sqlite:///{default_file}"))
    if url.scheme == "sqlite":
        return sqlite(unquote(url.path.removeprefix("/") if url.path.startswith("//") else url.path))
    if url.scheme in {"postgres", "postgresql"}:
        options = dict(parse_qsl(url.query))
        return {
            "ENGINE": "django.db.backends.postgresql",
            "NAME": unquote(url.path.lstrip("/")),
            "USER": unquote(url.username or ""),
            "PASSWORD": unquote(url.password or ""),
            "HOST": options.pop("host", None) or unquote(url.hostname or ""),
            "PORT": str(url.port or ""),
            "CONN_MAX_AGE": 60,
            "CONN_HEALTH_CHECKS": True,
            "OPTIONS": options,
        }
    raise ImproperlyConfigured(f"{name} begins with {url.scheme!r}: it must be a postgres:// or sqlite:// URL.")


def sqlite(file: str) -> dict[str, Any]:
    """A Django database in this file."""
    return {
        "ENGINE": "django.db.backends.sqlite3",
        "NAME": file,
        "CONN_MAX_AGE": 60,  # opening and closing the file cost a quarter of a short request
        "OPTIONS": {
            # Several processes write: take the write lock at BEGIN, so that none fails when it upgrades a read lock.
            "transaction_mode": "IMMEDIATE",
            "timeout": 20,
            "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL; PRAGMA foreign_keys=ON;",
        },
    }
