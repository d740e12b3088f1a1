"""The kernel's part of keeping a task's servers on loopback: the filter, and what is read and answered at its end.

Numbers and layouts are the kernel's interface (seccomp(2), seccomp_unotify(2)). Not here: what is allowed
(`narrower`).
"""

from __future__ import annotations

import errno
import fcntl
import os
import platform
import struct
from dataclasses import dataclass
from typing import Optional, Tuple

NOTIFY_RECEIVE = 0xC0502100
NOTIFY_SEND = 0xC0182101
NOTIFY_ID_VALID = 0x40082102
NOTIFICATION = struct.Struct("=QIIiIQ6Q")
ANSWER = struct.Struct("=QqiI")

LOAD, EQUAL, AT_LEAST, RETURN = 0x20, 0x15, 0x35, 0x06
KILL_PROCESS, ERRNO, ASK, ALLOW = 0x80000000, 0x00050000, 0x7FC00000, 0x7FFF0000
X32 = 0x40000000
"""From here x86 counts the calls of a second interface to the same kernel."""
PIDFD_OPEN, PIDFD_GETFD, IO_URING_SETUP = 434, 438, 425
PIDFD_THREAD = os.O_EXCL
CLONE_FS = 0x200


@dataclass(frozen=True)
class Machine:
    """How an architecture is named and numbers its calls."""

    audit: int
    seccomp: int
    bind: int
    listen: int


MACHINES = {
    "x86_64": Machine(0xC000003E, 317, 49, 50),
    "aarch64": Machine(0xC00000B7, 277, 200, 201),
}


@dataclass(frozen=True)
class Asked:
    """One call that a thread waits in. `thread` is its number here; 0 where it is out of sight."""

    id: int
    thread: int
    call: int
    arguments: Tuple[int, ...]


def this_machine() -> Machine:
    """Raises `OSError` where its calls are not known here."""
    found = MACHINES.get(platform.machine())
    if found is None:
        raise OSError(errno.ENOSYS, "the system calls of %s are not known" % platform.machine())
    return found


def filter_for(machine: Machine) -> bytes:
    """Ask about bind and listen; no io_uring, which does both unseen; no calls of another architecture."""

    def line(code: int, value: int, then: int = 0, otherwise: int = 0) -> bytes:
        return struct.pack("=HBBI", code, then, otherwise, value)

    def when(call: int, what: int) -> bytes:
        return line(EQUAL, call, 0, 1) + line(RETURN, what)

    return b"".join(
        [
            line(LOAD, 4),
            line(EQUAL, machine.audit, 1, 0),
            line(RETURN, KILL_PROCESS),
            line(LOAD, 0),
            line(AT_LEAST, X32, 0, 1),
            line(RETURN, ERRNO | errno.ENOSYS),
            when(machine.bind, ASK),
            when(machine.listen, ASK),
            when(IO_URING_SETUP, ERRNO | errno.EPERM),
            line(RETURN, ALLOW),
        ]
    )


def receive(listener: int) -> Optional[Asked]:
    """The next call; None where its thread was killed before we looked."""
    note = bytearray(NOTIFICATION.size)
    try:
        fcntl.ioctl(listener, NOTIFY_RECEIVE, note)
    except OSError as error:
        if error.errno in (errno.ENOENT, errno.EINTR):
            return None
        raise
    key, thread, _, call, _, _, *arguments = NOTIFICATION.unpack(note)
    return Asked(key, thread, call, tuple(arguments))


def is_waiting(listener: int, asked: Asked) -> bool:
    """Whether the thread still waits: what was read of it before this was asked was its own."""
    try:
        fcntl.ioctl(listener, NOTIFY_ID_VALID, struct.pack("=Q", asked.id))
    except OSError:
        return False
    return True


def answer(listener: int, asked: Asked, error: int = 0) -> None:
    """End the wait: with success, or with an error. The kernel is never left to do what was asked: the thread, or
    another one of its process, may have changed what its arguments mean."""
    reply = ANSWER.pack(asked.id, 0, -error, 0)
    try:
        fcntl.ioctl(listener, NOTIFY_SEND, reply)
    except OSError as failure:
        if failure.errno not in (errno.ENOENT, errno.EINPROGRESS):  # killed, or interrupted, meanwhile
            raise


def copy_of(asked: Asked, descriptor: int) -> int:
    """A descriptor of our own for what `descriptor` is to the thread. Raises `OSError`."""
    try:
        process = _call(PIDFD_OPEN, asked.thread, PIDFD_THREAD)
    except OSError as error:
        if error.errno != errno.EINVAL:
            raise
        process = _call(PIDFD_OPEN, _process_of(asked.thread), 0)  # before Linux 6.9 threads have none
    try:
        return _call(PIDFD_GETFD, process, descriptor, 0)
    finally:
        os.close(process)


def memory_of(asked: Asked, address: int, length: int) -> bytes:
    """What stands in the thread's memory. Raises `OSError`."""
    memory = os.open("/proc/%d/mem" % asked.thread, os.O_RDONLY | os.O_CLOEXEC)
    try:
        found = os.pread(memory, length, address)
    except (OSError, OverflowError) as error:
        raise OSError(errno.EFAULT, "the address cannot be read") from error
    finally:
        os.close(memory)
    if len(found) < length:
        raise OSError(errno.EFAULT, "the address cannot be read")
    return found


def umask_of(asked: Asked) -> int:
    """The thread's umask. Raises `OSError` where it stands in another file system than we do, or is another user."""
    for name in ("root", "ns/mnt"):
        theirs, ours = os.stat("/proc/%d/%s" % (asked.thread, name)), os.stat("/proc/self/%s" % name)
        if (theirs.st_dev, theirs.st_ino) != (ours.st_dev, ours.st_ino):
            raise OSError(errno.EACCES, "the paths of another file system")
    with open("/proc/%d/status" % asked.thread, encoding="ascii", errors="replace") as lines:
        known = dict(line.rstrip("\n").split(":\t", 1) for line in lines if ":\t" in line)
    if (int(known["Uid"].split()[3]), int(known["Gid"].split()[3])) != (os.geteuid(), os.getegid()):
        raise OSError(errno.EACCES, "another user's file")
    return int(known["Umask"], 8)


def take_own_place() -> bool:
    """Give this thread a folder and a umask of its own; False where the machine does not allow it."""
    import ctypes

    return bool(ctypes.CDLL(None).unshare(CLONE_FS) == 0)


def bind(descriptor: int, address: bytes) -> None:
    """The system call, with an address of any family. Raises `OSError`."""
    import ctypes

    libc = ctypes.CDLL(None, use_errno=True)
    if libc.bind(descriptor, address, len(address)) != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def _process_of(thread: int) -> int:
    with open("/proc/%d/status" % thread, encoding="ascii", errors="replace") as lines:
        return next((int(line.split()[1]) for line in lines if line.startswith("Tgid:")), 0)


def _call(number: int, *arguments: int) -> int:
    import ctypes  # missing in some small builds of Python

    libc = ctypes.CDLL(None, use_errno=True)
    libc.syscall.restype = ctypes.c_long
    result = int(libc.syscall(*[ctypes.c_long(one) for one in (number, *arguments)]))
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result
