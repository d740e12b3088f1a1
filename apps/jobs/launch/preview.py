"""What is shown beside the fields of the launch form: whether the job would run, what the cluster is, what the folded
sections hold. What would become of the job is asked of `checking`.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace

from apps.accounts.models import User
from apps.errors import DomainError
from apps.jobs.checking import JobCheck, job_check
from apps.jobs.explanations.row_words import count_words
from apps.jobs.launch.forms import LaunchForm
from apps.jobs.launch.parts import Fault, Values
from apps.namespaces.models import Namespace
from yardmaster.code.findings import Finding
from yardmaster.errors import Problem, SpecRejected, YardmasterError
from yardmaster.job.spec import AUTO, DEFAULT_MEMORY, TrainingSpec
from yardmaster.job.strategy import runs_script
from yardmaster.quantity import NotAQuantity, format_bytes, parse_memory
from yardmaster.queueing.admission import Decision, Fit
from yardmaster.queueing.pools import Shortage

REQUIRED = ("name", "code", "entry_point", "command")


@dataclass(frozen=True)
class Verdict:
    """`kind`: `fits`, `waits`, `never`, `incomplete` (the job is not valid yet) or `refused` (not by you, not here)."""

    kind: str
    word: str
    message: str
    remedy: str = ""
    icon: str = field(default="", kw_only=True)
    lacks: Sequence[Shortage] = ()
    shape: str = ""
    """The largest shape that would start now, as the form takes it; empty where there is none."""
    shape_words: str = ""
    general: Sequence[str] = ()
    """What is wrong with no field of its own."""
    faults: Sequence[Fault] = ()
    warnings: Sequence[Finding] = ()
    passed: str = ""
    """Which flags the tasks get with their directories, in words; empty: none."""


def verdict_of(user: User, namespace: Namespace, form: LaunchForm, untouched: Collection[str] = ()) -> Verdict:
    """What would become of the job. Adds to the form what is wrong with it; required fields that are empty and
    `untouched` so far are not listed. Never raises for what people can do."""
    try:
        found = job_check(user=user, namespace=namespace, data=form.spec, engine=form.texts()["engine"] or None)
    except DomainError as problem:
        return Verdict("refused", "Not allowed", problem.detail, problem.remedy, icon="lock")
    except SpecRejected as error:
        return _incomplete(form, error.problems, untouched)
    except YardmasterError as error:
        return Verdict("refused", "Unknown", error.message, error.remedy or "Try again soon.", icon="plug-off")
    if found.problems or not form.is_valid():
        return _incomplete(form, found.problems, untouched)
    return _shown(found)


def verdict_of_decision(found: Decision) -> Verdict:
    """What admission says of a job that does not fit now. `shape` is the largest that would; of one that can never
    start, before it is queued all the same, the largest that could if nothing ran."""
    ahead = found.position
    verdict = (
        Verdict("waits", f"Waits behind {ahead}" if ahead else "Waits", found.message, found.remedy, icon="hourglass")
        if found.fit is Fit.WAITS
        else Verdict("never", "Can never start", found.message, found.remedy, icon="ban")
    )
    shape = found.largest_fit or {}
    return replace(
        verdict,
        lacks=found.numbers,
        shape=",".join(f"{role.value}={count}" for role, count in shape.items()),
        shape_words=", ".join(count_words(role.value, count) for role, count in shape.items()),
    )


def _incomplete(form: LaunchForm, problems: Sequence[Problem], untouched: Collection[str]) -> Verdict:
    form.is_valid()
    form.add_problems(problems)
    waiting = {form[name].auto_id for name in REQUIRED if name in untouched and not form.texts()[name].strip()}
    general = [str(one) for one in form.non_field_errors()]
    faults = [one for one in form.faults if one.id not in waiting]
    count = len(general) + len(faults)
    message = "1 field needs a correction." if count == 1 else f"{count} fields need a correction."
    if not count:
        message = "Fill in the required fields first."
    return Verdict("incomplete", "Not complete", message, icon="pencil", general=general, faults=faults)


def _shown(found: JobCheck) -> Verdict:
    passed = "" if found.spec is None else _passed(found.spec)
    if found.decision.fit is Fit.FITS_NOW:
        message = "It would start now." if not found.warnings else "It would start now. Read the notes below first."
        return Verdict("fits", "Fits now", message, icon="circle-check", warnings=found.warnings, passed=passed)
    return replace(verdict_of_decision(found.decision), warnings=found.warnings, passed=passed)


def _passed(spec: TrainingSpec) -> str:
    if not runs_script(spec):
        return ""
    meant: dict[str, list[str]] = {}
    for kind, words in (("data", "the data"), ("log", "logs and checkpoints"), ("model", "the model")):
        if flag := getattr(spec.paths, f"{kind}_flag"):
            meant.setdefault(flag, []).append(words)
    return ", ".join(f"{flag} ({' and '.join(words)})" for flag, words in meant.items())


@dataclass(frozen=True)
class Preset:
    """A training strategy, as the first choice of the form."""

    strategy: str
    title: str
    text: str
    icon: str


PRESETS = (
    Preset("single", "Single task", "One script on one machine. The simplest way to a model.", icon="player-play"),
    Preset(
        "between_graph",
        "Parameter server (between-graph)",
        "Parameter servers hold the variables. Each worker trains on its own.",
        icon="server-2",
    ),
    Preset(
        "parameter_server",
        "ParameterServerStrategy",
        "TensorFlow 2: a chief schedules the steps on the workers.",
        icon="sitemap",
    ),
    Preset(
        "multi_worker_mirrored",
        "MultiWorkerMirroredStrategy",
        "Each worker has a copy of the model. All workers train in step.",
        icon="copy",
    ),
    Preset(
        "in_graph",
        "TensorFlow servers only (in-graph)",
        "No script: plain TensorFlow servers for a program of your own, such as a notebook.",
        icon="terminal-2",
    ),
    Preset(
        "batch",
        "Independent tasks (batch)",
        "Each worker does its own part: no servers, and all of them must complete.",
        icon="stack-2",
    ),
    Preset(
        "spark",
        "Spark",
        "The script is the driver of a Spark application, for example with TensorFlowOnSpark.",
        icon="bolt",
    ),
)


def cluster_words(form: LaunchForm) -> str:
    """The picture of the cluster, in a sentence."""
    counts = {role.role: role.count for role in form.roles}
    said = [
        count_words(role, counts[role])
        for role in ("chief", "ps", "worker", "evaluator", "driver", "executor")
        if counts.get(role)
    ]
    everything = ", ".join(said) or "nothing yet"
    owners = "the parameter server" if counts.get("ps") == 1 else "the parameter servers"
    match form.texts()["strategy"]:
        case "single":
            return "One task that runs the script."
        case "between_graph":
            who = "the worker trains and sends its" if counts.get("worker") == 1 else "the workers train and send their"
            return f"{everything}: {who} gradients to {owners}."
        case "parameter_server":
            return f"{everything}: the chief schedules the steps, and the variables live on {owners}."
        case "multi_worker_mirrored":
            return f"{everything}: after every step all of them average their gradients."
        case "in_graph":
            return f"{everything}: they serve until they are stopped, and your own program drives them."
        case "batch":
            return f"{everything}: each runs the script with its own YARDMASTER_INDEX, and none knows of the others."
        case "spark":
            where = f" on the Spark cluster {form.texts()['spark_cluster']}" if form.has_cluster else ""
            return f"{everything}: the driver runs the script, and gives work to the executors{where}."
    return f"{everything}."


def summaries(form: LaunchForm) -> dict[str, str]:
    """What the folded sections of this form hold, in a few words each, by the section's name."""
    texts, named = form.texts(), [path for path in form.paths.texts().values() if path]
    paths = [*(["flags of the script"] if AUTO in named else []), *(path for path in named if path != AUTO)]
    takes = form.runs_script and not form.has_command
    read = form.spec.get("arguments", []) if takes else []
    arguments = len(read) if isinstance(read, list) else 1
    packages = len(form.said().get("requirements") or ()) if form.runs_script else 0
    counts = ((arguments, "argument"), (packages, "package"), (len(form.environment.filled()), "variable"))
    script = [f"{count} {noun}{'s' if count != 1 else ''}" for count, noun in counts if count]
    limit = texts["max_runtime"].strip()
    said = {
        "resources": " · ".join(_resources(role.role, role.texts()) for role in form.roles if role.is_meant),
        "script": ", ".join(script) or "none",
        "limits": f"{texts['retries'] or '3'} restarts, {f'at most {limit}' if limit else 'no time limit'}",
        "success": _success(form),
        "place": f"in {texts['namespace']}" + (f", on {texts['engine']}" if texts["engine"] else ""),
    }
    if form.runs_script:
        named = [row.texts()["name"] for row in form.secrets.filled()]
        said["secrets"] = ", ".join(named[:3]) + (" …" if len(named) > 3 else "") if named else "none"
        said["paths"] = ", ".join(paths[:3]) + (" …" if len(paths) > 3 else "") if paths else "none"
    return said


def _resources(role: str, texts: Values) -> str:
    try:
        memory = format_bytes(parse_memory(texts["memory"]) if texts["memory"] else DEFAULT_MEMORY)
    except NotAQuantity:
        memory = texts["memory"][:20]
    gpus = f", {texts['gpus']} GPU" if texts["gpus"] not in ("", "0") else ""
    return f"{role}: {texts['cpu'] or '1'} CPU, {memory}{gpus}"


def _success(form: LaunchForm) -> str:
    if not form.runs_script:
        return "never: it runs until it is stopped"
    if form.texts()["strategy"] == "spark":
        return "when the driver has completed"
    texts = form.success.texts()
    if texts["rule"] == "chief" or not form.percent_matters:
        return "when the chief has completed"
    percent = texts["percent"].strip() or "100"
    return "when all workers have completed" if percent == "100" else f"when {percent} % of the workers have completed"
