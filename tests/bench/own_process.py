"""Each measurement in a process of its own, so that none sees what another one has loaded, or falls with it."""

from __future__ import annotations

import traceback
from collections.abc import Iterator
from multiprocessing import get_context
from multiprocessing.connection import Connection

from tests.bench.lines import Line, Measurement


def run_in_own_process(measure: Measurement) -> Iterator[Line]:
    """The lines as they come; a measurement that fails or dies is told as one short line."""
    context = get_context("spawn")
    receiver, sender = context.Pipe(duplex=False)
    child = context.Process(target=_report, args=(measure, sender))
    child.start()
    sender.close()
    while True:
        try:
            line = receiver.recv()
        except EOFError:
            break
        yield line
    child.join()
    if child.exitcode:
        yield Line(f"{measure.__module__.rpartition('.')[2]}: could not be measured", 1, "", at_most=0)


def _report(measure: Measurement, sender: Connection) -> None:
    try:
        for line in measure():
            sender.send(line)
    except Exception as error:
        traceback.print_exc()
        raise SystemExit(1) from error
