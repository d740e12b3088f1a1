"""Stands in for the runner in tests of the local engine: does what files in a folder tell it, and notes that it lives.

<STAND_IN>/<run>.<role>-<index>.<word>      word: exit (holds the exit code), stubborn, fork, escape, eat (bytes),
                                            note (holds what to write to exit.json before it ends),
                                            fail (the note of one failure: the next start goes on)
<STAND_IN>/<run>.<role>-<index>.lives       one line per start: pid, start number
"""

import json
import os
import signal
import sys
import time

work = os.environ["YARDMASTER_WORK_DIR"]
run, _, task = work.split(os.sep)[-4:-1]
base = os.path.join(os.environ["STAND_IN"], f"{run}.{task}.")


def told(word: str) -> "str | None":
    try:
        with open(base + word, encoding="utf-8") as file:
            return file.read()
    except FileNotFoundError:
        return None


def idle() -> None:
    while True:
        time.sleep(60)


if told("stubborn") is not None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
with open(base + "lives", "a", encoding="utf-8") as lives:
    lives.write(f"{os.getpid()} {os.environ['YARDMASTER_RESTART']}\n")
print("began", task, os.environ["YARDMASTER_RESTART"], flush=True)
if told("fork") is not None and os.fork() == 0:
    idle()
if told("escape") is not None and os.fork() == 0:
    os.setsid()
    if os.fork():
        os._exit(0)
    # A session of its own, no parent among us, and an environment that says nothing.
    os.execve(sys.executable, [sys.executable, "-S", "-c", "import time; time.sleep(600)", base], {})
eaten = b""
if (amount := told("eat")) is not None:
    if os.fork() == 0:
        eaten = b"x" * int(amount)
        idle()
    sys.exit(128 + os.waitstatus_to_exitcode(os.wait()[1]) * -1)
while (code := told("exit")) is None or not code:
    if (failure := told("fail")) is not None:
        os.unlink(base + "fail")
        with open(os.path.join(work, "exit.json"), "w", encoding="utf-8") as file:
            file.write(failure)
        sys.exit(json.loads(failure)["exit_code"])
    time.sleep(0.02)
if (note := told("note")) is not None:
    with open(os.path.join(work, "exit.json"), "w", encoding="utf-8") as file:
        file.write(note)
sys.exit(int(code))
