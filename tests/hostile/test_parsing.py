"""What a tenant uploads or types is hard to parse on purpose. The web process goes on answering everybody else."""

from __future__ import annotations

import random
import re
import struct
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx2
import pytest

from tests.hostile.conftest import in_browser
from tests.real.scene import Scene
from yardmaster.formats.tfrecord import masked_crc

pytestmark = [pytest.mark.slow, pytest.mark.linux, pytest.mark.timeout(300)]

FROZEN = "/" + "\\a" * 34 + "\x01"
"""As source of the language Fancy: a regular expression of Pygments takes 2^34 steps over these 70 bytes."""
NUMBER = "name: 1" + ":1" * 100_000
"""In YAML an integer to base 60: ten seconds of Python for 200 KB."""


MIB = 1 << 20


def length_of(size: int) -> bytes:
    """A number of a protocol buffer."""
    found = bytearray()
    while size > 127:
        found.append(size & 127 | 128)
        size >>= 7
    return bytes(found) + bytes([size])


def endless_name(size: int) -> bytes:
    """A tf.train.Example with one feature whose name takes so many bytes, and four in HTML."""
    data = b"<" * size
    for tag in (b"\x0a", b"\x0a", b"\x0a"):  # the name of an entry of the features of an Example
        data = tag + length_of(len(data)) + data
    return data


def tfrecord(*records: bytes) -> bytes:
    """The checksums of the data are zero: no preview looks at them."""
    parts = []
    for record in records:
        length = struct.pack("<Q", len(record))
        parts += [length, struct.pack("<I", masked_crc(length)), record, bytes(4)]
    return b"".join(parts)


@pytest.fixture
def page(attacked: Scene, tenant: Callable[[str], httpx2.Client]):
    tenant("mallory")
    with in_browser(attacked.portal.url, "mallory") as client:
        yield client


def code_of(attacked: Scene, files: dict[str, str], name: str) -> str:
    """The page of this code, which belongs to mallory."""
    mine = Scene(attacked.portal, attacked.portal.token_of("mallory"))
    with mine.client:
        mine.put_code(files, name)
        return next(one.id for one in mine.client.code.list() if one.name == name)


def alive_while(attacked: Scene, request: Callable[[], httpx2.Response]) -> httpx2.Response:
    """The answer to the request; meanwhile a stranger asks whether the portal is there, and always gets an answer."""
    with ThreadPoolExecutor(1) as pool:
        pending = pool.submit(request)
        while not pending.done():
            assert httpx2.get(f"{attacked.portal.url}/healthz", timeout=20).status_code == 200
            time.sleep(0.2)
        return pending.result()


def test_a_file_whose_grammar_takes_for_ever_freezes_nothing(attacked: Scene, page: httpx2.Client):
    code = code_of(attacked, {"a.fy": FROZEN, "a.py": "import this\n"}, "frozen")
    answer = alive_while(attacked, lambda: page.get(f"/code/{code}/", params={"path": "a.fy"}))
    assert answer.status_code == 200
    assert "\\a\\a\\a" in answer.text
    assert '<span class="k">import</span>' in page.get(f"/code/{code}/", params={"path": "a.py"}).text


def test_a_job_file_that_is_hard_to_read_is_refused_in_time(attacked: Scene, page: httpx2.Client):
    answer = alive_while(attacked, lambda: page.post("/jobs/launch/", data={"take": "yaml", "yaml": NUMBER}))
    assert answer.status_code == 200
    assert "takes too long" in answer.text


def test_values_that_no_job_has_are_refused_and_no_bug(page: httpx2.Client):
    for value in ("1:1" + ":59" * 600 + ".5", "!!binary AAAA", "!!set {a}", "!!timestamp 2001-01-01"):
        answer = page.post("/jobs/launch/", data={"take": "yaml", "yaml": f"name: {value}\n"})
        assert answer.status_code == 200, value


@pytest.mark.parametrize("size", [7 * MIB, 60 * MIB])
def test_records_with_names_of_many_megabytes_cost_little_memory_and_a_short_answer(
    attacked: Scene, page: httpx2.Client, tmp_path: Path, size: int
):
    file = tmp_path / "names.tfrecord"
    file.write_bytes(tfrecord(*[endless_name(size)] * (5 if size < 8 * MIB else 2)))
    mine = Scene(attacked.portal, attacked.portal.token_of("mallory"))
    with mine.client:
        version = mine.client.datasets.put(f"names-{size}", [file]).latest
    assert version is not None
    web = Path(f"/proc/{attacked.portal.running['web'].pid}")
    (web / "clear_refs").write_text("5")  # the peak is the present from here on
    before = peak_of(web)
    for path in (f"/api/v1/dataset-versions/{version.id}/preview/", f"/datasets/{version.dataset}/"):
        answer = alive_while(attacked, lambda path=path: page.get(path, params={"path": file.name}))
        assert answer.status_code == 200
        assert file.name in answer.text
        assert len(answer.content) < MIB
    assert peak_of(web) - before < 100 * MIB


def peak_of(process: Path) -> int:
    """The most memory that this process has used."""
    (kib,) = re.findall(r"VmHWM:\s+(\d+) kB", (process / "status").read_text())
    return int(kib) << 10


def test_versions_that_are_hard_to_compare_cost_a_bounded_time(attacked: Scene, page: httpx2.Client):
    lines = [f"{number % 101}\n" for number in range(4_000)]
    shuffled = random.Random(1).sample(lines, len(lines))
    files = [{f"{name}.txt": "".join(one) for name in range(20)} for one in (lines, shuffled)]
    for one in files:
        code = code_of(attacked, one, "compared")
    answer = alive_while(attacked, lambda: page.get(f"/code/{code}/compare/"))
    assert answer.status_code == 200
