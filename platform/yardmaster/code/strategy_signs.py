"""Which strategy a script was written for, as far as it says so, and what a first job of it most likely is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from yardmaster.code.findings import Finding, Fix, warn
from yardmaster.code.flags import parser_of
from yardmaster.code.notebooks import notebook_source
from yardmaster.code.old_tensorflow import first_of_version_1
from yardmaster.code.own_module import as_module
from yardmaster.code.path_flags import missing_flags, with_flags
from yardmaster.code.script_facts import Facts, Location, read_script
from yardmaster.job.spec import Strategy, TrainingSpec
from yardmaster.job.spec_rules import CLASSIC_FLAGS
from yardmaster_runner.entry_point import is_notebook

SAID_BY_IT = frozenset({"no_coordinator", "no_server", "no_join", "no_strategy", "no_cluster", "no_device_filters"})
"""What follows from a wrong strategy, and is not said beside it."""
_PARAMETER_SERVER = ("ParameterServerStrategy", "ParameterServerStrategyV2")
_COLLECTIVE = ("MultiWorkerMirroredStrategy", "CollectiveAllReduceStrategy")
_OTHERS = ("MirroredStrategy", "OneDeviceStrategy", "TPUStrategy", "CentralStorageStrategy")


@dataclass(frozen=True)
class Likely:
    """What a first job of a script would be. `entry_point`: how it is run, `tf1`: in TensorFlow 1 mode."""

    strategy: Strategy
    arguments: tuple[str, ...]
    entry_point: str
    tf1: bool = False


def strategy_of(facts: Facts) -> tuple[Strategy, str, Location] | None:
    """The one strategy that the script was written for, by which sign, and where. None where there is no sign, and
    where it chooses among several itself."""
    if facts.uses(*_OTHERS):
        return None
    by_class = {
        Strategy.PARAMETER_SERVER: _sign(facts, _PARAMETER_SERVER),
        Strategy.MULTI_WORKER_MIRRORED: _sign(facts, _COLLECTIVE),
    }
    if (place := facts.imports_any("pyspark")) is not None:
        return (Strategy.SPARK, "pyspark", place)
    if (place := facts.imports_any("tensorflowonspark")) is not None:
        return (Strategy.SPARK, "tensorflowonspark", place)
    found = [(strategy, *sign) for strategy, sign in by_class.items() if sign is not None]
    if found:
        return found[0] if len(found) == 1 else None
    known = set(parser_of(facts).names)
    classic = [flag for flag in CLASSIC_FLAGS if flag in known]
    if len(classic) >= len(CLASSIC_FLAGS) - 1:
        flag = parser_of(facts).named(classic[0])
        return (Strategy.BETWEEN_GRAPH, " ".join(classic), flag.place) if flag else None
    place = facts.uses("replica_device_setter")
    return (Strategy.BETWEEN_GRAPH, "tf.train.replica_device_setter", place) if place else None


def _sign(facts: Facts, names: tuple[str, ...]) -> tuple[str, Location] | None:
    place = facts.uses(*names)
    return None if place is None else (names[0], place)


def wrong_strategy(spec: TrainingSpec, facts: Facts) -> Iterator[Finding]:
    """Code that was written for one strategy and is launched with another."""
    found = strategy_of(facts)
    if found is None or found[0] is spec.strategy:
        return
    strategy, sign, place = found
    if strategy is Strategy.BETWEEN_GRAPH and spec.strategy is Strategy.SINGLE and facts.mentions("TF_CONFIG"):
        return  # flags or TF_CONFIG, whichever there is: such a script trains alone where there is neither
    message = (
        f"The script uses {sign}, which belongs to the strategy {strategy.value}. The job has {spec.strategy.value}."
    )
    fix = Fix(f"Use the strategy {strategy.value}", "strategy", strategy.value)
    yield warn("wrong_strategy", message, f"Choose the strategy {strategy.value}.", place, (fix,))


def likely_job(files: Mapping[str, str], entry_point: str) -> Likely | None:
    """How the script or notebook is run, its strategy, `single` where nothing speaks for another, and the arguments
    that it requires, as far as they are directories of the job. None where it cannot be read. Never raises, whatever
    the files hold."""
    if entry_point not in files:
        return None
    book = notebook_source(entry_point, files[entry_point]) if is_notebook(entry_point) else None
    if isinstance(book, Finding):
        return None
    facts = read_script({**files, entry_point: book.text} if book else files, entry_point)
    if any(one.place.file == entry_point for one in facts.unreadable):
        return None
    found = strategy_of(facts)
    reads_cluster = facts.mentions("TF_CONFIG") or facts.uses("TFConfigClusterResolver", *_OTHERS)
    if found is None and reads_cluster and not facts.uses(*_OTHERS[:2]):
        return None  # it is distributed in a way of its own
    strategy = found[0] if found else Strategy.SINGLE
    spec = with_flags(TrainingSpec("job", strategy, {}, None, entry_point), facts)
    arguments = tuple(fix.value for one in missing_flags(spec, facts) for fix in one.fixes)
    is_old = first_of_version_1(facts) is not None
    return Likely(strategy, arguments, as_module(entry_point, facts) or entry_point, is_old)
