"""A task's life: get the order, stage in, run the script, keep what it made, tell the portal.

Every part is its own module; here is only who comes when, and what ends whom.
"""

from __future__ import annotations

import errno
import os
import shutil
import time
from dataclasses import replace
from typing import Mapping, Optional

from yardmaster_runner import exits, launch
from yardmaster_runner.backoff import Backoff
from yardmaster_runner.cache import inside
from yardmaster_runner.checkpoints import has_checkpoint, put_back
from yardmaster_runner.events import EventFiles
from yardmaster_runner.exits import CannotRun, Ending, StoppedEarly, note, write_ending
from yardmaster_runner.flush import remember_address
from yardmaster_runner.intake import Intake, now_ms, open_pipe
from yardmaster_runner.keeper import CheckpointKeeper, keep_model
from yardmaster_runner.observer import Observer
from yardmaster_runner.order import Bundle, Order, read_order
from yardmaster_runner.patience import Haste, Patience
from yardmaster_runner.portal import Portal, PortalAway, PortalRefused, PortalRejected
from yardmaster_runner.processes import adopt_orphans
from yardmaster_runner.progress import Progress
from yardmaster_runner.reasons import explain_end, memory_kills
from yardmaster_runner.reporter import Facts, Reporter
from yardmaster_runner.script import Script
from yardmaster_runner.settings import Settings
from yardmaster_runner.shipper import ShipperThread
from yardmaster_runner.spool import Spool, SpoolInUse
from yardmaster_runner.stage import Stager
from yardmaster_runner.stopping import StopSwitch
from yardmaster_runner.task_api import TaskApi
from yardmaster_runner.upload import Uploader

ORDER_PATIENCE = 600.0
PIPE_PATIENCE = 0.5
LONGEST_LINE = 512 << 10


class Life:
    """One start of one task. `live` is called once, in the main thread."""

    def __init__(self, settings: Settings, inherited: Mapping[str, str]) -> None:
        self._settings = settings
        self._inherited = inherited
        self._folders = launch.Folders.of(settings)
        self._haste = Haste()
        self._switch = StopSwitch(self._haste)
        self._portal = Portal(settings.url, settings.token_file)
        self._api = TaskApi(self._portal, settings.role, settings.index)
        self._facts = Facts(settings.restart)
        self._progress = Progress()

    def live(self) -> int:
        """The exit code of the task."""
        self._switch.install()
        adopt_orphans()
        try:
            os.makedirs(self._settings.work_dir, exist_ok=True)
            order = self._get_order()
            spool = self._open_spool(order)
        except (CannotRun, StoppedEarly) as error:
            return self._conclude(error.ending)
        reporter = Reporter(self._facts, self._api, self._switch.throw)
        shipping = ShipperThread(spool, self._api, Patience(order.grace_period, self._haste))
        reporter.start()
        shipping.start()
        try:
            self._stage(order)
            ending = self._run_script(order, spool, shipping)
        except (CannotRun, StoppedEarly) as error:
            self._switch.ended()
            ending = error.ending
            spool.append(("yardmaster: %s\n" % ending.message).encode("utf-8", "replace"), now_ms())
        shipping.no_more_lines()
        shipping.join()
        spool.close()
        self._facts.ended(ending)
        reporter.finish(Patience(order.grace_period, self._haste).may_go_on)
        reporter.join()
        return self._conclude(ending)

    def _conclude(self, ending: Ending) -> int:
        self._switch.ended()
        if ending.exit_code:
            note("%s: %s" % (ending.reason, ending.message))
        write_ending(self._settings.work_dir, ending)
        return ending.exit_code

    # Before the script.

    def _get_order(self) -> Order:
        backoff, until = Backoff(), time.monotonic() + ORDER_PATIENCE
        while True:
            try:
                return read_order(self._api.order())
            except PortalRefused as error:
                raise CannotRun(exits.TOKEN_REFUSED, "TokenRefused", str(error)) from error
            except PortalRejected as error:
                raise CannotRun(exits.STAGE_IN_FAILED, "StageInFailed", str(error)) from error
            except PortalAway as error:
                if time.monotonic() >= until:
                    message = "no answer from %s for 10 minutes: %s" % (self._settings.url, error)
                    raise CannotRun(exits.PORTAL_UNREACHABLE, "PortalUnreachable", message) from error
                time.sleep(max(backoff.next(), min(error.retry_after, 15.0)))

    def _open_spool(self, order: Order) -> Spool:
        try:
            spool = Spool(self._settings.spool_dir, order.limits.spool_bytes)
        except SpoolInUse as error:
            raise CannotRun(exits.STAGE_IN_FAILED, "StageInFailed", str(error)) from error
        remember_address(self._settings)
        return spool

    def _stage(self, order: Order) -> None:
        try:
            stager = Stager(self._portal.hosts, self._settings.cache_dir, self._get_order)
            self._place_all(stager, order)
        except OSError as error:
            reason = "DiskFull" if error.errno in (errno.ENOSPC, errno.EDQUOT) else "StageInFailed"
            raise CannotRun(exits.STAGE_IN_FAILED, reason, "staging failed: %s" % error) from error
        entry_point = inside(self._folders.code, order.entry_point)
        if not os.path.isfile(entry_point):
            there = ", ".join(sorted(file.path for file in order.code.files)[:10])
            message = "the entry point %s is not in the code, which has: %s" % (order.entry_point, there or "nothing")
            raise CannotRun(exits.STAGE_IN_FAILED, "ScriptNotFound", message)
        if shutil.which(self._settings.python) is None:
            message = "YARDMASTER_PYTHON is %s, which cannot be run" % self._settings.python
            raise CannotRun(exits.STAGE_IN_FAILED, "StageInFailed", message)

    def _place_all(self, stager: Stager, order: Order) -> None:
        for folder in (self._settings.cache_dir, *vars(self._folders).values()):
            os.makedirs(folder, exist_ok=True)
        stager.place(order.code, self._folders.code, is_copied=True)
        for bundle in order.inputs:
            stager.place(bundle, self._folders.of_input(bundle.name), is_copied=False)
        if order.checkpoint is not None and self._settings.role != "ps":
            self._restore(stager, order.checkpoint)

    def _restore(self, stager: Stager, checkpoint: Bundle) -> None:
        """Into a log directory that has none: what is there is newer than what the portal has."""
        if has_checkpoint(self._folders.log):
            return
        staged = os.path.join(self._settings.work_dir, "restore")
        stager.place(checkpoint, staged, is_copied=False)
        put_back(staged, self._folders.log, [file.path for file in checkpoint.files])
        shutil.rmtree(staged, ignore_errors=True)

    # The script, and what follows it.

    def _run_script(self, order: Order, spool: Spool, shipping: ShipperThread) -> Ending:
        kills = memory_kills()
        reader, writer = open_pipe()
        line_bytes = min(order.limits.line_bytes, LONGEST_LINE)
        is_shipping = lambda: shipping.shipper.is_taken_from  # noqa: E731
        intake = Intake(reader, spool, line_bytes, is_shipping, self._progress.see_output)
        observer, keeper = self._observer(order), self._keeper(order)
        script = self._start(order, writer)
        for thread in (intake, observer, keeper):
            if thread is not None:
                thread.start()
        self._facts.state("running")
        exit_code = script.wait()
        intake.join(PIPE_PATIENCE)
        script.end_survivors()
        intake.stop_reading(PIPE_PATIENCE)
        intake.join()
        self._switch.ended()
        was_out_of_memory = kills is not None and (memory_kills() or 0) > kills
        ending = explain_end(exit_code, intake.tail, was_out_of_memory, self._switch.was_thrown)
        write_ending(self._settings.work_dir, ending)
        shipping.no_more_lines()
        observer.finish()
        observer.join()
        return self._keep_results(order, keeper, ending)

    def _start(self, order: Order, output: int) -> Script:
        command = launch.command(self._settings, order, self._folders)
        environment = launch.environment(self._settings, order, self._folders, self._inherited)
        self._switch.starting()
        try:
            script = Script.start(command, environment, self._folders.code, output)
        except OSError as error:
            raise CannotRun(exits.STAGE_IN_FAILED, "StageInFailed", "it cannot be started: %s" % error) from error
        finally:
            os.close(output)
        self._switch.started(script, order.grace_period)
        return script

    def _observer(self, order: Order) -> Observer:
        """In a shared log directory one task, and the evaluator, read the event files for all."""
        is_mine = not self._settings.log_dir_is_shared or self._settings.role == "evaluator" or self._decides(order)
        return Observer(self._facts, self._progress, EventFiles(self._folders.log) if is_mine else None)

    def _keeper(self, order: Order) -> Optional[CheckpointKeeper]:
        if not self._decides(order):
            return None
        scratch = os.path.join(self._settings.work_dir, "checkpoint-out")
        return CheckpointKeeper(self._uploader(order), self._folders.log, scratch, lambda: self._progress.step)

    def _keep_results(self, order: Order, keeper: Optional[CheckpointKeeper], ending: Ending) -> Ending:
        if keeper is None:
            return ending
        self._facts.state("uploading")
        keeper.finish()
        trouble = keep_model(self._uploader(order), self._folders.model) if ending.exit_code == 0 else ""
        keeper.join()
        trouble = trouble or keeper.trouble
        if trouble and ending.exit_code == 0:
            return replace(ending, reason="UploadFailed", message=trouble)
        return ending

    def _uploader(self, order: Order) -> Uploader:
        return Uploader(self._api, self._portal.hosts, Patience(order.grace_period, self._haste))

    def _decides(self, order: Order) -> bool:
        return order.is_decided_by(self._settings.role, self._settings.index)
