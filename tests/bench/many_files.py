"""A version of a million files: a page of its list on a real PostgreSQL against one of a thousand, a page of a folder,
what differs between two of them, a zip of it, and the memory that staging a long list takes in a task."""

from __future__ import annotations

import os
import tempfile
import time
import tracemalloc
import uuid
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from tests.bench.job_list import cluster
from tests.bench.lines import Line, interleaved, median
from tests.real.postgres import programs
from yardmaster_runner.order import Bundle, FilesPage, RemoteFile
from yardmaster_runner.stage import Stager

FEW, MANY = 1_000, 1_000_000
ROUNDS = 40
PAGES, PAGE = 20, 100
FOLDER = 10_000
"""Files of a folder, where there are as many."""
STAGED_FEW, STAGED_MANY, STAGED_AT_ONCE = 5_000, 30_000, 1_000


def measure() -> Iterable[Line]:
    yield from _staging()
    if (bin_folder := programs()) is None:
        return
    with cluster(bin_folder) as database:
        os.environ["DJANGO_SETTINGS_MODULE"] = "portal.settings"
        os.environ["YARDMASTER_DATABASE_URL"] = database.url("bench")
        os.environ["YARDMASTER_SECRET_KEY"] = "only-for-measurements-" + "x" * 40
        os.environ["YARDMASTER_LOG_LEVEL"] = "WARNING"
        import django

        django.setup()
        yield from _listing()


def _listing() -> Iterator[Line]:
    from django.core.management import call_command
    from django.db import connection
    from django.test import override_settings
    from rest_framework.test import APIClient

    from apps.accounts.services import user_create
    from tests.integration.many_files import version_of

    call_command("migrate", verbosity=0, interactive=False)
    user = user_create(username="ada", password="correct horse battery")
    client = APIClient()
    client.force_login(user)
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        server = int(cursor.fetchone()[0])
    with override_settings(ALLOWED_HOSTS=["testserver"]):
        versions = {count: version_of(user, count) for count in (FEW, MANY)}
        for name, addresses, rounds in (("a page", _pages, ROUNDS), ("a page of a folder", _folders, ROUNDS // 2)):
            yield from _beside(name, client, *map(addresses, versions.values()), server, rounds)
        address = f"/api/v1/dataset-versions/{versions[MANY].pk}/entries/?folder=train"
        yield Line(f"100 folders of {FOLDER:,} files each, statements", _statements(client, [address]), "", at_most=8)
        spent = median(_timed(client, [address], server)[0] for _ in range(ROUNDS))
        yield Line("... processor time", spent * 1e3, "ms")
    other = version_of(user, MANY - FEW, changed=MANY // 2)
    yield from _comparing(versions[MANY].upload_id, other.upload_id)
    yield from _zipping(versions[MANY].upload_id)


def _beside(name: str, client: Any, few: list[str], many: list[str], server: int, rounds: int) -> Iterator[Line]:
    """Pages of the small version beside the same pages of the large one."""
    yield Line(f"{name} of {MANY:,} files, statements", _statements(client, many), "", at_most=8)
    found = interleaved(lambda: _timed(client, few, server), lambda: _timed(client, many, server), rounds)
    (spent, passed), (spent_by_many, passed_by_many) = (map(median, zip(*one, strict=True)) for one in found)
    yield Line(f"{name} of {FEW:,} files", spent * 1e3, "ms", note="of processors, the database's too")
    note = f"{passed_by_many / passed:.2f} by the clock"
    yield Line(f"... of {MANY:,} files, ratio", spent_by_many / spent, "", at_most=1.3, note=note)


def _statements(client: Any, pages: list[str]) -> int:
    """The most that one of them costs."""
    from django.db import connection
    from django.test.utils import CaptureQueriesContext

    most = 0
    for page in pages:
        with CaptureQueriesContext(connection) as asked:
            client.get(page)
        most = max(most, len(asked))
    return most


def _comparing(before: uuid.UUID, after: uuid.UUID) -> Iterator[Line]:
    """Once with blocks that are the same on both sides, once with none: a file that was added shifts all of them."""
    from apps.uploads import file_blocks
    from apps.uploads.versioned.comparing import lists_compare
    from yardmaster.storage.file_list import ListedFile

    start = time.perf_counter()
    lists_compare(before, after, most=0)
    yield Line(f"comparing two lists of {MANY:,} files", time.perf_counter() - start, "s")
    file_blocks.manifest_replace(after, [ListedFile("a", 1), *file_blocks.manifest_of(before)])
    tracemalloc.start()
    lists_compare(before, after, most=0)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    start = time.perf_counter()
    lists_compare(before, after, most=0)
    yield Line("... where no block is the same", time.perf_counter() - start, "s", at_most=10)
    yield Line("... peak memory", peak / (1 << 20), "MiB", at_most=16)


def _zipping(upload_id: uuid.UUID) -> Iterator[Line]:
    """A zip of empty files: what the directory costs."""
    from apps.uploads.files_aside import files_aside
    from apps.uploads.zip_stream import zip_chunks

    start = time.perf_counter()
    size = sum(len(piece) for piece in zip_chunks(files_aside(upload_id, "datasets/0"), lambda file: iter(())))
    yield Line(f"a zip of {MANY:,} empty files", time.perf_counter() - start, "s", note=f"{size >> 20} MiB")


def _pages(version: Any) -> list[str]:
    """Addresses of full pages throughout the list; of many files one in ten reaches into the next block, as of all."""
    from apps.uploads.file_blocks import BLOCK
    from apps.uploads.versioned.paging import _cursor
    from tests.integration.many_files import path_of

    within = (BLOCK - PAGE - 1) // PAGES if version.file_count == BLOCK else BLOCK // PAGES
    step = version.file_count // BLOCK // PAGES * BLOCK + within
    address = f"/api/v1/dataset-versions/{version.pk}/files/"
    return [f"{address}?cursor={_cursor('n', path_of(at * step + 7))}" for at in range(PAGES)]


def _folders(version: Any) -> list[str]:
    """Addresses of the first pages of folders that hold files alone, throughout the list."""
    count = -(-version.file_count // FOLDER)
    address = f"/api/v1/dataset-versions/{version.pk}/entries/"
    return [f"{address}?folder=train/{at * count // PAGES:03}" for at in range(PAGES)]


def _timed(client: Any, pages: list[str], server: int) -> tuple[float, float]:
    """Seconds per page: of processors, with those of the database's process, and on the clock."""
    start, spent = time.perf_counter(), time.process_time() + _spent_by(server)
    for page in pages:
        answer = client.get(page)
        assert (answer.status_code, len(answer.json()["results"])) == (200, PAGE)
    spent = time.process_time() + _spent_by(server) - spent
    return spent / len(pages), (time.perf_counter() - start) / len(pages)


def _spent_by(process: int) -> float:
    """Seconds of processors so far."""
    return int(Path(f"/proc/{process}/schedstat").read_text().split()[0]) / 1e9


def _staging() -> Iterator[Line]:
    few, many = _staged(STAGED_FEW), _staged(STAGED_MANY)
    name = f"staging {STAGED_MANY:,} files, peak memory of that for {STAGED_FEW:,}"
    yield Line(name, many / few, "", at_most=1.3, note=f"{many / (1 << 20):.1f} MiB")


class _Local(Stager):
    """Fetches nothing: a file is one byte."""

    def _fetch(self, version: Any, bundle: Bundle, file: RemoteFile) -> None:
        place = version.path_of(file)  # no `Path`: it interns what it is made of, which would be measured
        os.makedirs(os.path.dirname(place), exist_ok=True)
        with open(place, "wb") as stream:
            stream.write(b"x")


def _staged(count: int) -> int:
    """The most memory at once."""

    def more(version: str, after: str) -> FilesPage:
        first = int(after or "0")
        last = min(count, first + STAGED_AT_ONCE)
        files = [RemoteFile(f"{at // 1000}/{at}", 1, "a" * 64, f"http://store/{at}?{'s' * 300}") for at in
                 range(first, last)]  # fmt: skip
        return FilesPage(tuple(files), str(last) if last < count else "")

    with tempfile.TemporaryDirectory(prefix="yardmaster-bench-") as home:
        first = more("v", "")
        stager = _Local(None, home, None, more)  # type: ignore[arg-type]
        tracemalloc.start()
        stager.place(Bundle("v", "", first.files, next=first.next), f"{home}/data", is_copied=False)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    return peak
