"""An event that handlers of signals set, however many come at once."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time

from yardmaster_runner.signal_event import SignalEvent

WAITS = """
import os, signal, sys
from yardmaster_runner.signal_event import SignalEvent
stop = SignalEvent()
count = 0

def handler(number, frame):
    global count
    count += 1
    stop.set()

signal.signal(signal.SIGTERM, handler)
print("ready", flush=True)
while count < int(sys.argv[1]):
    stop.wait(0.0005)
os._exit(0)  # the interpreter's own end would restore what signals do
"""


def test_it_wakes_who_waits_and_stays_set():
    event = SignalEvent()
    assert not event.is_set()
    assert not event.wait(0.01)
    threading.Timer(0.05, event.set).start()
    begun = time.monotonic()
    assert event.wait(20)
    assert time.monotonic() - begun < 10
    event.set()
    assert event.is_set()
    assert event.wait()


def test_a_handler_may_interrupt_another_one_that_sets_it():
    event, depth = SignalEvent(), []

    def handler(number: int, frame: object) -> None:
        depth.append(number)
        if len(depth) < 50:
            os.kill(os.getpid(), signal.SIGUSR1)
        event.set()

    before = signal.signal(signal.SIGUSR1, handler)
    try:
        os.kill(os.getpid(), signal.SIGUSR1)
        assert event.wait(20)
        assert len(depth) == 50
    finally:
        signal.signal(signal.SIGUSR1, before)


def test_a_process_that_waits_ends_though_signals_come_all_the_time():
    command = [sys.executable, "-c", WAITS, "300"]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            process.stdout.readline()
            until = time.monotonic() + 20
            while process.poll() is None and time.monotonic() < until:
                process.send_signal(signal.SIGTERM)
                time.sleep(0.0002)
            assert process.poll() == 0
        finally:
            process.kill()


def test_it_closes_what_it_opened():
    def opened() -> int:
        return len(os.listdir("/proc/self/fd"))

    before = opened()
    for _ in range(20):
        SignalEvent()
    assert opened() == before
