"""The folder of one run: which file is where, and how each is read and written so that no reader sees half of one.

    run.json                what was ordered; the run is there as long as this file is
    token                   the job's token (0600)
    wanted                  which roles are to end, and when; its space is taken beforehand
    lock                    held by the living supervisor
    others.json             of a run on several machines: what has come of its tasks elsewhere
    data                    of a run that may be on several machines: a link to the inputs of a task that is here
    wake                    a pipe on which the supervisor listens
    supervisor.log
    log/, cache/            shared by the tasks: what scripts log, inputs that were fetched
    tasks/<role>-<index>/   state.json, output (what the runner itself printed), work/ (the runner's and script's own),
                            nudge (its time is when the runner is to report)

Not here: any decision, any process.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
import stat
import struct
import threading
import time
from collections.abc import Iterator, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

from yardmaster.engines.supervision.facts import NO_FACTS, Facts, Order, Others, Task, Wishes, fresh, task_name, task_of
from yardmaster.engines.supervision.ledger import Ledger
from yardmaster.errors import Misconfigured, SpecUnreadable, Unavailable
from yardmaster.ids import JobKey
from yardmaster.job.spec import Role, TrainingSpec, time_to_end

DATA = "data"
_SLOT = 4096
_LARGEST = 16 << 20
"""Bytes of a file that is read whole."""
_NO_FILE = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.ENXIO)
_LOCK_PATIENCE = 1.0
_FLOCK = "hhqqi4x"
"""`struct flock` of Linux: l_type, l_whence, l_start, l_len, l_pid."""


class RunFolder:
    """One run's files under `path`, which need not exist."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.order_file = path / "run.json"
        self.token_file = path / "token"
        self.log_file = path / "supervisor.log"
        self._wanted = path / "wanted"
        self._others = path / "others.json"
        self._lock = path / "lock"
        self._wake = path / "wake"

    # --- the run as a whole ------------------------------------------------------------------------------------------

    def exists(self) -> bool:
        return self.order_file.exists()

    def make(self, order: Order, token: str, facts: Mapping[Task, Facts] | None = None) -> None:
        """Fill a new folder. Raises `OSError` where the disk does not take it; removing it is then the caller's.
        `facts`: what is known of tasks already, by which they are not new."""
        self.path.mkdir(mode=0o700)
        self._wanted.write_bytes(_padded(Wishes()))
        for file in (self._lock, self.log_file):
            file.touch(mode=0o600)
        os.mkfifo(self._wake, 0o600)
        self.token_file.touch(mode=0o600)
        self.token_file.write_text(token)
        for shared in ("log", "cache"):
            (self.path / shared).mkdir()
        for role, index in order.tasks():
            self.work(role, index).mkdir(parents=True)
            self.output(role, index).touch(mode=0o600)
            self.write_facts((facts or {}).get((role, index)) or fresh(role, index))
        if order.elsewhere is not None and order.tasks():
            (self.path / DATA).symlink_to(self.work(*order.tasks()[0]) / "data")
        write_json(self.order_file, order.to_json(), durable=True)

    def read_order(self) -> Order | None:
        """What was ordered; None where the run is not there (any more). Raises `SpecUnreadable`."""
        data = read_json(self.order_file)
        return None if data is None else Order.from_json(data)

    def read_others(self) -> Others:
        """What was told of the run's other machines last."""
        data = read_json(self._others)
        with contextlib.suppress(*NO_FACTS):
            if data is not None:
                return Others.from_json(data)
        return Others()

    def write_others(self, others: Others) -> None:
        """Raises `OSError` where the disk does not take it: what was told before then stands."""
        write_json(self._others, others.to_json())

    def time_to_end(self) -> timedelta:
        """Between SIGTERM and SIGKILL: what was ordered, or the usual one where that is unreadable: the run is to end
        all the same."""
        with contextlib.suppress(SpecUnreadable):
            if (order := self.read_order()) is not None:
                return order.spec.time_to_end
        return time_to_end(TrainingSpec.grace_period)

    def is_readable(self) -> bool:
        """Whether a supervisor could continue from the order."""
        try:
            return self.read_order() is not None
        except SpecUnreadable:
            return False

    def control_group(self) -> str:
        """The control group of the run's tasks, also of an order that is unreadable otherwise; empty: none."""
        found = (read_json(self.order_file) or {}).get("control_group", "")
        return found if isinstance(found, str) else ""

    # --- tasks -------------------------------------------------------------------------------------------------------

    def task(self, role: Role, index: int) -> Path:
        return self.path / "tasks" / task_name(role, index)

    def work(self, role: Role, index: int) -> Path:
        return self.task(role, index) / "work"

    def output(self, role: Role, index: int) -> Path:
        return self.task(role, index) / "output"

    def nudge_file(self, role: Role, index: int) -> Path:
        """The task's runner reports when this has changed."""
        return self.task(role, index) / "nudge"

    def nudge(self, role: Role, index: int) -> None:
        """Change it; a folder that is gone is let be. It is no way to files elsewhere: the task may write here."""
        flags = os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        with contextlib.suppress(FileNotFoundError):
            file = os.open(self.nudge_file(role, index), flags, 0o600)
            try:
                os.utime(file)
            finally:
                os.close(file)

    def tasks(self) -> list[tuple[Role, int]]:
        """Every task that has a folder, chief first, in order of index."""
        order, found = list(Role), []
        try:
            names = os.listdir(self.path / "tasks")
        except FileNotFoundError:
            return []
        for name in names:
            with contextlib.suppress(ValueError):  # a folder that a script made
                found.append(task_of(name))
        return sorted(found, key=lambda task: (order.index(task[0]), task[1]))

    def roles(self) -> frozenset[Role]:
        return frozenset(role for role, _ in self.tasks())

    def read_facts(self, role: Role, index: int) -> Facts:
        """What is known of a task; a file that is gone or damaged (the machine lost power, a script wrote to it) reads
        as never started."""
        data = read_json(self.task(role, index) / "state.json")
        try:
            return fresh(role, index) if data is None else Facts.from_json(role, index, data)
        except NO_FACTS:
            return fresh(role, index)

    def write_facts(self, facts: Facts) -> None:
        """Raises `OSError` where the disk does not take it; the former facts then stand."""
        state = facts.state
        path = self.task(state.role, state.index) / "state.json"
        # What has ended must not begin again after a power cut; of anything else nothing is left to be wrong about.
        write_json(path, facts.to_json(), durable=state.phase.is_ended)

    # --- wishes ------------------------------------------------------------------------------------------------------

    def read_wishes(self) -> Wishes:
        with self._open_wanted(fcntl.LOCK_SH) as descriptor:
            return Wishes.from_json(json.loads(os.pread(descriptor, _SLOT, 0)))

    def hasten(self, roles: frozenset[Role], moment: float) -> None:
        """Add to the wishes. Takes no new disk space: a job must be stoppable on a full disk."""
        with self._open_wanted(fcntl.LOCK_EX) as descriptor:
            wishes = Wishes.from_json(json.loads(os.pread(descriptor, _SLOT, 0)))
            os.pwrite(descriptor, _padded(wishes.hastened(roles, moment)), 0)

    @contextlib.contextmanager
    def _open_wanted(self, kind: int) -> Iterator[int]:
        descriptor = os.open(self._wanted, os.O_RDWR | os.O_CLOEXEC)
        try:
            _lock_soon(descriptor, kind)
            yield descriptor
        finally:
            os.close(descriptor)

    # --- the supervisor's life ---------------------------------------------------------------------------------------

    def listen(self) -> int:
        """The supervisor's end of the pipe: readable when `wake` was called."""
        # Also for writing, so that the pipe does not report its end whenever a caller has closed it.
        return os.open(self._wake, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)

    def wake(self) -> None:
        """Make the supervisor look at the wishes at once; nothing happens where none lives."""
        try:
            descriptor = os.open(self._wake, os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError as error:
            if error.errno in (errno.ENXIO, errno.ENOENT):
                return
            raise
        try:
            with contextlib.suppress(BlockingIOError, BrokenPipeError):  # full: it was woken often enough
                os.write(descriptor, b"!")
        finally:
            os.close(descriptor)

    def supervisor(self) -> int | None:
        """The pid of the living supervisor. Asks the kernel who holds the lock, without touching it."""
        try:
            descriptor = os.open(self._lock, os.O_RDWR | os.O_CLOEXEC)
        except FileNotFoundError:
            return None
        try:
            query = struct.pack(_FLOCK, fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)
            kind, _, _, _, pid = struct.unpack(_FLOCK, fcntl.fcntl(descriptor, fcntl.F_GETLK, query))
        finally:
            os.close(descriptor)
        return None if kind == fcntl.F_UNLCK else pid

    def take_lock(self) -> int | None:
        """Become the one who may supervise (or remove) this run: a descriptor to keep open; None where another is, or
        where this folder was replaced meanwhile. The kernel gives it back when this process ends, however it ends."""
        try:
            descriptor = os.open(self._lock, os.O_RDWR | os.O_CLOEXEC)
        except FileNotFoundError:
            return None
        try:
            fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if self._is_still(descriptor):
                return descriptor
        except OSError as error:
            if error.errno not in (errno.EACCES, errno.EAGAIN):
                os.close(descriptor)
                raise
        os.close(descriptor)
        return None

    def _is_still(self, descriptor: int) -> bool:
        try:
            return os.path.samestat(os.fstat(descriptor), os.stat(self._lock))
        except FileNotFoundError:
            return False


def _lock_soon(descriptor: int, kind: int) -> None:
    """A script can hold the lock for as long as it wants: then `OSError`, after a while."""
    deadline = time.monotonic() + _LOCK_PATIENCE
    while True:
        try:
            return fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.01)


def write_json(path: Path, data: Mapping[str, Any], *, durable: bool = False) -> None:
    """Put a whole new file in place of the old. Raises `OSError`, and then the old one stands and no scrap is left."""
    draft = path.with_name(f".{path.name}.{os.getpid()}.{threading.get_ident()}")
    try:
        with open(draft, "w", encoding="utf-8") as file:
            json.dump(data, file)
            file.flush()
            if durable:
                os.fsync(file.fileno())
        os.replace(draft, path)
    except BaseException:
        with contextlib.suppress(OSError):
            draft.unlink()
        raise


def read_json(path: Path) -> dict[str, Any] | None:
    """The object in the file; None where there is no file, or no object in it, also for what is too large or too
    deep."""
    data = read_end(path, _LARGEST + 1)
    try:
        found = json.loads(data) if data is not None and len(data) <= _LARGEST else None
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def read_end(path: Path, most: int) -> bytes | None:
    """The last bytes of the file; None where there is none. Scripts can put anything in its place: nothing is waited
    for, no link is followed, and no more is read."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError as error:
        if error.errno in _NO_FILE:
            return None
        raise
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        return None
    with open(descriptor, "rb") as file:
        file.seek(max(0, os.fstat(descriptor).st_size - most))
        return file.read(most)


def _padded(wishes: Wishes) -> bytes:
    text = json.dumps(wishes.to_json()).encode()
    return text + b" " * (_SLOT - len(text))


class Layout:
    """What is where under an engine's root, which all its processes share. Touches nothing.

    runs/<name>/     one folder per run
    ports/, gpus/    who holds which (`ledger`)
    changes          the journal (`journal`)
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self.runs = root / "runs"
        self.journal = root / "changes"
        self.ports = Ledger(root / "ports", self._is_run)
        self.gpus = Ledger(root / "gpus", self._is_run)

    def run(self, key: JobKey) -> RunFolder:
        return RunFolder(self.runs / key.name)

    def _is_run(self, name: str) -> bool:
        return (self.runs / name).exists()


_FULL = (errno.ENOSPC, errno.EDQUOT)
_NOT_OURS = (errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOTDIR)


@contextlib.contextmanager
def translated(root: Path) -> Iterator[None]:
    """Raise `Unavailable` or `Misconfigured` in place of an `OSError` about the engine's files."""
    try:
        yield
    except OSError as error:
        if error.errno in _FULL:
            raise Unavailable(
                f"The disk that holds {root} is full.",
                remedy=f"Free space there: the portal then tries again. ({error})",
            ) from error
        if error.errno in _NOT_OURS:
            raise Misconfigured(
                f"The engine cannot use {error.filename or root}: {error.strerror}.",
                remedy="Set the option `root` in YARDMASTER_ENGINES to a folder that the portal may write.",
            ) from error
        raise Unavailable(f"The engine's files under {root} could not be used: {error}") from error
