"""A task's life: get the order, stage in, run the script, keep what it made, tell the portal.

Every part is its own module; here is only who comes when, and what ends whom.
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import List, Mapping

from yardmaster_runner import secret_files
from yardmaster_runner.exits import (
    CUT_OFF,
    STAGE_IN_FAILED,
    CannotRun,
    Ending,
    StoppedEarly,
    last_words,
    say,
    write_ending,
)
from yardmaster_runner.flush import remember_address
from yardmaster_runner.holding import Hold
from yardmaster_runner.intake import now_ms
from yardmaster_runner.launch import Folders
from yardmaster_runner.masking import TokenMask
from yardmaster_runner.order import Order
from yardmaster_runner.packages import Packages
from yardmaster_runner.patience import PORTAL_MAY_BE_AWAY, Haste, Patience, UploadHaste
from yardmaster_runner.portal import Portal
from yardmaster_runner.preparation import Preparation
from yardmaster_runner.processes import adopt_orphans
from yardmaster_runner.reporter import Facts, Reporter
from yardmaster_runner.script_run import ScriptRun
from yardmaster_runner.secret_patterns import Pattern, is_too_short, patterns_of
from yardmaster_runner.settings import Settings
from yardmaster_runner.shells import Shells
from yardmaster_runner.shipper import ShipperThread
from yardmaster_runner.spool import Spool
from yardmaster_runner.spool_folder import SpoolInUse
from yardmaster_runner.stacks import StacksAsked
from yardmaster_runner.stopping import StopSwitch
from yardmaster_runner.task_api import TaskApi, Wishes
from yardmaster_runner.upload import Uploader


class TaskLifecycle:
    """One start of one task. `live` is called once, in the main thread."""

    def __init__(self, settings: Settings, inherited: Mapping[str, str]) -> None:
        self._settings = settings
        self._inherited = inherited
        self._folders = Folders.of(settings)
        self._haste, self._upload_haste = Haste(), UploadHaste()
        self._switch = StopSwitch(self._haste, self._upload_haste)
        self._api = TaskApi(Portal(settings.url, settings.token_file), settings.role, settings.index)
        self._preparation = Preparation(settings, self._api, self._folders)
        self._facts = Facts(settings.restart)
        self._shells = Shells(settings, self._api.portal.token, inherited)
        self._hold = Hold()
        self._stacks = StacksAsked()

    def live(self) -> int:
        """The exit code of the task."""
        self._switch.install()
        adopt_orphans()
        try:
            with self._switch.interruptible():
                self._preparation.make_work_dir()
                order = self._preparation.get_order()
            spool = self._open_spool(order)
        except (CannotRun, StoppedEarly) as error:
            ending = error.ending
        else:
            ending = self._live_with(order, spool)
        if ending.exit_code:
            say("\n".join(last_words(ending)))
        write_ending(self._settings.work_dir, ending)
        return ending.exit_code

    def _live_with(self, order: Order, spool: Spool) -> Ending:
        """The part of its life in which the portal hears of it."""
        patterns = self._secret_patterns(order, spool)
        self._facts.masked = TokenMask(lambda: self._api.portal.tokens, patterns).text
        reporter = Reporter(
            self._facts, self._api, self._switch.throw, self._grant, self._settings.nudge_file
        )  # fmt: skip
        patience = Patience(PORTAL_MAY_BE_AWAY, self._haste)
        shipping = ShipperThread(spool, self._api, patience, order.limits.away_seconds)
        farewell = Patience(PORTAL_MAY_BE_AWAY, self._haste)
        reporter.start()
        shipping.start()
        try:
            with self._switch.interruptible():
                self._preparation.stage(order)
                settings = self._packages(spool).install(order)
            run = ScriptRun(
                settings, order, self._folders, self._api, self._facts, self._upload_haste, self._shells, patterns,
                self._preparation.staged,
            )  # fmt: skip
            run.stacks = self._stacks
            ending = self._masked(run.to_its_end(self._inherited, self._switch, spool, shipping))
            if self._is_held(order, ending):
                self._hold_open(order, ending, spool)
            self._shells.close("The task has ended (exit code %d)." % ending.exit_code)
            secret_files.remove(self._folders.secrets)
            self._preparation.end()
            if ending.exit_code or not order.publishes:  # else it has not ended well before all of it is uploaded
                write_ending(self._settings.work_dir, ending)
            shipping.no_more_lines()
            farewell.worked()
            ending = self._masked(run.keep_results())
        except (CannotRun, StoppedEarly) as error:
            self._switch.ended()
            self._shells.close("The task has ended.")
            secret_files.remove(self._folders.secrets)
            ending = self._masked(error.ending)
            spool.append(("yardmaster: %s\n" % ending.message).encode("utf-8", "replace"), now_ms())
            shipping.no_more_lines()
            farewell.worked()
        shipping.join()
        spool.close()
        self._facts.ended(ending)
        reporter.finish(farewell)
        reporter.join()
        return ending

    def _packages(self, spool: Spool) -> Packages:
        def say(text: str) -> None:
            spool.append(("yardmaster: %s\n" % text).encode("utf-8", "replace"), now_ms())

        uploader = Uploader(self._api, self._api.portal.hosts, Patience(PORTAL_MAY_BE_AWAY, self._haste))
        return Packages(self._settings, self._api, self._folders.code, self._preparation.answered, say, uploader)

    def _grant(self, wishes: Wishes) -> None:
        self._shells.open(wishes.shells, wishes.commands)
        self._stacks.received(wishes.stacks)
        if wishes.release:
            self._hold.release()

    def _is_held(self, order: Order, ending: Ending) -> bool:
        return bool(ending.exit_code and order.hold_failed and not self._switch.was_thrown)

    def _hold_open(self, order: Order, ending: Ending, spool: Spool) -> None:
        """The engine finds the exit of the script also where the task is killed meanwhile."""
        write_ending(self._settings.work_dir, ending)
        until = time.time() + order.hold_failed
        words = "the script failed (exit code %d); this task is held open until %s UTC"
        said = words % (ending.exit_code, time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(until)))
        spool.append(("yardmaster: %s\n" % said).encode(), now_ms())
        self._facts.held(ending, until)
        self._hold.wait(order.hold_failed, lambda: self._switch.was_thrown)
        self._facts.state("running")

    def _secret_patterns(self, order: Order, spool: Spool) -> List[Pattern]:
        """What is taken out of the log; the log says what cannot be."""
        secrets = order.not_in_logs
        patterns, partly = patterns_of(secrets)
        words = [(one.name, "is too short to be masked here") for one in secrets if is_too_short(one)]
        words += [(name, "has too many lines to be masked here in all of its forms") for name in partly]
        for name, why in dict.fromkeys(words):
            spool.append(("yardmaster: the secret %s %s\n" % (name, why)).encode(), now_ms())
        return patterns

    def _masked(self, ending: Ending) -> Ending:
        return replace(ending, message=self._facts.masked(ending.message))

    def _open_spool(self, order: Order) -> Spool:
        try:
            spool = Spool(self._settings.spool_dir, order.limits.spool_bytes)
        except SpoolInUse as error:
            raise CannotRun(STAGE_IN_FAILED, "StageInFailed", str(error)) from error
        remember_address(self._settings)
        if order.was_cut_off:
            spool.append((CUT_OFF + "\n").encode(), now_ms())
        return spool
