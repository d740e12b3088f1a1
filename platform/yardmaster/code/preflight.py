"""What will most likely go wrong when this code is launched as this job, said before it is launched.

The code is parsed, never run, so a finding is a guess, but for those of severity `error`. A check that often cries wolf
is worse than none: each asks for positive signs, and says what to do. Not here: what is wrong with the specification
itself (`spec_rules`), and how scripts are read (`script_facts`).
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import islice

from yardmaster.code.data_paths import foreign_paths, foreign_variables, s3_paths, streamed_unread
from yardmaster.code.downloads import downloads
from yardmaster.code.entry_files import entry_file, module_name
from yardmaster.code.findings import Finding, Fix, Severity, warn
from yardmaster.code.notebooks import notebook_magics, notebook_source
from yardmaster.code.old_tensorflow import old_tensorflow
from yardmaster.code.own_module import relative_imports
from yardmaster.code.packages import missing_packages, useless_packages
from yardmaster.code.path_flags import (
    doubled_flags,
    joined_arguments,
    missing_flags,
    no_inputs,
    unclear_flags,
    unknown_flags,
    with_flags,
)
from yardmaster.code.requirement_files import asked_for
from yardmaster.code.script_facts import Call, Facts, Location, Unreadable, read_script
from yardmaster.code.strategy_signs import SAID_BY_IT, wrong_strategy
from yardmaster.code.surroundings import Surroundings, own_names
from yardmaster.job.programs import PROGRAMS
from yardmaster.job.spec import Strategy, TrainingSpec
from yardmaster.job.spec_limits import shorten
from yardmaster.job.strategy import is_service, is_spark, only_serves, runs_script
from yardmaster_runner.entry_point import files_of_module, is_notebook, module_of

_MOST_OF_ONE_KIND = 5
_LONGEST_GUESS, _MOST_GUESSES = 100, 500
"""Comparing two paths takes time that grows with the square of their length."""
LEGACY_KERAS = "TF_USE_LEGACY_KERAS"


@dataclass(frozen=True)
class Examination:
    """What was found, and the specification as it is to be launched: with the flags that `auto` stands for."""

    findings: list[Finding]
    spec: TrainingSpec


def preflight(spec: TrainingSpec, files: Mapping[str, str]) -> list[Finding]:
    """The findings of `examine` alone."""
    return examine(spec, files).findings


def examine(spec: TrainingSpec, files: Mapping[str, str], around: Surroundings | None = None) -> Examination:
    """What was found, errors first, then in the order of the code. `files` are the code version's text files, by path.
    Without `around` they are all of the code. Never raises, whatever the files hold."""
    around = around or Surroundings(own_names(files))
    if only_serves(spec.strategy):
        return Examination(_of_servers(spec), spec)
    if not runs_script(spec):
        return Examination(_of_program(spec, files), spec)
    entry = entry_file(spec, files)
    if entry not in files:
        return Examination([] if spec.command else [_entry_point_missing(spec, files)], with_flags(spec, None))
    book = notebook_source(entry, files[entry]) if is_notebook(entry) else None
    if isinstance(book, Finding):
        return Examination([book], with_flags(spec, None))
    facts = read_script({**files, entry: book.text} if book else files, entry)
    found = [_unreadable(one, around) for one in facts.unreadable]
    decided = with_flags(spec, None)
    if all(one.file != entry for one in found):
        decided = with_flags(spec, facts)
        found += relative_imports(spec, facts)
        found += _of_script(replace(spec, entry_point=entry), replace(decided, entry_point=entry), facts, files, around)
    found = [book.placed(one) for one in found] if book else found
    found.sort(key=lambda one: (one.severity is not Severity.ERROR, one.file, one.line, one.code))
    return Examination(found, decided)


def _of_script(
    asked: TrainingSpec, decided: TrainingSpec, facts: Facts, files: Mapping[str, str], around: Surroundings
) -> list[Finding]:
    """What the checks find, and what the script will not find in the task. `asked` is what was sent, `decided` has the
    flags that the tasks get; a command gets none."""
    checks = [one for one in _CHECKS if one not in _OF_FLAGS or not asked.command]
    found = [] if asked.command else list(unclear_flags(asked, facts))
    if not around.image.is_current:
        checks = [one for one in checks if one not in _OF_CURRENT_TENSORFLOW]
    found += [finding for check in checks for finding in check(decided, facts)]
    found += _of_surroundings(decided, facts, files, around)
    if any(one.code == "wrong_strategy" for one in found):
        found = [one for one in found if one.code not in SAID_BY_IT]
    return found


def _of_surroundings(
    spec: TrainingSpec, facts: Facts, files: Mapping[str, str], around: Surroundings
) -> Iterator[Finding]:
    """What the script needs, and will not find in the task or from there."""
    yield from missing_packages(facts.needed, around, asked_for(spec.requirements, files))
    yield from useless_packages(facts, around, has_spark=is_spark(spec.strategy))
    yield from old_tensorflow(spec, facts, around)
    yield from _not_with_tensorflow(facts, around)
    if not around.has_way_out:
        yield from downloads(spec, facts)


def _of_servers(spec: TrainingSpec) -> list[Finding]:
    """There is no code to read."""
    if spec.max_runtime is not None or is_service(spec.strategy):
        return []
    message = "The servers use quota until they are stopped."
    return [warn("no_end", message, "Set a time limit (max_runtime).")]


def _of_program(spec: TrainingSpec, files: Mapping[str, str]) -> list[Finding]:
    """Of the code beside a program of the portal's own: is the file there that it is to import?"""
    program = PROGRAMS.get(spec.program)
    path = str(spec.options.get(program.needs_code, "")) if program and program.needs_code else ""
    if not path or spec.code_version is None or path in files:
        return []
    message = f"{shorten(path)} is not in the code version."
    near = _near(path, files)
    remedy = f"Did you mean {near[0]}?" if near else "Choose the code version that has it."
    return [Finding(Severity.ERROR, "step_missing", message, remedy)]


def _entry_point_missing(spec: TrainingSpec, files: Mapping[str, str]) -> Finding:
    scripts = [path for path in files if path.endswith((".py", ".ipynb"))]
    module = module_of(spec.entry_point)
    path = files_of_module(module)[1] if module else spec.entry_point
    name = path.rpartition("/")[2]
    near = [one for one in scripts if one.rpartition("/")[2] == name]
    near = near or _near(path, scripts)
    remedy = f"Did you mean {shorten(near[0])}?" if near else "Write its path from the top of the code."
    message = f"{shorten(spec.entry_point)} is not in the code version."
    if module:
        message = f"The code version has neither {' nor '.join(map(shorten, files_of_module(module)))}."
        remedy = f"Did you mean -m {module_name(near[0])}?" if near else "Write its name from the top of the code."
    return Finding(Severity.ERROR, "entry_point_missing", message, remedy)


def _near(path: str, paths: Iterable[str]) -> list[str]:
    """The script that is called most alike, if any: among some, and only where that takes a moment."""
    if len(path) > _LONGEST_GUESS:
        return []
    scripts = (one for one in paths if one.endswith((".py", ".ipynb")) and len(one) <= _LONGEST_GUESS)
    return difflib.get_close_matches(path, list(islice(scripts, _MOST_GUESSES)), 1)


def _unreadable(one: Unreadable, around: Surroundings) -> Finding:
    """Certain only where the task has the Python that has read it here."""
    file, line, text = one.place.file, one.place.line, one.text.strip()
    code, message = "syntax_error", f"Python cannot parse it: {one.message}."
    remedy = "Correct the line."
    if text.startswith(("!", "%")):
        code, message = "notebook_magic", f"A notebook's command is no Python: {shorten(text)}"
        remedy = "Remove lines that begin with ! or %. Packages that they install must be in the task environment."
    elif re.match(r"print\s+[^(=]", text):
        remedy = "It is written for Python 2: convert it to Python 3."
    is_certain = around.image.is_parsed_here
    if not is_certain:
        remedy = f"{remedy} The image may have another Python, which can."
    return Finding(Severity.ERROR if is_certain else Severity.WARNING, code, message, remedy, file, line)


# One check each. They yield warnings.


def _keras_3(spec: TrainingSpec, facts: Facts) -> Iterator[Finding]:
    """Measured: fit under either strategy breaks in Keras 3, and works in Keras 2."""
    if spec.strategy not in (Strategy.PARAMETER_SERVER, Strategy.MULTI_WORKER_MIRRORED):
        return
    if not any(map(_is_model_fit, facts.calls)):
        return
    name = spec.strategy.value
    place = facts.imports_any("keras")
    if place:
        message = f"`import keras` is Keras 3, whose fit cannot train under {name}."
        yield warn("keras_3", message, "Import tf_keras, or use tf.keras (here it is Keras 2).", place)
    elif spec.environment.get(LEGACY_KERAS, "1") in ("0", "False", "false", "") and facts.uses("tensorflow.keras"):
        message = f"{LEGACY_KERAS} is switched off, so tf.keras is Keras 3, whose fit cannot train under {name}."
        yield warn("keras_3", message, f"Leave {LEGACY_KERAS} out of the environment.", facts.uses("tensorflow.keras"))


def _is_model_fit(call: Call) -> bool:
    """A Keras model's fit, rather than a scaler's or an estimator's."""
    receiver = call.name.rpartition(".")[0].lower()
    return call.method == "fit" and (
        any(word in receiver for word in ("model", "net")) or call.keyword("epochs") is not None
    )


def _parameter_server(spec: TrainingSpec, facts: Facts) -> Iterator[Finding]:
    if spec.strategy is not Strategy.PARAMETER_SERVER:
        return
    if not facts.uses("ParameterServerStrategy", "ParameterServerStrategyV2"):
        message = "The script does not create a ParameterServerStrategy: the chief would not use its cluster."
        remedy = "Add a branch for the chief that creates the strategy, or launch as between_graph."
        yield warn("no_coordinator", message, remedy, Location(spec.entry_point, 0))
    server = facts.uses("distribute.Server", "train.Server", "GrpcServer")
    remedy = 'In the tasks "worker" and "ps", run tf.distribute.Server(...).join() and nothing else.'
    if not server:
        message = "The script does not start a server: workers and parameter servers would train separately."
        yield warn("no_server", message, remedy, Location(spec.entry_point, 0))
    elif not any(call.method == "join" and not call.node.args for call in facts.calls):
        yield warn("no_join", "A server is started, but the script does not wait for it with join().", remedy, server)
    for call in facts.calls:
        if _is_model_fit(call) and call.keyword("steps_per_epoch") is None and not call.has_open_keywords:
            message = "fit needs steps_per_epoch under ParameterServerStrategy."
            yield warn("no_steps_per_epoch", message, "Pass steps_per_epoch to fit.", call.place)


def _collective(spec: TrainingSpec, facts: Facts) -> Iterator[Finding]:
    names = ("MultiWorkerMirroredStrategy", "CollectiveAllReduceStrategy")
    if spec.strategy is Strategy.MULTI_WORKER_MIRRORED and not facts.uses(*names):
        message = "The script does not create a MultiWorkerMirroredStrategy: every worker would train separately."
        remedy = "Make the model under tf.distribute.MultiWorkerMirroredStrategy().scope()."
        yield warn("no_strategy", message, remedy, Location(spec.entry_point, 0))


def _between_graph(spec: TrainingSpec, facts: Facts) -> Iterator[Finding]:
    if spec.strategy is not Strategy.BETWEEN_GRAPH:
        return
    reads_cluster = facts.mentions("TF_CONFIG", "job_name", "task_index") or facts.uses(
        "TFConfigClusterResolver", "sys.argv"
    )
    if not reads_cluster:
        message = "The script reads neither TF_CONFIG nor --job_name and --task_index: every task would do the same."
        remedy = "Read the task's role and index from TF_CONFIG or from the flags, or launch as single."
        fix = Fix("Use the strategy single", "strategy", Strategy.SINGLE.value)
        yield warn("no_cluster", message, remedy, Location(spec.entry_point, 0), (fix,))
    session = facts.uses("MonitoredTrainingSession")
    if session and spec.retries > 0 and "device_filters" not in facts.keywords | facts.own_names:
        message = "After a restart the chief would wait for all workers, forever if one has already finished."
        remedy = 'Give the session a ConfigProto with device_filters=["/job:ps", "/job:worker/task:<own index>"].'
        yield warn("no_device_filters", message, remedy, session)


def _not_in_a_task(spec: TrainingSpec, facts: Facts) -> Iterator[Finding]:
    """What works at a desk or in a notebook, but not in a task."""
    place = facts.imports_any("google.colab")
    if not is_notebook(spec.entry_point):
        place = place or facts.uses("get_ipython")
    if place:
        yield warn("notebook_only", "This works in a notebook only.", "Remove it for the job.", place)
    for call in facts.calls:
        if call.name == "input" and "input" not in facts.own_names:
            message = "The script asks for keyboard input, and a task has no keyboard."
            yield warn("asks_for_input", message, "Make it an argument of the script.", call.place)
            return


def _not_with_tensorflow(facts: Facts, around: Surroundings) -> Iterator[Finding]:
    """What does not go with the TensorFlow of the image."""
    place = facts.imports_any("tensorflow_io")
    if place and around.image.is_current:
        message = "tensorflow-io is no longer maintained and does not go with current TensorFlow."
        remedy = "Attach the data as a dataset and read files from the data directory."
        yield warn("tensorflow_io", message, remedy, place)


_CHECKS: tuple[Callable[[TrainingSpec, Facts], Iterator[Finding]], ...] = (
    _keras_3,
    _parameter_server,
    _collective,
    _between_graph,
    wrong_strategy,
    unknown_flags,
    doubled_flags,
    joined_arguments,
    missing_flags,
    no_inputs,
    foreign_paths,
    s3_paths,
    streamed_unread,
    foreign_variables,
    _not_in_a_task,
    notebook_magics,
)
_OF_FLAGS = (unknown_flags, doubled_flags, joined_arguments, missing_flags, no_inputs)
"""About flags that Yardmaster passes. A command gets none."""
_OF_CURRENT_TENSORFLOW = (_keras_3,)
"""True of the TensorFlow that the engines' own image has, and of later ones."""
