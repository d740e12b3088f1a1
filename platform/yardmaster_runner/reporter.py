"""Tells the portal how the task is, every two seconds at most, and hears whether it is to stop.

The latest facts win while the portal is away; scalars are kept (up to a bound) and sent when it is back.
"""

from __future__ import annotations

import threading
import time
import traceback
from typing import Any, Callable, Dict, List, Optional, Tuple

from yardmaster_runner.answers import PortalAway, PortalRefused, PortalRejected
from yardmaster_runner.events import Scalar
from yardmaster_runner.exits import Ending, note
from yardmaster_runner.nudges import Nudges
from yardmaster_runner.patience import Backoff, Patience
from yardmaster_runner.spark.granted import Wait
from yardmaster_runner.stalls import Stall
from yardmaster_runner.task_api import TaskApi, Wishes

AT_MOST_EVERY = 2.0  # a report costs the portal 10 ms: on one machine the job's own tasks would feel more of them
AT_LEAST_EVERY = 5.0
NUDGED_EVERY = 0.4
"""However often the file is changed, which the script may do as well."""
LAST_EVERY = 0.2
SCALARS_PER_REPORT = 1000
SCALARS_KEPT = 200_000
LONGEST_PROBLEM = 1_000


class Facts:
    """What is to be reported. May be changed from any thread; `take` and `give_back` are the reporter's."""

    def __init__(self, restart: int) -> None:
        self._lock = threading.Lock()
        self._facts: Dict[str, Any] = {"restart": restart, "state": "staging"}
        self._scalars: Dict[Tuple[str, str, int], Scalar] = {}
        self.masked: Callable[[str], str] = str
        """Takes secrets out of messages; set once the task's order is known."""
        self.is_watched = False
        """Whether a TensorBoard shows the job now, as the portal said last."""
        self.is_followed = False
        """Whether its log is being read as it comes, as the portal said last."""
        self.changed = threading.Event()
        self.changed.set()

    def state(self, state: str) -> None:
        """`staging`, `running` or `uploading`: to be reported soon."""
        self._put({"state": state}, is_urgent=True)

    def ended(self, ending: Ending) -> None:
        self._put({"state": "ended", **_how_it_ended(ending)}, is_urgent=True)

    def held(self, ending: Ending, until: float) -> None:
        """Its script has ended so, and the task is held open until then (Unix time)."""
        self._put({"state": "held", "held_until": until, **_how_it_ended(ending)}, is_urgent=True)

    def progress(self, progress: Dict[str, int]) -> None:
        if progress and progress != self._facts.get("progress"):
            self._put({"progress": progress}, is_urgent=True)

    def unsaved(self, what: str, problem: str) -> None:
        """Why `outputs` or the `model` are not saved, and which outputs are `left_out`; an empty text when all are."""
        with self._lock:
            self._facts["unsaved"] = {**self._facts.get("unsaved", {}), what: self.masked(problem)[:LONGEST_PROBLEM]}
        self.changed.set()

    def stalled(self, stall: Optional[Stall]) -> None:
        """Since when the script stands still; None while it does not."""
        said = None if stall is None else {"since": stall.since, "peer": self.masked(stall.peer)}
        if said != self._facts.get("stalled"):
            self._put({"stalled": said}, is_urgent=True)

    def executors(self, wait: Optional[Wait]) -> None:
        """That executors of a registered Spark cluster lack; None while none do."""
        said = None if wait is None else {"given": wait.given, "wanted": wait.wanted, "since": wait.since}
        self._put({"executors": said}, is_urgent=True)

    def usage(self, cpu_seconds: float, memory: int, peak_memory: int) -> None:
        usage = {"cpu_seconds": cpu_seconds, "memory": memory, "peak_memory": peak_memory}
        self._put({"usage": usage}, is_urgent=False)

    def scalars(self, scalars: List[Scalar]) -> None:
        """A later value of the same run, tag and step wins. Past the bound the oldest go."""
        if not scalars:
            return
        with self._lock:
            for one in scalars:
                self._scalars[one.run, one.tag, one.step] = one
            while len(self._scalars) > SCALARS_KEPT:
                del self._scalars[next(iter(self._scalars))]
        self.changed.set()

    def take(self) -> Tuple[Dict[str, Any], List[Scalar]]:
        """The facts as they are now, and the scalars that fit into one report."""
        with self._lock:
            keys = [key for key, _ in zip(self._scalars, range(SCALARS_PER_REPORT))]
            return dict(self._facts), [self._scalars.pop(key) for key in keys]

    def give_back(self, scalars: List[Scalar]) -> None:
        """They could not be determined. Newer values of the same points stay."""
        with self._lock:
            self._scalars = {**{(one.run, one.tag, one.step): one for one in scalars}, **self._scalars}

    @property
    def has_scalars(self) -> bool:
        return bool(self._scalars)

    def _put(self, facts: Dict[str, Any], *, is_urgent: bool) -> None:
        with self._lock:
            self._facts.update(facts)
        if is_urgent:
            self.changed.set()


def _how_it_ended(ending: Ending) -> Dict[str, Any]:
    said = (("reason", ending.reason), ("message", ending.message))
    return {"exit_code": ending.exit_code, **{name: value for name, value in said if value}}


class Reporter(threading.Thread):
    """Reports until told to finish. `on_stop` is called (once) when the portal wants the script to stop, `on_wishes`
    with each answer."""

    def __init__(
        self,
        facts: Facts,
        api: TaskApi,
        on_stop: Callable[[], None],
        on_wishes: Callable[[Wishes], None],
        nudge_file: str = "",
    ) -> None:
        super().__init__(name="reporter", daemon=True)
        self._facts = facts
        self._api = api
        self._on_stop = on_stop
        self._on_wishes = on_wishes
        self._nudges = Nudges(nudge_file)
        self._was_stopped = False
        self._backoff = Backoff(first=AT_MOST_EVERY)
        self._farewell: Optional[Patience] = None
        self._finishing = threading.Event()
        self._said = ""

    def finish(self, farewell: Patience) -> None:
        """Tell what is left to tell while there is patience, at least try once, then end. Returns at once."""
        self._farewell = farewell
        self._finishing.set()
        self._facts.changed.set()

    def run(self) -> None:
        while True:
            self._nudges.wait(self._facts.changed, AT_LEAST_EVERY - AT_MOST_EVERY)
            farewell = self._farewell
            self._facts.changed.clear()
            try:
                is_reported = self.report_once()
            except Exception:  # noqa: BLE001 - the script must run on whatever goes wrong here
                note("reporting failed:\n" + traceback.format_exc())
                is_reported = False
            if farewell is not None:
                if is_reported:
                    farewell.worked()
                if (is_reported and not self._facts.has_scalars) or not farewell.may_go_on():
                    return
                self._facts.changed.set()
            pause = AT_MOST_EVERY if is_reported else self._backoff.next()
            if farewell is not None:
                time.sleep(min(pause, LAST_EVERY))
            else:
                self._finishing.wait(min(pause, NUDGED_EVERY))
                if self._nudges.wait(self._finishing, pause - NUDGED_EVERY):
                    self._facts.changed.set()

    def report_once(self) -> bool:
        """One report; whether the portal took it."""
        facts, scalars = self._facts.take()
        if scalars:
            facts["scalars"] = [one.as_json() for one in scalars]
            self._facts.changed.set()
        try:
            wishes = self._api.report(facts)
            self._facts.is_watched, self._facts.is_followed = wishes.watched, wishes.followed
        except (PortalAway, PortalRefused) as error:
            self._facts.give_back(scalars)
            self._say("a report was not taken: %s" % error)
            return False
        except PortalRejected as error:
            self._say("a report was refused: %s" % error)
            return not scalars  # sent again it would be refused again; without its scalars it may be taken
        self._backoff.reset()
        self._said = ""
        if wishes.stop and not self._was_stopped:
            self._was_stopped = True
            self._on_stop()
        self._on_wishes(wishes)
        return True

    def _say(self, trouble: str) -> None:
        """Once, not every few seconds for an hour."""
        if trouble != self._said:
            self._said = trouble
            note(trouble)
