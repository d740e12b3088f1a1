"""What a script downloads when it runs: datasets, models and weights that a task without a way out cannot reach, each
with the recipe that lets the library find it among the job's inputs."""

from __future__ import annotations

import ast
import hashlib
import re
from collections.abc import Iterator
from dataclasses import replace

from yardmaster.code import known_data
from yardmaster.code.findings import Finding, Fix, warn
from yardmaster.code.script_facts import Call, Facts
from yardmaster.job.spec import TrainingSpec
from yardmaster.job.spec_limits import shorten

MOST = 5
_FIRST_IS_PATH = ("boston_housing", "imdb", "mnist", "reuters")
_KERAS_DATA = re.compile(r"(?:^|\.)datasets\.(\w+)\.load_data$")
_APPLICATION = re.compile(r"(?:^|\.)applications\.(?:\w+\.)?([A-Z]\w+)$")


def downloads(spec: TrainingSpec, facts: Facts) -> Iterator[Finding]:
    """Of tasks that have no way out. What the environment of the job says already is not said again."""
    found, sets = 0, _known_sets(facts)
    for call in facts.calls:
        one = _keras_data(spec, call, sets) or _of_others(spec, call)
        if one is None:
            continue
        if one.makes:
            sets = set()  # said once, for all of them
        found += 1
        if found > MOST:
            return
        yield one


def _of_others(spec: TrainingSpec, call: Call) -> Finding | None:
    return _tfds(spec, call) or _hub(spec, call) or _weights(spec, call) or _file(call)


def _known_sets(facts: Facts) -> set[str]:
    """Which sets of `keras.datasets` the script loads under their own names."""
    signs = ((call, _keras_set(call)) for call in facts.calls)
    return {name for call, name in signs if name in known_data.KERAS and _has_own_path(call, name)}


def _keras_set(call: Call) -> str:
    sign = _KERAS_DATA.search(call.name)
    return sign[1] if sign is not None and "keras" in call.name else ""


def _has_own_path(call: Call, name: str) -> bool:
    """Whether no other name is given to the file, as `path` or first argument."""
    return call.keyword("path") is None and (name not in _FIRST_IS_PATH or not call.node.args)


def _keras_data(spec: TrainingSpec, call: Call, sets: set[str]) -> Finding | None:
    """With the source of all `sets`, where the file of this one is found by the variable."""
    name = _keras_set(call)
    if not name:
        return None
    files = [one.path for one in known_data.KERAS.get(name, ())]
    shown = f"the {len(files)} files of datasets/fashion-mnist/" if len(files) > 2 else f"datasets/{name}.npz"
    if len(files) == 1:
        shown = files[0]
    found = _of_keras(spec, call, f"keras.datasets.{name}", shown)
    return replace(found, makes=known_data.source_of(sets)) if found and found.fixes and name in sets else found


def _weights(spec: TrainingSpec, call: Call) -> Finding | None:
    sign = _APPLICATION.search(call.name)
    if sign is None or "keras" not in call.name:
        return None
    weights = call.keyword("weights")
    if weights is not None and not (isinstance(weights, ast.Constant) and weights.value == "imagenet"):
        return None
    return _of_keras(spec, call, f"The weights of {sign[1]} for imagenet", "models/<the file that the log names>")


def _of_keras(spec: TrainingSpec, call: Call, what: str, file: str) -> Finding | None:
    """Keras 2 reads no variable: for it the runner leads its folder there (`yardmaster_runner.keras_home`)."""
    return _with_variable(spec, call, what, "KERAS_HOME", f"Attach a dataset with {file}")


def _tfds(spec: TrainingSpec, call: Call) -> Finding | None:
    if not call.name.startswith("tensorflow_datasets.") or call.method not in ("load", "builder", "data_source"):
        return None
    if call.keyword("data_dir") is not None:
        return None
    name = next(iter(call.texts()), "")
    folder = f"the folder {shorten(name.partition('/')[0].partition(':')[0])}/ as tfds prepared it"
    return _with_variable(
        spec, call, f"tfds.{call.method}({shorten(name)})", "TFDS_DATA_DIR",
        f"Prepare it once on another machine, attach a dataset with {folder}",
    )  # fmt: skip


def _hub(spec: TrainingSpec, call: Call) -> Finding | None:
    if not call.name.startswith("tensorflow_hub.") or call.method not in ("load", "KerasLayer", "Module", "resolve"):
        return None
    handle = next(iter(call.texts()), None)
    if handle is not None and not handle.startswith(("http://", "https://")):
        return None
    folder = "the model's folder"
    if handle is not None:
        folder = f"the model in the folder {hashlib.sha1(handle.encode(), usedforsecurity=False).hexdigest()}"
    return _with_variable(spec, call, f"hub.{call.method}", "TFHUB_CACHE_DIR", f"Attach a dataset with {folder}")


def _file(call: Call) -> Finding | None:
    if call.method != "get_file" or "keras" not in call.name:
        return None
    return _warning("keras.utils.get_file", "Attach the file as a dataset and open it below $DATA_DIR.", call)


def _with_variable(spec: TrainingSpec, call: Call, what: str, variable: str, how: str) -> Finding | None:
    if variable in spec.environment:
        return None
    where = _data(spec)
    fix = Fix(f"Set {variable} to {where}", f"environment.{variable}", where)
    remedy = f"{how}, and set {variable} to its folder ({where})."
    return _warning(what, remedy, call, (fix,) if spec.paths.data_env else ())


def _data(spec: TrainingSpec) -> str:
    """The folder of the only input, or of the first: where a dataset for this would lie."""
    top = f"${spec.paths.data_env}" if spec.paths.data_env else "the data directory"
    return f"{top}/{spec.inputs[0].name}" if len(spec.inputs) == 1 and spec.inputs[0].name else top


def _warning(what: str, remedy: str, call: Call, fixes: tuple[Fix, ...] = ()) -> Finding:
    message = f"{what} is downloaded, and tasks of this engine have no way out."
    return warn("downloads", message, remedy, call.place, fixes)
