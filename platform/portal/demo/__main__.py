"""The command behind `make demo`. Exit 0 when the job succeeded with the accuracy it must have, else 1."""

from __future__ import annotations

import argparse
import os
import signal
import sys
import time
from itertools import pairwise
from types import FrameType

from rich.console import Console
from rich.markup import escape

from portal.demo.cluster import surroundings_for
from portal.demo.leaving import leaving_nothing
from portal.demo.portal import ROOT, Access, PortalFailed, RunningPortal
from portal.demo.story import LEAST_ACCURACY, NeverFits, Story
from portal.up.home import home_of
from yardmaster_client import Job, NotReachable, PortalError, Yardmaster


def main() -> int:
    options = _options()
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _interrupt)
    console = Console(highlight=False)
    begun = time.monotonic()
    try:
        around = surroundings_for(options.engine, os.environ)
        os.environ.update(around.settings)
        if around.note:
            console.print(around.note, soft_wrap=True)
        with (
            leaving_nothing(options.engine, home_of(os.environ, ROOT), console.print) as is_up,
            RunningPortal(options.port, around.host, options.store) as running,
        ):
            is_up()
            ready = time.monotonic() - begun
            console.print(f"The portal is up at [bold]{running.url}[/] (after {ready:.1f} s)")
            access = running.access()
            with Yardmaster(running.url, access.token) as portal:
                story = Story(portal, console, options.engine, took={"start the portal": ready})
                try:
                    job = story.tell(options.ps, options.workers)
                except BaseException:
                    story.end_early()
                    raise
            _report(console, story, job, running.url, access)
            if sys.stdout.isatty() and not options.exit:
                console.print("The portal stays up until Ctrl-C.")
                running.wait()
        return 0 if job.phase == "SUCCEEDED" and story.succeeded else 1
    except KeyboardInterrupt:
        return 130
    except PortalFailed:
        return 1
    except NeverFits as error:
        console.print(f"[red]{error}[/]")
        return 1
    except (PortalError, NotReachable) as error:
        console.print(f"[red]{error}[/] {getattr(error, 'remedy', '')}")
        for one in getattr(error, "errors", ()):
            console.print(f"  {one.field}: {one.message} {one.remedy}")
        return 1


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="portal.demo", description="Trains a real model through a portal.")
    parser.add_argument("--port", type=int, default=8080)
    parser.add_argument("--engine", default="local")
    parser.add_argument("--store", choices=["folder", "minio"], default="folder", help="where objects are kept")
    parser.add_argument("--ps", type=int, help="parameter servers (1; on a cluster 2)")
    parser.add_argument("--workers", type=int, help="workers (2; on a cluster 3)")
    parser.add_argument("--exit", action="store_true", help="stop after the job")
    options = parser.parse_args()
    on_one_machine = options.engine == "local"
    options.ps = options.ps or (1 if on_one_machine else 2)
    options.workers = options.workers or (2 if on_one_machine else 3)
    return options


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def _report(console: Console, story: Story, job: Job, url: str, access: Access) -> None:
    goal = f"(must be at least {LEAST_ACCURACY})"
    rows = [
        ("job", f"{job.phase}: {job.message or job.reason}"),
        ("test accuracy", f"{story.accuracy:.4f} {goal}" if story.accuracy is not None else f"not reported {goal}"),
        ("model", _model_place(job, url)),
        *((what, f"{seconds:.1f} s") for what, seconds in story.took.items()),
        *((f"  {name}", f"{seconds:.1f} s") for name, seconds in _phases(job)),
        ("the portal", url),
        ("sign in, once", access.link),
    ]
    console.print()
    for name, value in rows:
        console.print(f"[dim]{name:<26}[/]{escape(value)}", soft_wrap=True)


def _model_place(job: Job, url: str) -> str:
    if not job.model:
        return "none was kept"
    return f"{url}/jobs/{job.id}/ (or: yardmaster models download {job.name})"


def _phases(job: Job) -> list[tuple[str, float]]:
    marks = [("waited", job.queued_at), ("started", job.admitted_at), ("ran", job.started_at), ("", job.decided_at)]
    known = [(name, at) for name, at in marks if at is not None]
    return [(name, (after - at).total_seconds()) for (name, at), (_, after) in pairwise(known) if name]


if __name__ == "__main__":
    sys.exit(main())
