"""The command behind `make up`. Exit 0 after Ctrl-C or SIGTERM, 1 when the portal could not start."""

from __future__ import annotations

import argparse
import os
import signal
import sys
import threading
import time
from collections.abc import Mapping
from pathlib import Path

from portal.cluster import choice
from portal.cluster.offer import Offer, OfferFailed
from portal.minio import Minio, MinioMissing, free_port, minio_of
from portal.up import home as portal_home
from portal.up.health import LIMIT, Health
from portal.up.keeper import Keeper
from portal.up.processes import Address, ServerMissing, environment, raise_descriptors
from portal.up.start import CouldNotStart, Started, bring_up
from yardmaster_runner.signal_event import SignalEvent

ROOT = Path(__file__).resolve().parents[3]


def main() -> int:
    options = _options()
    home = portal_home.home_of(os.environ, ROOT)
    stop = _stop_on_signals()
    begun = time.monotonic()
    raise_descriptors()
    try:
        portal_home.prepare(home)
        with portal_home.lock(home):
            timeout, log_keep = _limits()
            address, variables = _settle_cluster(options, home, stop)
            store = _own_store(options, home, address)
            if store is not None:
                variables = {**variables, **store.settings(), **store.environment()}
            keeper = Keeper(home, ROOT, environment(variables, ROOT, home, address), _say, Health(timeout), log_keep)
            try:
                keeper.end_leftovers()
                if started := bring_up(keeper, home, address, stop, store):
                    _greet(address, started, time.monotonic() - begun)
                while not stop.wait(0.5):
                    keeper.mend()
            finally:
                keeper.stop()
            _farewell(home)
    except BrokenPipeError:  # the reader of the output has gone; everything is stopped all the same
        return 0
    except (portal_home.HomeInUse, ServerMissing, MinioMissing, CouldNotStart, OfferFailed, OSError) as error:
        print(f"The portal could not start: {error}", file=sys.stderr)
        return 1
    return 0


def _options() -> argparse.Namespace:
    from django.core.exceptions import ImproperlyConfigured

    from portal import env

    parser = argparse.ArgumentParser(prog="portal.up", description="Runs every process of the portal on this machine.")
    parser.add_argument("--host", default=env.text("YARDMASTER_HOST", ""))
    try:
        parser.add_argument("--port", type=int, default=env.number("YARDMASTER_PORT", 8080, least=1))
        default = env.number("YARDMASTER_WORKBENCH_PORT", 0)
        parser.add_argument("--workbench-port", type=int, default=default, help="default: the port after the portal's")
    except ImproperlyConfigured as error:
        parser.error(str(error))
    parser.add_argument("--engine", choices=["kubernetes"], help="let jobs run on the kubeconfig's cluster")
    parser.add_argument("--store", choices=["folder", "minio"], default="folder", help="where objects are kept")
    return parser.parse_args()


def _settle_cluster(
    options: argparse.Namespace, home: Path, stop: threading.Event
) -> tuple[Address, Mapping[str, str]]:
    """Where to listen, and what the processes are told, once a cluster that this machine knows was thought of."""
    offer = Offer(
        ROOT, home, os.environ, options.host, options.port, is_wanted=bool(options.engine), say=_say, stop=stop
    )
    settled = offer.settle()
    choice.note_settings(home, settled.settings)
    return Address(settled.host, options.port, options.workbench_port), {**os.environ, **settled.settings}


def _own_store(options: argparse.Namespace, home: Path, address: Address) -> Minio | None:
    """The MinIO that runs beside the portal, where that was asked for. It listens where the portal does."""
    if options.store != "minio":
        return None
    return minio_of(home, free_port(address.host), address.host)


def _limits() -> tuple[float, int]:
    """How long a process may be without a heartbeat, and how much output is kept."""
    from django.core.exceptions import ImproperlyConfigured

    from portal import env

    try:
        timeout = env.number("YARDMASTER_HEARTBEAT_TIMEOUT", int(LIMIT), least=3)
        return timeout, env.size("YARDMASTER_LOG_KEEP", "512Mi", least=10 << 20)
    except ImproperlyConfigured as error:
        raise CouldNotStart(str(error)) from error


def _stop_on_signals() -> threading.Event:
    stop = SignalEvent()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda *_: stop.set())
    return stop


def _say(line: str) -> None:
    print(f"  {line}", flush=True)


def _greet(address: Address, started: Started, seconds: float) -> None:
    print(f"Yardmaster is ready at {address.url} (after {seconds:.1f} s)", flush=True)
    if started.sign_in_link:
        print(f"  First sign-in, once, within 15 minutes: {started.sign_in_link}", flush=True)
    print("  Ctrl-C stops the portal; running jobs continue.", flush=True)


def _farewell(home: Path) -> None:
    """Say which jobs continue without the portal, and how to end them."""
    from yardmaster.engines.local import live_runs

    names = [run.name for run in live_runs(home / "local")]
    print("The portal has stopped.", flush=True)
    if names:
        print(f"  {len(names)} job(s) continue without it: {', '.join(names)}", flush=True)
        print("  `make up` finds them again; `make stop-jobs` ends them now.", flush=True)


if __name__ == "__main__":
    sys.exit(main())
