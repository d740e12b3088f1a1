"""One run of the script with everything around it: reading its output, watching it, keeping what it makes."""

from __future__ import annotations

import os
from dataclasses import replace
from functools import partial
from typing import Callable, Mapping, Optional, Sequence

from yardmaster_runner import keras_home, launch, task_outputs
from yardmaster_runner.cluster import PARAMETER_SERVER
from yardmaster_runner.event_sync import READERS, EventSync
from yardmaster_runner.events import EventFiles, no_files, no_others
from yardmaster_runner.exits import NOT_PUBLISHED, STAGE_IN_FAILED, CannotRun, Ending
from yardmaster_runner.gate import VARIABLE, Gate
from yardmaster_runner.intake import Intake, now_ms, open_pipe
from yardmaster_runner.keeper import CheckpointKeeper, publish_output
from yardmaster_runner.masking import TokenMask
from yardmaster_runner.model_keeper import ModelKeeper
from yardmaster_runner.observer import Observer
from yardmaster_runner.open_line import OpenLine
from yardmaster_runner.order import Order
from yardmaster_runner.output_keeper import OutputKeeper
from yardmaster_runner.patience import AWAY_AFTER, PORTAL_MAY_BE_AWAY, Haste, Patience
from yardmaster_runner.progress import Progress
from yardmaster_runner.reasons import (
    explain_end,
    explain_end_of_program,
    explain_end_of_server,
    explain_end_of_spark,
    memory_kills,
)
from yardmaster_runner.relative_model import RelativeModel
from yardmaster_runner.reporter import Facts
from yardmaster_runner.script import Script
from yardmaster_runner.secret_patterns import Pattern
from yardmaster_runner.service_token import service_token
from yardmaster_runner.settings import Settings
from yardmaster_runner.shells import Shells
from yardmaster_runner.shipper import ShipperThread
from yardmaster_runner.spark import task as spark
from yardmaster_runner.spark.granted import GrantWatch
from yardmaster_runner.spark.output import is_data
from yardmaster_runner.spool import Spool
from yardmaster_runner.stacks import StacksAsked, write_stacks
from yardmaster_runner.stalls import QUIET, StallWatch
from yardmaster_runner.stopping import StopSwitch
from yardmaster_runner.task_api import TaskApi
from yardmaster_runner.upload import Uploader
from yardmaster_runner.working_folder import States

PIPE_PATIENCE = 0.5
LONGEST_LINE = 128 << 10
LONGEST_MESSAGE = 1000


class ScriptRun:
    """`to_its_end`, then `keep_results`, each once and from the main thread."""

    def __init__(
        self,
        settings: Settings,
        order: Order,
        folders: launch.Folders,
        api: TaskApi,
        facts: Facts,
        haste: Haste,
        shells: Shells,
        patterns: Sequence[Pattern] = (),
        staged: Optional[States] = None,
    ) -> None:
        self._settings = settings
        self._order = order
        self._folders = folders
        self._api = api
        self._facts = facts
        self._haste = haste
        self._shells = shells
        self._working = task_outputs.working_folder(settings, order, folders, staged or {})
        self._summaries = task_outputs.summaries(settings, order)
        progress = Progress()
        self._progress = progress
        self._observer = Observer(facts, progress, self._event_files())
        self._keeper: Optional[CheckpointKeeper] = None
        self._model: Optional[ModelKeeper] = None
        self._outputs: Optional[OutputKeeper] = task_outputs.output_keeper(
            settings, order, folders, api, facts, self._uploader, self._working, self._summaries
        )
        self._gate: Optional[Gate] = None
        self._was_stopped = self._is_finished = False
        self._patterns = patterns
        self.stacks = StacksAsked()
        self._explain: Callable[[], Ending] = lambda: Ending(0, "")
        if task_outputs.decides(settings, order):
            scratch = os.path.join(settings.work_dir, "checkpoint-out")
            self._keeper = CheckpointKeeper(self._uploader(), folders.log, scratch, lambda: progress.step)
            model = launch.model_folder(order, folders)
            running, last = self._uploader(AWAY_AFTER), self._uploader()
            self._model = ModelKeeper(running, last, model, self._find_model, models_alone=order.has_one_dir)

    def to_its_end(
        self, inherited: Mapping[str, str], switch: StopSwitch, spool: Spool, shipping: ShipperThread
    ) -> Ending:
        """Start the script and see it, and all that it started, to the end; all of its output is in the spool then."""
        kills = memory_kills()
        sync = self._event_sync(spool)
        reader, writer = open_pipe()
        line_bytes = min(self._order.limits.line_bytes, LONGEST_LINE)
        mask = TokenMask(lambda: self._api.portal.tokens, self._patterns)
        intake = Intake(reader, spool, line_bytes, lambda: _may_wait(shipping, switch), self._progress.see_output, mask)
        script = self._start(inherited, writer, spool)
        switch.started(script, self._order.grace_period)
        self._watch_stalls(intake, spool, script)
        line = OpenLine(lambda: intake.open_line, lambda: spool.base, lambda: self._facts.is_followed, self._api)
        granted = self._grant_watch(spool)
        for thread in (intake, self._observer, self._keeper, self._model, self._outputs, sync, line, granted):
            if thread is not None:
                thread.start()
        self._facts.state("running")
        exit_code = script.wait()
        for watching in (sync, granted):
            if watching is not None:
                watching.finish()
        was_asked_to_stop = self._was_stopped = switch.was_thrown
        self._is_finished = exit_code == 0
        intake.join(PIPE_PATIENCE)
        if exit_code == 0 or was_asked_to_stop or not self._order.hold_failed:
            self._shells.close("The script has ended (exit code %d)." % exit_code)
        self.stacks.write = None
        script.end_survivors()
        self._close_gate()
        intake.stop_reading(PIPE_PATIENCE)
        intake.join()
        line.finish()
        switch.ended()
        was_out_of_memory = kills is not None and (memory_kills() or 0) > kills
        self._progress.see_output(intake.tail, len(intake.tail))
        if exit_code == 0:
            self._progress.finish()
        self._name_left_out(spool)
        self._explain = lambda: self._explained(exit_code, intake.tail, was_out_of_memory, was_asked_to_stop)
        return self._explain()

    def keep_results(self) -> Ending:
        """Report the last facts, upload the last checkpoint and the model, then the outputs. The ending, with what
        could not be kept."""
        self._observer.finish()
        self._observer.join()
        ending = self._explain()  # its event files may have shown steps that its output did not
        if self._keeper is not None or self._outputs is not None:
            self._facts.state("uploading")
        if self._keeper is not None and self._model is not None:
            ending = self._keep_decided(self._keeper, self._model, ending)
        if self._outputs is not None:
            self._outputs.finish()
            self._outputs.join()
        if self._order.publishes and ending.exit_code == 0:
            ending = self._publish(ending)
        return ending

    def _publish(self, ending: Ending) -> Ending:
        """A job that publishes has not done its work before all of it is uploaded."""
        self._facts.state("uploading")
        is_meant = is_data if self._order.is_spark else lambda path: True
        trouble = publish_output(self._uploader(), self._api, self._folders.output, is_meant)
        return Ending(NOT_PUBLISHED, "NotPublished", trouble[:LONGEST_MESSAGE]) if trouble else ending

    def _keep_decided(self, keeper: CheckpointKeeper, model: ModelKeeper, ending: Ending) -> Ending:
        """The last checkpoint and the model: of a script that ended well, and of one that was asked to stop and
        answered with an export."""
        keeper.finish()
        model.finish(was_stopped=self._was_stopped, is_finished=self._is_finished)
        model.join()
        if self._working is not None:
            self._working.model = model.found
        if self._is_finished or self._was_stopped:
            self._facts.unsaved("model", model.trouble)
        keeper.join()
        trouble = model.trouble or keeper.trouble
        if trouble and ending.exit_code == 0:
            return replace(ending, reason="UploadFailed", message=trouble[:LONGEST_MESSAGE])
        return ending

    def _explained(self, exit_code: int, tail: bytes, was_out_of_memory: bool, was_asked_to_stop: bool) -> Ending:
        given = (self._folders.code, self._folders.data)
        reached = self._progress.reached
        ending = explain_end(exit_code, tail, was_out_of_memory, was_asked_to_stop, reached, given)
        if self._order.is_spark:
            return explain_end_of_spark(ending, tail, self._order.spark)
        if self._order.program:
            return explain_end_of_program(ending, is_service=self._order.is_service)
        return explain_end_of_server(ending) if self._order.runs_server else ending

    def _start(self, inherited: Mapping[str, str], output: int, spool: Spool) -> Script:
        command = launch.command(self._settings, self._order, self._folders)
        environment = launch.environment(self._settings, self._order, self._folders, inherited)
        keras_home.lead_there(environment, self._settings.work_dir)
        try:
            if self._order.is_spark:
                environment.update(spark.variables(self._settings, self._order, self._folders, environment))
            elif self._order.program:
                environment.update(spark.variables_of_session(self._settings, self._order))
            if self._order.is_service:
                self._gate = self._open_gate()
                environment[VARIABLE] = self._gate.socket_path
            narrowed = spark.listening(self._settings.listening(partial(_say, spool)), self._order)
            script = Script.start(command, environment, self._folders.code, output, narrowed)
            script.spared = self._shells.processes
            if not self._order.program:
                self._shells.begin(environment, self._folders.code, narrowed)
            return script
        except OSError as error:
            self._close_gate()
            raise CannotRun(STAGE_IN_FAILED, "StageInFailed", "it cannot be started: %s" % error) from error
        finally:
            os.close(output)

    def _event_sync(self, spool: Spool) -> Optional[EventSync]:
        """Of a TensorBoard or a Spark history: what brings the files that it shows."""
        if self._order.program not in READERS:
            return None
        scratch = os.path.join(self._settings.work_dir, "events-in")
        most = int(self._order.options["bytes"])
        return EventSync(self._api, self._folders.data, scratch, most, partial(_say, spool))

    def _grant_watch(self, spool: Spool) -> Optional[GrantWatch]:
        """Of a driver on a registered Spark cluster. Notebooks ask for executors when they compute, and return them."""
        if not self._order.is_spark or self._order.spark is None:
            return None
        return GrantWatch(self._settings.work_dir, self._order.spark, partial(_say, spool), self._facts.executors)

    def _open_gate(self) -> Gate:
        """Raises `CannotRun` where it cannot listen: another program may have taken the port, and leave it again."""
        settings = self._settings
        with open(settings.token_file, encoding="utf-8") as file:
            key = service_token(file.read().strip())
        address = settings.cluster[settings.role][settings.index]
        try:
            return Gate(address, key, settings.work_dir)
        except OSError as error:
            message = "the service cannot listen at %s: %s" % (address, error)
            raise CannotRun(1, "ServerEnded", message) from error

    def _close_gate(self) -> None:
        if self._gate is not None:
            self._gate.close()

    def _event_files(self) -> Optional[EventFiles]:
        """None where another task reads them."""
        if not task_outputs.reads_events(self._settings, self._order):
            return None
        elsewhere = no_files if self._working is None else self._working.event_files
        others = no_others if self._summaries is None else self._summaries.take
        return EventFiles(self._folders.log, elsewhere, others)

    def _find_model(self, is_finished: bool) -> Optional[RelativeModel]:
        return None if self._working is None else self._working.find_model(is_finished=is_finished)

    def _name_left_out(self, spool: Spool) -> None:
        """Say which files of the working folder are not kept, before they go with it."""
        if self._working is None:
            return
        if self._model is not None and (self._is_finished or self._was_stopped):
            self._working.model = self._model.found_elsewhere(is_finished=self._is_finished)
        left_out = self._working.left_out()
        if left_out:
            _say(spool, left_out)
            self._facts.unsaved("left_out", left_out)

    def _uploader(self, patience: float = PORTAL_MAY_BE_AWAY) -> Uploader:
        return Uploader(self._api, self._api.portal.hosts, Patience(patience, self._haste))

    def _watch_stalls(self, intake: Intake, spool: Spool, script: Script) -> None:
        """Have the script write where it stands: where it has come to stand still, and when a user asks."""
        quiet = "no progress, output or processor use for %d s: where its threads stand follows" % QUIET
        watch = StallWatch(
            lambda: intake.output, self._progress.facts, partial(_write_stacks, spool, script.pid, quiet)
        )
        if self._may_stall():
            self._observer.stalls = watch

        def write() -> None:
            watch.expect_stacks()
            _write_stacks(spool, script.pid, "a user asks where its threads stand")

        self.stacks.write = write

    def _may_stall(self) -> bool:
        """Servers and evaluators wait for others, as long as it takes; so do the workers of a coordinator."""
        is_led = self._order.strategy == PARAMETER_SERVER and self._settings.role == "worker"
        is_server = self._order.runs_server or self._order.is_service or bool(self._order.program)
        return not is_server and not is_led and self._settings.role in ("chief", "worker", "driver")


def _say(spool: Spool, text: str) -> None:
    """A line of ours in the log of the script."""
    spool.append(("yardmaster: %s\n" % text).encode("utf-8", "replace"), now_ms())


def _write_stacks(spool: Spool, script: int, why: str) -> None:
    """Have the script write where it stands to its log."""
    _say(spool, why)
    if not write_stacks(script):
        _say(spool, "this script cannot be asked for the stacks of its threads")


def _may_wait(shipping: ShipperThread, switch: StopSwitch) -> bool:
    """Whether a script that prints faster than its lines are taken is held up: as long as the portal answers, however
    slowly, but never past the middle of the grace period, so that a script that is to end can. A log that is full drops
    the lines anyway."""
    return not (shipping.shipper.full or shipping.shipper.is_away or switch.is_urgent)
