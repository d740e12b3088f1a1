"""A death at any byte of any write loses no acknowledged line, doubles none, and leaves the numbers right."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from tests.unit.logs.conftest import numbered, stream
from yardmaster.logs.keys import PastTheEnd
from yardmaster.logs.store import LogStore

TEXTS = st.lists(st.binary(max_size=30).map(lambda raw: raw.replace(b"\n", b" ")), min_size=1, max_size=12)


class StoreAgainstModel(RuleBasedStateMachine):
    """Whatever is sent, repeated, cut short or lost in a crash: the store is the list of lines that were acknowledged.

    The task's whole output is fixed (`numbered`), as a real task's is: who sends a line again sends the same one.
    """

    @initialize()
    def begin(self) -> None:
        self._folder = tempfile.TemporaryDirectory()
        self.root = Path(self._folder.name)
        self.store = LogStore(self.root)
        self.lines = 0
        self.gaps: set[int] = set()
        self.ended = False

    def teardown(self) -> None:
        self._folder.cleanup()

    @rule(back=st.integers(0, 40), count=st.integers(0, 60), time=st.integers(0, 10**6))
    def append(self, back: int, count: int, time: int) -> None:
        first = max(0, self.lines - back)
        written = self.store.append(stream(), first, numbered(first, count), [(0, time)])
        self.lines_become(max(self.lines, first + count), written.next_line)

    @rule(beyond=st.integers(1, 5))
    def append_past_the_end(self, beyond: int) -> None:
        with pytest.raises(PastTheEnd) as caught:
            self.store.append(stream(), self.lines + beyond, b"no\n")
        assert caught.value.next_line == self.lines

    @rule(back=st.integers(0, 10), count=st.integers(1, 20))
    def lose(self, back: int, count: int) -> None:
        first = max(0, self.lines - back)
        new = set(range(self.lines, first + count))
        self.gaps |= new
        self.lines_become(max(self.lines, first + count), self.store.mark_gap(stream(), first, count, 9, 0).next_line)

    @rule()
    def end(self) -> None:
        self.store.mark_end(stream(), self.lines)
        self.ended = True

    def lines_become(self, expected: int, answered: int) -> None:
        assert answered == expected
        self.ended = self.ended and expected == self.lines
        self.lines = expected

    @precondition(lambda self: self.lines > 0)
    @rule(count=st.integers(1, 300), data=st.data())
    def die_inside_a_write(self, count: int, data: st.DataObject) -> None:
        """Replay what the kernel may have seen of one append: some bytes of data, or all and some of the index."""
        folder = self.store.folder(stream())
        before = {name: (folder / name).read_bytes() for name in ("lines", "index")}
        self.store.append(stream(), self.lines, numbered(self.lines, count), [(0, 0), (max(1, count // 2), 99)])
        after = {name: (folder / name).read_bytes() for name in before}
        cut = data.draw(st.integers(0, len(after["lines"]) + len(after["index"])), label="bytes written")
        written_data = after["lines"][: max(len(before["lines"]), cut)]
        (folder / "lines").write_bytes(written_data)
        index_bytes = max(len(before["index"]), cut - len(after["lines"]))
        (folder / "index").write_bytes(after["index"][: max(len(before["index"]), index_bytes)])
        self.store = LogStore(self.root)
        # Nobody was told about the write, so any part of it may be there, but only whole lines.
        found = self.store.next_line(stream())
        assert self.lines <= found <= self.lines + count
        self.ended = self.ended and found == self.lines
        self.lines = found

    @rule(garbage=st.binary(min_size=1, max_size=200))
    def find_garbage_after_the_end(self, garbage: bytes) -> None:
        folder = self.store.folder(stream())
        if folder.exists():
            with (folder / "index").open("ab") as file:
                file.write(garbage)
            with (folder / "lines").open("ab") as file:
                file.write(garbage)
            self.store = LogStore(self.root)
            self.store.append(stream(), self.lines, b"")  # recovery happens with the next write

    @invariant()
    def is_the_model(self) -> None:
        assert self.store.next_line(stream()) == self.lines
        assert self.store.head(stream()).ended == self.ended
        page = self.store.read(stream(), 0, 10**6, max_bytes=1 << 40)
        expected = [number for number in range(self.lines) if number not in self.gaps]
        assert [line.number for line in page.lines] == expected
        assert [line.text for line in page.lines] == [b"line %d" % number for number in expected]
        gaps = [gap for info in self.store.streams(stream().job_id) for gap in info.gaps]
        assert sum(gap.lines for gap in gaps) == len(self.gaps)

    @rule(first=st.integers(0, 400), limit=st.integers(1, 50))
    def read_anywhere(self, first: int, limit: int) -> None:
        lines = self.store.read(stream(), first, limit).lines
        expected = [number for number in range(first, self.lines) if number not in self.gaps][:limit]
        assert [line.number for line in lines] == expected


StoreAgainstModel.TestCase.settings = settings(max_examples=60, stateful_step_count=25, deadline=None)
test_the_store_is_the_list_of_acknowledged_lines = StoreAgainstModel.TestCase


@settings(max_examples=30, deadline=None)
@given(st.lists(TEXTS, min_size=1, max_size=6), st.data())
def test_data_lost_in_a_power_cut_is_dropped_with_its_numbers(chunks: list[list[bytes]], data: st.DataObject) -> None:
    """The kernel wrote the index but not all of the data back: zeros in its place, or a shorter file."""
    with tempfile.TemporaryDirectory() as folder:
        store = LogStore(Path(folder))
        sent: list[bytes] = []
        for chunk in chunks:
            store.append(stream(), len(sent), b"".join(text + b"\n" for text in chunk))
            sent += chunk
        file = store.folder(stream()) / "lines"
        raw = file.read_bytes()
        kept = data.draw(st.integers(0, len(raw) - 1))
        padding = bytes(len(raw) - kept) if data.draw(st.booleans()) else b""
        file.write_bytes(raw[:kept] + padding)
        store = LogStore(Path(folder))
        store.append(stream(), 0, b"")
        lines = [line.text for line in store.read(stream(), 0, 10_000).lines]
        assert lines == sent[: len(lines)]
        assert len(b"".join(text + b"\n" for text in lines)) <= kept
        store.append(stream(), len(lines), b"".join(text + b"\n" for text in sent[len(lines) :]))
        assert [line.text for line in store.read(stream(), 0, 10_000).lines] == sent


WRITER = """
import sys, uuid
from pathlib import Path
from tests.unit.logs.conftest import numbered, stream
from yardmaster.logs.store import LogStore
store = LogStore(Path(sys.argv[1]))
at = store.next_line(stream())
while True:
    at = store.append(stream(), at, numbered(at, 500), [(0, at)]).next_line
    sys.stdout.write(f"{at}\\n")
    sys.stdout.flush()
"""


def test_kill_9_of_the_writer_loses_and_doubles_nothing(tmp_path: Path) -> None:
    acknowledged = 0
    for _ in range(5):
        writer = subprocess.Popen(
            [sys.executable, "-c", WRITER, str(tmp_path)],
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(("platform", "."))},
        )
        assert writer.stdout
        with writer, writer.stdout:
            for _, line in zip(range(40), writer.stdout, strict=False):
                acknowledged = int(line)
            writer.send_signal(signal.SIGKILL)
            for line in writer.stdout:
                if line.endswith("\n"):
                    acknowledged = int(line)
        store = LogStore(tmp_path)
        found = store.next_line(stream())
        assert acknowledged <= found <= acknowledged + 500
        assert b"".join(store.raw(stream())) == numbered(0, found)
