"""Why a job failed, in words that help. A verdict has a stable reason, one sentence, and a remedy.

Not here: when a job has failed (`success`, `plan`), and what a script's last words mean (`tracebacks`). The table of
reasons is the whole vocabulary: engines and the runner use these words and no others.
"""

from __future__ import annotations

import signal
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType

from yardmaster.job.spec import Role
from yardmaster.lifecycle.ignite_words import IGNITE
from yardmaster.lifecycle.image_words import IMAGES
from yardmaster.lifecycle.phases import TaskState
from yardmaster.lifecycle.placing_words import PLACING
from yardmaster.lifecycle.spark_words import REGISTERED, SPARK
from yardmaster.quantity import format_bytes

__all__ = ["REASONS", "Blame", "Reason", "Verdict", "reason_of_exit", "task_name", "verdict_for"]

EXIT_STAGE_IN_FAILED = 90
EXIT_PORTAL_UNREACHABLE = 91
EXIT_TOKEN_REFUSED = 92
EXIT_NOT_PUBLISHED = 93
EXIT_PACKAGES_FAILED = 94
_LONGEST_SAID = 300
_LONGEST_SENTENCES = 600


class Blame(StrEnum):
    """Whose a failure is: the script's author, the platform's, or a limit that was set."""

    USER = "user"
    PLATFORM = "platform"
    LIMIT = "limit"


@dataclass(frozen=True)
class Verdict:
    """Why the job ended as it did. `role`/`index` name the task that decided it, where one did."""

    reason: str
    message: str
    remedy: str = ""
    blame: Blame = Blame.USER
    role: Role | None = None
    index: int | None = None
    exit_code: int | None = None


@dataclass(frozen=True)
class Reason:
    """One word of the vocabulary. `sentence` may use {task}, {exit} ("exit code 1"), {signal}, {peak} and {said}: the
    engine's message, which follows the sentence where it is not used in it.

    `permanent`: starting the same task again cannot help, so no restart is spent on it.
    """

    blame: Blame
    title: str
    sentence: str
    remedy: str
    permanent: bool = False


_USER, _PLATFORM, _LIMIT = Blame.USER, Blame.PLATFORM, Blame.LIMIT

REASONS: Mapping[str, Reason] = MappingProxyType(
    {
        # The script's own.
        "ScriptFailed": Reason(
            _USER,
            "The script failed",
            "{task} failed with {exit}.",
            "Read the last traceback at the end of its log.",
        ),
        "ScriptNotFound": Reason(
            _USER,
            "Entry point not found",
            "{task} could not start: the entry point is not in the code version.",
            "Check the entry point's path, relative to the top of the code, and relaunch.",
            permanent=True,
        ),
        "ImportFailed": Reason(
            _USER,
            "An import failed",
            "{task} failed with {exit}: a module that the script imports could not be imported.",
            "Add the module to the code version, or use one that the task environment has.",
            permanent=True,
        ),
        "SyntaxError": Reason(
            _USER,
            "The script is not valid Python",
            "{task} failed with {exit}: Python could not parse the script.",
            "Correct the line that the log names, upload the code again and launch with the new version.",
            permanent=True,
        ),
        "CodeError": Reason(
            _USER,
            "The script has an error",
            "{task} failed because of an error in the script ({said}). Restarting cannot help.",
            "Correct the line that the end of its log names, then edit and relaunch with the new code version.",
            permanent=True,
        ),
        "BadArguments": Reason(
            _USER,
            "The script refused its arguments",
            "{task} refused its arguments ({said}). Restarting cannot help.",
            "Compare the job's arguments and path flags with those that the script defines, then edit and relaunch.",
            permanent=True,
        ),
        "FileMissing": Reason(
            _USER,
            "A file is missing",
            "{task} did not find a file in its code or inputs ({said}). Restarting cannot help.",
            "Add the file to the code version, or attach the dataset that has it, then edit and relaunch.",
            permanent=True,
        ),
        "BadData": Reason(
            _USER,
            "The data cannot be read",
            "{task} cannot read its input ({said}). Restarting cannot help.",
            "Correct the file and row that are named and upload a new version; or relaunch with bad records skipped.",
            permanent=True,
        ),
        "PackagesFailed": Reason(
            _USER,
            "The packages could not be installed",
            "{task} could not install what its code needs.",
            "Correct requirements.txt, or the job's requirements, then edit and relaunch.",
            permanent=True,
        ),
        "NotPublished": Reason(
            _LIMIT,
            "The output was not uploaded",
            "{task} ended well, but its output could not be uploaded ({said}).",
            "Free storage in the namespace or ask for more, then relaunch: without all of it nothing is published.",
            permanent=True,
        ),
        "SameFailure": Reason(
            _USER,
            "Failed the same way twice",
            "{task} failed the same way twice ({said}) and made no progress in between. Restarting cannot help.",
            "Correct the cause shown at the end of its log, then edit and relaunch.",
            permanent=True,
        ),
        "ServerEnded": Reason(
            _PLATFORM,
            "A server exited",
            "{task} exited with {exit}, but a server runs until it is stopped.",
            "Read the end of its log. A client's request may have caused it; otherwise relaunch.",
        ),
        "ModelNotLoaded": Reason(
            _USER,
            "The model cannot be loaded",
            "{task} could not serve the model ({said}). Restarting cannot help.",
            "Export the model again as a SavedModel with a signature, or as a .keras file, with the TensorFlow of the "
            "task environment.",
            permanent=True,
        ),
        "NoTensorFlow": Reason(
            _PLATFORM,
            "TensorFlow is missing",
            "{task} could not serve: TensorFlow cannot be imported in its environment.",
            "Ask an administrator for a task environment that has TensorFlow.",
            permanent=True,
        ),
        "NoJupyterLab": Reason(
            _PLATFORM,
            "JupyterLab is missing",
            "{task} could not start: its Python has no JupyterLab.",
            "Ask an administrator to set YARDMASTER_KUBERNETES_WORKBENCH_IMAGE, or on one machine to run make setup.",
            permanent=True,
        ),
        "Killed": Reason(
            _USER,
            "Killed by a signal",
            "{task} was killed by {signal}{peak}.",
            "SIGKILL usually means that the system ran out of memory; SIGSEGV and SIGABRT are crashes in native code. "
            "Request more memory, or run a single task to reproduce the crash.",
        ),
        "RestartsSpent": Reason(
            _USER,
            "No restarts left",
            "{task} failed again ({exit}). No restarts left.",
            "Correct the cause shown in its log. If the machine is unreliable, allow more restarts.",
        ),
        # A limit that was set.
        "OutOfMemory": Reason(
            _LIMIT,
            "Out of memory",
            "{task} exceeded its memory limit ({exit}{peak}).",
            "Request more memory for this role, or use a smaller batch or shuffle buffer.",
            permanent=True,
        ),
        "DiskFull": Reason(
            _LIMIT,
            "No space left",
            "{task} stopped because no disk space was left ({exit}).",
            "Write less (fewer checkpoints kept, smaller event files), or ask an administrator for space.",
        ),
        "ScratchExceeded": Reason(
            _LIMIT,
            "Disk limit exceeded",
            "{task} exceeded its disk limit ({said}). Restarting cannot help.",
            "Write less to the task's folders: keep fewer checkpoints, delete temporary files, read inputs where they "
            "lie. Or ask an administrator to raise what a task may write.",
            permanent=True,
        ),
        "DeadlineExceeded": Reason(
            _LIMIT,
            "Time limit reached",
            "{task} was stopped because the job reached its time limit.",
            "Raise max_runtime, or train less per job and resume from the checkpoint.",
        ),
        "QuotaRefused": Reason(
            _LIMIT,
            "The cluster's quota is used up",
            "{task} could not start: the cluster's own quota for the namespace is used up.",
            "Wait until other jobs of the namespace have ended, or ask an administrator to compare the quota of the "
            "cluster with that of the portal.",
        ),
        "StartTimeout": Reason(
            _LIMIT,
            "Not started in time",
            "{task} had not started when the start timeout expired.",
            "See the task's events. If the engine was full, relaunch.",
        ),
        # The data's.
        "CorruptInput": Reason(
            _USER,
            "An input is corrupt",
            "{task} could not start: a file of its input does not match its checksum.",
            "Run the dataset's check, upload the damaged files as a new version and launch with it.",
            permanent=True,
        ),
        "SecretUnavailable": Reason(
            _USER,
            "A secret is not available",
            "{task} could not start: a secret of the job is not available ({said}).",
            "Set the secret again on the page of the namespace's secrets, then retry the job.",
            permanent=True,
        ),
        "InputChanged": Reason(
            _USER,
            "An input was changed in its bucket",
            "{task} could not start: a file of a registered bucket is not what was registered ({said}).",
            "Scan the dataset again, then relaunch with its new version.",
            permanent=True,
        ),
        "StageInFailed": Reason(
            _PLATFORM,
            "Inputs could not be fetched",
            "{task} could not start: its code or inputs could not be fetched.",
            "Relaunch. If it repeats, check that the code and dataset versions still exist.",
            permanent=True,
        ),
        "UploadFailed": Reason(
            _PLATFORM,
            "Results could not be saved",
            "{task} completed, but its model or checkpoint could not be stored.",
            "See whether the namespace's storage quota is used up, then relaunch from the last checkpoint.",
        ),
        # The platform's.
        **{word: Reason(_PLATFORM, *texts) for word, texts in IMAGES.items()},
        **{word: Reason(_PLATFORM, *texts) for word, texts in PLACING.items()},
        **{word: Reason(_USER, *texts) for word, texts in SPARK.items()},
        **{word: Reason(_PLATFORM, *texts) for word, texts in {**REGISTERED, **IGNITE}.items()},
        "Evicted": Reason(
            _PLATFORM,
            "Evicted from its machine",
            "{task} was evicted from its machine{peak}.",
            "Relaunch; it resumes from the last checkpoint. If it repeats, ask for the memory it really needs.",
        ),
        "Lost": Reason(
            _PLATFORM,
            "Lost",
            "{task} disappeared without an exit status.",
            "Relaunch; it resumes from the last checkpoint. If it repeats, ask an administrator to check the engine.",
        ),
        "StoppedOutside": Reason(
            _PLATFORM,
            "Stopped from outside",
            "{task} was stopped on the engine, but not through Yardmaster.",
            "Ask who stopped it, then relaunch; it resumes from the last checkpoint.",
        ),
        "StartFailed": Reason(
            _PLATFORM,
            "The task could not be started",
            "{task} could not be started by the engine.",
            "Ask an administrator to check the engine's own message.",
        ),
        "EngineUnavailable": Reason(
            _PLATFORM,
            "The engine was not available",
            "{task} could not be reached on its engine.",
            "Ask an administrator to check the engine. When it is back, its tasks are removed; then relaunch.",
        ),
        "PortalUnreachable": Reason(
            _PLATFORM,
            "The portal could not be reached",
            "{task} could not start: it could not connect to the portal within ten minutes.",
            "Ask an administrator to check the portal's address as seen from the tasks (YARDMASTER_URL).",
        ),
        "TokenRefused": Reason(
            _PLATFORM,
            "The job's token was refused",
            "{task} could not continue: the portal refused the job's token.",
            "Relaunch. If it repeats, ask an administrator to compare the clocks of engine and portal.",
            permanent=True,
        ),
    }
)
"""Stable word → whose it is, title, sentence, remedy. Words are added, never renamed."""

_OF_THE_RUNNER = {
    EXIT_STAGE_IN_FAILED: "StageInFailed",
    EXIT_PORTAL_UNREACHABLE: "PortalUnreachable",
    EXIT_TOKEN_REFUSED: "TokenRefused",
    EXIT_NOT_PUBLISHED: "NotPublished",
    EXIT_PACKAGES_FAILED: "PackagesFailed",
}
_ROLE_NAMES = {
    Role.CHIEF: "The chief", Role.WORKER: "Worker", Role.PS: "Parameter server", Role.EVALUATOR: "The evaluator",
    Role.DRIVER: "The driver", Role.EXECUTOR: "Executor",
}  # fmt: skip


def task_name(role: Role, index: int) -> str:
    """`Worker 1`, `Parameter server 0`, `The chief`: fit to begin a sentence."""
    name = _ROLE_NAMES[role]
    return name if name.startswith("The ") and index == 0 else f"{name.removeprefix('The ').capitalize()} {index}"


def reason_of_exit(exit_code: int | None) -> str:
    """The reason that an exit code alone tells. 137 without a better word is a kill, not known to be memory."""
    if exit_code is None:
        return "Lost"
    of_the_script = "Killed" if signal_of(exit_code) is not None else "ScriptFailed"
    return _OF_THE_RUNNER.get(exit_code, of_the_script)


def signal_of(exit_code: int | None) -> int | None:
    """The signal that an exit code of 128 + N (or Python's -N) stands for."""
    if exit_code is None:
        return None
    number = exit_code - 128 if exit_code > 128 else -exit_code
    return number if 0 < number <= 64 else None


def verdict_for(task: TaskState) -> Verdict:
    """Why the job failed, given the task that failed it. The engine's own message is kept, after our sentence."""
    word = task.reason if task.reason in REASONS else reason_of_exit(task.exit_code)
    known = REASONS[word]
    ending = "no exit code" if task.exit_code is None else f"exit code {task.exit_code}"
    sentence = known.sentence.format(
        task=task_name(task.role, task.index),
        exit=ending,
        signal=_signal_name(task.exit_code),
        peak=_peak(task),
        said=_in_brackets(task.message) or ending,
    )
    if task.message.strip() and "{said}" not in known.sentence:
        sentence += f" {_as_sentence(task.message.strip())}"
    return Verdict(word, sentence, known.remedy, known.blame, task.role, task.index, task.exit_code)


def _peak(task: TaskState) -> str:
    """The most memory it held, unless the engine's message tells it."""
    words = "" if task.peak_memory is None else format_bytes(task.peak_memory)
    return f", peak memory {words}" if words and words not in task.message else ""


def _in_brackets(message: str) -> str:
    """Short, without its last full stop, cut after a sentence if at all: what helps often stands in the second one."""
    text = message.strip()
    if len(text) <= _LONGEST_SENTENCES and (len(text) <= _LONGEST_SAID or ". " in text):
        return text.rstrip(".")
    end = text.rfind(". ", 0, _LONGEST_SENTENCES)
    return text[:end] + " …" if end > 0 else text[: _LONGEST_SAID - 1].rstrip() + "…"


def _as_sentence(text: str) -> str:
    """Begun as a sentence, unless it begins with a name (`module.Error: …`), and ended as one."""
    begun = text[0].upper() + text[1:] if text.partition(" ")[0].isalpha() else text
    return begun if begun.endswith((".", "!", "?", "…")) else f"{begun}."


def _signal_name(exit_code: int | None) -> str:
    number = signal_of(exit_code)
    if number is None:
        return "a signal"
    try:
        return f"signal {number} ({signal.Signals(number).name})"
    except ValueError:
        return f"signal {number}"
