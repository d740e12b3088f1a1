"""Runs between the runner and the script, and then becomes the script. It stands alone: `script` reads it as text and
runs it with `python -I -S -c`, so it imports nothing of the runner.

It asks the kernel to kill the script when the runner is killed (two copies of a worker must never run at once), and to
take the script, not the runner, when memory runs out. Where the runner says so it puts a filter on all that the script
will ever start and hands the runner the descriptor at which the kernel asks (`narrower`). A program of its own rather
than `preexec_fn`, which is not safe in a process with threads.

Arguments: the runner's pid, the descriptor of a socket to the runner ("-": no filter), the number of the system call
seccomp, the filter in hexadecimal, and then the command.
"""

from __future__ import annotations

import os
import signal
import sys

SCRIPT_CANNOT_START = 127
PR_SET_PDEATHSIG = 1
PR_SET_NO_NEW_PRIVS = 38
SET_MODE_FILTER = 1
NEW_LISTENER = 1 << 3
WAIT_KILLABLE = 1 << 5


def main() -> None:
    runner, channel, seccomp, code = sys.argv[1:5]
    command = sys.argv[5:]
    _die_with(int(runner))
    _be_taken_first()
    if channel != "-":
        try:
            _put_filter_on(int(channel), int(seccomp), bytes.fromhex(code))
        except (ImportError, AttributeError, OSError) as error:
            _give_up("this task cannot be kept from listening on every network, so it is not started: %s" % error)
    for number in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(number, signal.SIG_DFL)
    try:
        os.execvp(command[0], command)
    except OSError as error:
        _give_up("%s cannot be started: %s" % (command[0], error))


def _give_up(why: str) -> None:
    sys.stderr.write("yardmaster: %s\n" % why)
    sys.exit(SCRIPT_CANNOT_START)


def _die_with(runner: int) -> None:
    try:
        import ctypes  # missing in some small builds of Python

        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    except (ImportError, AttributeError, OSError):
        pass  # no Linux, or a small Python: the runner then ends the script itself, unless it is killed
    if os.getppid() != runner:
        os.kill(os.getpid(), signal.SIGKILL)


def _be_taken_first() -> None:
    try:
        with open("/proc/self/oom_score_adj", "r+") as file:
            score = int(file.read())
            file.seek(0)
            file.write(str(min(1000, score + 300)))
    except (OSError, ValueError):
        pass  # no such file, or not ours to change: the kernel then chooses by memory alone


def _put_filter_on(channel: int, seccomp: int, code: bytes) -> None:
    import _socket  # not `socket`, which takes longer to import than all of the rest
    import ctypes
    import struct

    libc = ctypes.CDLL(None, use_errno=True)
    libc.syscall.restype = ctypes.c_long
    if libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0):
        raise OSError(ctypes.get_errno(), "no_new_privs: %s" % os.strerror(ctypes.get_errno()))
    held = ctypes.create_string_buffer(code, len(code))
    program = ctypes.create_string_buffer(struct.pack("HP", len(code) // 8, ctypes.addressof(held)))
    listener = -1
    for flags in (NEW_LISTENER | WAIT_KILLABLE, NEW_LISTENER):  # before Linux 5.19: without the second
        arguments = (seccomp, SET_MODE_FILTER, flags)
        listener = libc.syscall(*[ctypes.c_long(one) for one in arguments], ctypes.byref(program))
        if listener >= 0:
            break
    if listener < 0:
        raise OSError(ctypes.get_errno(), "seccomp: %s" % os.strerror(ctypes.get_errno()))
    to_runner = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM, 0, channel)
    rights = (_socket.SOL_SOCKET, _socket.SCM_RIGHTS, struct.pack("i", listener))
    to_runner.sendmsg([b"!"], [rights])
    to_runner.close()
    os.close(listener)


if __name__ == "__main__":
    main()
