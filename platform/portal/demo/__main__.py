"""The command behind `make demo`. Exit 0 when every job succeeded with the accuracy it must have, else 1."""

from __future__ import annotations

import argparse
import os
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from types import FrameType

from rich.console import Console
from rich.markup import escape

from portal.demo.cluster import surroundings_for
from portal.demo.digits import Digits
from portal.demo.leaving import leaving_nothing
from portal.demo.portal import ROOT, Access, PortalFailed, RunningPortal
from portal.demo.report import print_rows
from portal.demo.reviews import Reviews
from portal.demo.stage import NeverFits, Stage, StoryFailed
from portal.up.home import home_of
from yardmaster_client import NotReachable, PortalError, Yardmaster


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
                stage = Stage(portal, console, options.engine, took={"start the portal": ready})
                stories = list(_stories(options, stage))
                try:
                    for story in stories:
                        story.tell()
                except BaseException:
                    stage.end_early()
                    raise
            _report(stage, stories, running.url, access)
            if sys.stdout.isatty() and not options.exit:
                console.print("The portal stays up until Ctrl-C.")
                running.wait()
        return 0 if all(story.succeeded for story in stories) else 1
    except KeyboardInterrupt:
        return 130
    except PortalFailed:
        return 1
    except (NeverFits, StoryFailed) as error:
        console.print(f"[red]{escape(str(error))}[/]")
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
    parser.add_argument(
        "--example", choices=["digits", "reviews", "all"], help="what is trained (digits; with MinIO all)"
    )
    parser.add_argument("--most", type=int, default=0, help="reviews of each class (0: all)")
    parser.add_argument("--ps", type=int, help="parameter servers (1; on a cluster 2)")
    parser.add_argument("--workers", type=int, help="workers (2; on a cluster 3)")
    parser.add_argument("--exit", action="store_true", help="stop after the last job")
    options = parser.parse_args()
    on_one_machine = options.engine == "local"
    options.example = options.example or ("all" if options.store == "minio" else "digits")
    options.ps = options.ps or (1 if on_one_machine else 2)
    options.workers = options.workers or (2 if on_one_machine else 3)
    return options


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def _stories(options: argparse.Namespace, stage: Stage) -> Iterator[Digits | Reviews]:
    """What is asked for, in the order in which it is told."""
    if options.example in ("digits", "all"):
        yield Digits(stage, options.ps, options.workers)
    if options.example in ("reviews", "all"):
        yield Reviews(stage, options.ps, options.workers, options.most)


def _report(stage: Stage, stories: Sequence[Digits | Reviews], url: str, access: Access) -> None:
    for story in stories:
        print_rows(stage.console, story.rows(url))
    took = [(what, f"{seconds:.1f} s") for what, seconds in stage.took.items()]
    print_rows(stage.console, [*took, ("the portal", url), ("sign in, once", access.link)])


if __name__ == "__main__":
    sys.exit(main())
