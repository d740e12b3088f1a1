"""A real PostgreSQL for tests: a throw-away cluster on a unix socket, and a fresh migrated database per test.

Import the fixtures into a conftest and mark the tests `postgres`. The portal's `default` database is the real one while
`postgres_db` is in use, in every thread; tests with it need no `db` fixture.
"""

from __future__ import annotations

import hashlib
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from django.db import connections

from tests.real.kept import kept
from tests.real.migrated import environment_of_migrations, migrate, migrations_digest

TEMPLATE = "migrated"
DATABASE = "YARDMASTER_DATABASE_URL"


def programs() -> Path | None:
    """The folder with `initdb` and `postgres`, or None."""
    if found := shutil.which("initdb"):
        return Path(os.path.realpath(found)).parent
    newest = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda one: int(one.parent.parent.name))
    return newest[-1].parent if newest else None


class Cluster:
    """A running server that keeps nothing and trusts all that reach its socket."""

    def __init__(self, folder: Path, bin_folder: Path) -> None:
        self.folder = folder
        self._bin = bin_folder
        self._server: subprocess.Popen[bytes] | None = None
        self.user = "yardmaster"

    def start(self) -> None:
        """Start it, or start it again with what it holds."""
        data = self.folder / "data"
        if not data.exists():
            words = ("-U", self.user, "-A", "trust", "--no-sync", "-E", "UTF8", "--locale=C")
            self._run("initdb", "-D", str(data), *words)
        options = {
            "listen_addresses": "",
            "unix_socket_directories": str(self.folder),
            "fsync": "off",
            "synchronous_commit": "off",
            "full_page_writes": "off",
            "max_connections": "100",
            "shared_buffers": "128MB",
        }
        words = [word for name, value in options.items() for word in ("-c", f"{name}={value}")]
        with (self.folder / "server.log").open("wb") as log:
            self._server = subprocess.Popen(
                [self._bin / "postgres", "-D", str(data), *words], stdout=log, stderr=log, **_unprivileged()
            )
        deadline = time.monotonic() + 30
        while self._run("pg_isready", "-q", "-h", str(self.folder), check=False):
            if self._server.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError((self.folder / "server.log").read_text())
            time.sleep(0.05)

    def stop(self) -> None:
        if self._server is not None:
            self._server.send_signal(signal.SIGINT)  # a fast shutdown: SIGTERM would wait for clients
            self._server.wait(20)
            self._server = None

    def url(self, database: str) -> str:
        return f"postgres://{self.user}@/{database}?host={self.folder}"

    def settings(self, database: str) -> dict[str, Any]:
        """As the portal's settings would have it."""
        from portal import env

        os.environ["YARDMASTER_TEST_DATABASE"] = self.url(database)
        try:
            return env.database("YARDMASTER_TEST_DATABASE", Path("unused"))
        finally:
            del os.environ["YARDMASTER_TEST_DATABASE"]

    def create(self, database: str, template: str = "template0") -> None:
        self._run("createdb", "-h", str(self.folder), "-U", self.user, "-T", template, database)

    def create_migrated(self, database: str) -> None:
        """Create it with the portal's tables, out of a dump that is kept: to migrate takes seconds."""

        def fill() -> None:
            with tempfile.TemporaryDirectory(prefix="yardmaster-migrated-") as home:
                migrate(environment_of_migrations(Path(home)) | {DATABASE: self.url(database)})

        self.create_kept(database, "migrated", fill)

    def create_kept(self, database: str, name: str, fill: Callable[[], object], template: str = "template0") -> None:
        """Create it with what `fill` makes of a copy of `template`, out of a dump that is kept for these migrations."""

        def fill_and_dump(file: Path) -> None:
            self.create(database, template)
            fill()
            self._dump(database, file)
            self.drop(database)

        version = subprocess.check_output([self._bin / "postgres", "--version"])
        digest = hashlib.sha256(version + migrations_digest().encode()).hexdigest()[:16]
        file = kept(f"{name}.sql", digest, fill_and_dump)
        self.create(database)
        self._load(database, file)

    def drop(self, database: str) -> None:
        self._run("dropdb", "-h", str(self.folder), "-U", self.user, "--force", "--if-exists", database)

    def _dump(self, database: str, file: Path) -> None:
        words = [self._bin / "pg_dump", *self._at(database), "--no-owner"]
        with file.open("wb") as out:
            subprocess.run(words, stdout=out, check=True, **_unprivileged())

    def _load(self, database: str, file: Path) -> None:
        words = [self._bin / "psql", *self._at(database), "-qX1", "-v", "ON_ERROR_STOP=1"]
        with file.open("rb") as source:
            subprocess.run(words, stdin=source, stdout=subprocess.DEVNULL, check=True, **_unprivileged())

    def _at(self, database: str) -> tuple[str, ...]:
        return ("-h", str(self.folder), "-U", self.user, "-d", database)

    def _run(self, program: str, *arguments: str, check: bool = True) -> int:
        done = subprocess.run([self._bin / program, *arguments], capture_output=True, check=False, **_unprivileged())
        if check and done.returncode:
            raise RuntimeError(done.stderr.decode(errors="replace"))
        return done.returncode


@contextmanager
def running_cluster() -> Iterator[Cluster]:
    """A server of its own, gone at the end. Skips the test where this machine has no PostgreSQL."""
    bin_folder = programs()
    if bin_folder is None:
        pytest.skip("no PostgreSQL programs on this machine")
    folder = Path(tempfile.mkdtemp(prefix="ym-pg-"))
    if not os.getuid():
        os.chown(folder, _stand_in().pw_uid, _stand_in().pw_gid)
    cluster = Cluster(folder, bin_folder)
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.stop()
        shutil.rmtree(folder, ignore_errors=True)


def _unprivileged() -> dict[str, Any]:
    """PostgreSQL refuses to run as root."""
    if os.getuid():
        return {}
    person = _stand_in()
    return {"user": person.pw_uid, "group": person.pw_gid, "extra_groups": [], "cwd": "/"}


def _stand_in() -> pwd.struct_passwd:
    try:
        return pwd.getpwnam("postgres")
    except KeyError:
        return pwd.getpwnam("nobody")


@contextmanager
def default_database(config: dict[str, Any]) -> Iterator[None]:
    """Make this the portal's `default` database, in this thread at once and in threads that begin later."""
    before = connections.settings["default"]
    connection_before = connections["default"]
    connections.settings["default"] = connections.configure_settings({"default": dict(config)})["default"]
    del connections["default"]
    try:
        yield
    finally:
        connections["default"].close()
        connections.settings["default"] = before
        connections["default"] = connection_before


@pytest.fixture(scope="session")
def postgres_cluster() -> Iterator[Cluster]:
    """A server with one migrated database to copy from."""
    with running_cluster() as cluster:
        cluster.create_migrated(TEMPLATE)
        yield cluster


@pytest.fixture
def postgres_db(postgres_cluster, django_db_blocker) -> Iterator[Cluster]:
    """A fresh database of its own for the test."""
    name = f"test_{os.getpid()}_{time.monotonic_ns()}"
    postgres_cluster.create(name, template=TEMPLATE)
    try:
        with django_db_blocker.unblock(), default_database(postgres_cluster.settings(name)):
            yield postgres_cluster
    finally:
        postgres_cluster.drop(name)
