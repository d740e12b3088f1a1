"""The bounded store between a script that prints and a portal that may be away: lines in at one end, batches out at the
other, in order, numbered from 0.

One thread appends, one ships. Appending never fails and never waits for the portal: where the disk is full, lines are
held in memory up to a bound; past any bound the OLDEST unshipped segment becomes a gap with its exact number of lines
and bytes, since the newest lines are the ones that tell why a script failed. What is on disk outlives the process.

Not here: the portal's line numbers and when to send (`shipper`).
"""

from __future__ import annotations

import random
import threading
from typing import List, Optional, Tuple, Union

from yardmaster_runner.segments import Batch, FileSegment, Gap, Segment
from yardmaster_runner.spool_folder import SpoolFolder, State

SEGMENT_BYTES = 4 << 20
MEMORY_SEGMENT_BYTES = 256 << 10
MEMORY_BYTES = 4 << 20
LOCK_WAIT = 30.0


class Spool:
    """See the module. `recovered_end`: lines before it are a predecessor's and may already be at the portal."""

    def __init__(self, directory: str, limit_bytes: int, lock_wait: float = LOCK_WAIT) -> None:
        self.arrived = threading.Event()
        self._folder = SpoolFolder(directory, lock_wait)
        self._limit = limit_bytes
        self._segment_bytes = max(64 << 10, min(SEGMENT_BYTES, limit_bytes // 16))
        self._lock = threading.Lock()
        self._pieces: List[Union[Segment, Gap]] = []
        self._line = 0
        self._offset = 0
        self._tried: Tuple[int, int] = (0, 0)
        self.base: Optional[int] = None
        """The portal's number of our line 0, once known. The shipper's; kept here as it must outlive the process."""
        self.writer = 0
        """Who the portal knows our lines from, 1 to 2**32 - 1, or 0 as long as there is no base. One base, one writer,
        over any number of processes: so where a writer's lines end there tells where ours do here."""
        self._recover()
        self.end = self.recovered_end = self._pieces[-1].end if self._pieces else 0

    # The appending side.

    def append(self, data: bytes, ms: int) -> None:
        """Add whole lines read at `ms` (unix milliseconds). Never raises for the disk's sake."""
        lines = data.count(b"\n")
        if not lines:
            return
        with self._lock:
            try:
                self._writable().append(data, lines, ms)
            except OSError as error:
                self._folder.say(error)
                self._hold(data, lines, ms)
            self.end += lines
            self._keep_bounds()
        self.arrived.set()

    @property
    def has_space(self) -> bool:
        """Whether there is still a good distance to the bounds: time to slow the script down, where waiting helps."""
        with self._lock:
            segments = [piece for piece in self._pieces if isinstance(piece, Segment)]
            on_disk = sum(one.cost for one in segments if one.is_file)
            held = sum(one.cost for one in segments if not one.is_file)
            return on_disk < self._limit * 3 // 4 and held < min(MEMORY_BYTES, self._limit) // 2

    def _writable(self) -> Segment:
        last = self._pieces[-1] if self._pieces else None
        if isinstance(last, Segment):
            full = self._segment_bytes if last.is_file else MEMORY_SEGMENT_BYTES
            if last.size < full and self.end > self.recovered_end:
                return last
            last.close()
        new = self._folder.new_segment(self.end)
        self._pieces.append(new)
        return new

    def _hold(self, data: bytes, lines: int, ms: int) -> None:
        """No file takes them. An empty file segment is of no use; a memory segment that is not full is filled first."""
        last = self._pieces[-1] if self._pieces else None
        if isinstance(last, FileSegment):
            last.close()
            if not last.lines:
                self._pieces.pop().discard()  # type: ignore[union-attr]
                last = None
        if not isinstance(last, Segment) or last.is_file or last.size >= MEMORY_SEGMENT_BYTES:
            last = Segment(self.end)
            self._pieces.append(last)
        last.append(data, lines, ms)

    def _keep_bounds(self) -> None:
        segments = [piece for piece in self._pieces[:-1] if isinstance(piece, Segment)]
        newest = self._pieces[-1]
        assert isinstance(newest, Segment)
        on_disk = sum(one.cost for one in [*segments, newest] if one.is_file)
        held = sum(one.cost for one in [*segments, newest] if not one.is_file)
        for one in segments:
            if one.is_file and on_disk > self._limit:
                on_disk -= one.cost
                self._drop(one)
            elif not one.is_file and held > min(MEMORY_BYTES, self._limit):
                held -= one.cost
                self._drop(one)

    def _drop(self, segment: Segment) -> None:
        """Put a gap in its place: one for what may have reached the portal without our knowing, one for the rest, so
        that the counts stay exact whichever it was."""
        at = self._pieces.index(segment)
        line = max(segment.first, self._pieces[at - 1].end if at else self._line)
        offset = segment.offset_of(line)
        cuts = [(line, offset), (segment.end, segment.size)]
        if line < self._tried[0] < segment.end:
            cuts.insert(1, self._tried)
        gaps = [Gap(a[0], b[0] - a[0], b[1] - a[1]) for a, b in zip(cuts, cuts[1:]) if b[0] > a[0]]
        before = self._pieces[at - 1] if at else None
        if isinstance(before, Gap) and gaps and gaps[0].first != self._tried[0]:
            gaps[0] = Gap(before.first, before.lines + gaps[0].lines, before.size + gaps[0].size)
            at -= 1
            self._pieces.pop(at)
        self._pieces[at : at + 1] = gaps
        self._offset = 0 if at == 0 else self._offset
        self._discard(segment)
        self._write_state()

    # The shipping side.

    @property
    def line(self) -> int:
        """The first line that is not known to be shipped."""
        return self._line

    @property
    def waiting_bytes(self) -> int:
        """About how much there is to ship."""
        with self._lock:
            return sum(piece.size for piece in self._pieces if isinstance(piece, Segment)) - self._offset

    @property
    def waiting_lines(self) -> int:
        return self.end - self._line

    def next_piece(self, most_bytes: int) -> Union[Batch, Gap, None]:
        """What to send next; the same again until `shipped_to` is called. None: everything is shipped."""
        with self._lock:
            self._pop_done()
            if self._line >= self.end:
                return None
            head = self._pieces[0]
            if isinstance(head, Gap):
                self._tried = (head.end, 0)
                return head
            batch = head.batch(self._line, self._offset, most_bytes)
            self._tried = (batch.end, batch.end_offset)
            return batch

    def shipped_to(self, line: int) -> None:
        """The portal has everything before `line`. Going back (the portal lost something) is allowed: what is no longer
        here becomes a gap of unknown size."""
        with self._lock:
            if line < self._line:
                self._go_back(line)
            self._line = min(line, self.end)
            if not self._pop_done():
                self._place(self._tried[1] if self._line == self._tried[0] else 0)

    def give_up(self, most_bytes: int) -> Gap:
        """Turn the next batch into a gap: the portal will not take it as it is."""
        with self._lock:
            head = self._pieces[0]
            if isinstance(head, Gap):
                return head
            batch = head.batch(self._line, self._offset, most_bytes)
            gap = Gap(batch.first, batch.lines, len(batch.data))
            self._pieces.insert(0, gap)
            return gap

    def leave_newest(self, keep_bytes: int) -> None:
        """Turn all that is unshipped, but for about the newest `keep_bytes`, into a gap: it is not wanted. To be called
        by the shipping side, when it knows what the portal has."""
        with self._lock:
            self._pop_done()
            self._tried = (0, 0)
            segments = [piece for piece in self._pieces if isinstance(piece, Segment)]
            left = sum(segment.size for segment in segments)
            for segment in segments[:-1]:
                left -= segment.size
                if left >= keep_bytes:
                    self._drop(segment)
            self._cut_first(keep_bytes)

    def _cut_first(self, keep_bytes: int) -> None:
        """Put a gap in place of what lies before the newest bytes of the only segment that is left."""
        segments = [piece for piece in self._pieces if isinstance(piece, Segment)]
        if len(segments) != 1:
            return
        (segment,) = segments
        at = self._pieces.index(segment)
        line = max(segment.first, self._pieces[at - 1].end if at else self._line)
        offset = segment.offset_of(line)
        dropped = segment.read(offset, max(0, segment.size - keep_bytes - offset))
        dropped = dropped[: dropped.rfind(b"\n") + 1]
        if dropped:
            self._pieces.insert(at, Gap(line, dropped.count(b"\n"), len(dropped)))
            self._join_gaps(at)

    def _join_gaps(self, at: int) -> None:
        """Make one of the gap at this place and the one before it."""
        before, gap = self._pieces[at - 1] if at else None, self._pieces[at]
        if isinstance(before, Gap):
            self._pieces[at - 1 : at + 1] = [Gap(before.first, before.lines + gap.lines, before.size + gap.size)]

    def _pop_done(self) -> bool:
        """Remove the pieces that are shipped; whether there were any. The newest segment stays while it may still be
        appended to."""
        popped = False
        while self._pieces and self._pieces[0].end <= self._line:
            head = self._pieces[0]
            if len(self._pieces) == 1 and isinstance(head, Segment) and self.end > self.recovered_end:
                break
            self._pieces.pop(0)
            popped = True
            if isinstance(head, Segment):
                self._discard(head)
        if popped:
            self._place(0)
        return popped

    def _place(self, offset: int) -> None:
        """Set where `_line` is within the first piece; `offset`, where it is known already, saves looking for it."""
        head, line = self._pieces[0] if self._pieces else None, self._line
        self._offset = 0
        if isinstance(head, Segment):
            if line > head.first:
                self._offset = offset if offset > 0 else head.offset_of(line)
        elif head is not None and line > head.first:
            left = head.end - line
            self._pieces[0] = Gap(line, left, head.size * left // head.lines)

    def _go_back(self, line: int) -> None:
        head = self._pieces[0].first if self._pieces else self.end
        if line < head:
            self._pieces.insert(0, Gap(line, head - line, 0))
        self._line, self._tried = line, (0, 0)

    # Over the process's life.

    def number_from(self, portal_line: int) -> None:
        """Our first unshipped line is this one at the portal. Where that is news, we are another writer from here on,
        and a successor learns both at once."""
        base = portal_line - self._line
        if base != self.base:
            self.base, self.writer = base, random.SystemRandom().randrange(1, 1 << 32)
            self.save()

    def save(self) -> None:
        """Note how far shipping has come, for a successor. Losing it only makes lines be sent twice: harmless."""
        with self._lock:
            self._write_state()

    def close(self) -> None:
        """Leave what is unshipped on disk, lines held in memory too if there is space now; remove what is shipped."""
        with self._lock:
            for at, piece in enumerate(self._pieces):
                if isinstance(piece, Segment) and not piece.is_file:
                    self._pieces[at] = self._to_disk(piece)
            self._write_state()
            for piece in self._pieces:
                if isinstance(piece, FileSegment):
                    if piece.end <= self._line:
                        self._discard(piece)
                    else:
                        piece.leave()
            self._pieces = []
            self._folder.release()

    def _to_disk(self, held: Segment) -> Union[Segment, Gap]:
        try:
            segment = self._folder.new_segment(held.first)
        except OSError as error:
            self._folder.say(error)
            return Gap(held.first, held.lines, held.size)
        try:
            whole = held.batch(held.first, 0, held.size)
            segment.append(held.read(0, held.size), held.lines, whole.times[0][1])
        except OSError as error:
            self._folder.say(error)
            self._discard(segment)
            return Gap(held.first, held.lines, held.size)
        return segment

    def _recover(self) -> None:
        state = self._folder.read_state()
        self.base, self.writer, shipped = state.base, state.writer, state.shipped
        pieces: List[Union[Segment, Gap]] = [*self._folder.segments(), *state.gaps]
        pieces.sort(key=lambda one: one.first)
        if self.base is None and pieces:
            shipped = max(shipped, pieces[0].first)  # nothing was sent yet, or it is unknown what was
        self._line = line = shipped
        for piece in pieces:
            if piece.end <= line:
                if isinstance(piece, Segment):
                    self._discard(piece)
                continue
            if piece.first > line:
                self._pieces.append(Gap(line, piece.first - line, 0))
            self._pieces.append(piece)
            line = piece.end
        if not self._pieces:
            self._start_over()
            return
        self._place(0)

    def _start_over(self) -> None:
        """Everything was shipped: count from 0 again, going on where the portal's log ends. What the predecessor noted
        would be wrong of our lines."""
        self.base, self.writer, self._line = None, 0, 0
        self._folder.forget_state()

    def _write_state(self) -> None:
        gaps = tuple(one for one in self._pieces if isinstance(one, Gap))
        self._folder.write_state(State(self.base, self._line, gaps, self.writer))

    def _discard(self, segment: Segment) -> None:
        try:
            segment.discard()
        except OSError as error:
            self._folder.say(error)
