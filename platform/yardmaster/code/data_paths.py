"""Where a script looks for its data: paths of other machines and stores, which do not exist in a task, and inputs that
it would not find."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from yardmaster.code.findings import Finding, warn
from yardmaster.code.script_facts import Facts, Location
from yardmaster.job.spec import DatasetInput, InputMode, TrainingSpec
from yardmaster.job.spec_limits import shorten

MOST_OF_ONE_KIND = 5

_FOREIGN = re.compile(
    r"(?P<result>/kaggle/working|/opt/ml/(?:model|output|checkpoints))"
    r"|(?P<notebook>/content/|/kaggle/|/opt/ml/)|(?P<home>/home/[^/]+/|/Users/[^/]+/|~/|[A-Za-z]:\\|[A-Za-z]:/[^/])"
    r"|(?P<store>(?:s3|s3a|gs|hdfs|abfss?|wasbs?|dbfs|oss)://|dbfs:/)"
)


def foreign_paths(spec: TrainingSpec, facts: Facts) -> Iterator[Finding]:
    overridden = _overridden_defaults(spec, facts)
    found = 0
    for text, place in facts.texts:
        sign = _FOREIGN.match(text)
        if sign is None or (text, place) in overridden or "\n" in text or _S3.match(text):
            continue
        found += 1
        if found > MOST_OF_ONE_KIND:
            return
        if sign["store"]:
            message = f"{shorten(text)} is in a store that TensorFlow cannot read in the task environment."
        else:
            message = f"{shorten(text)} is a path of another machine and does not exist in a task."
        remedy = f"Attach the data as a dataset and read it below {where(spec)}."
        if sign["result"]:
            remedy = f"Write it below {spec.paths.model_flag or spec.paths.model_env or 'the working directory'}."
        yield warn("foreign_path", message, remedy, place)


_S3 = re.compile(r"s3a?://")
_READ_BY_FSSPEC = ("fsspec", "pandas", "dask", "datasets", "xarray")
"""Libraries that open `s3://` through fsspec, for which a task maps such paths to its inputs."""


def s3_paths(spec: TrainingSpec, facts: Facts) -> Iterator[Finding]:
    """What TensorFlow would open itself cannot be mapped to an input; what Python code opens through fsspec is."""
    overridden, by_tensorflow = _overridden_defaults(spec, facts), _given_to_tensorflow(facts)
    has_reader = facts.imports_any(*_READ_BY_FSSPEC) is not None
    found = 0
    for text, place in facts.texts:
        reader = by_tensorflow.get((text, place), "")
        if not _S3.match(text) or (text, place) in overridden or "\n" in text:
            continue
        if has_reader and not reader and _may_be_mapped(spec, text):
            continue
        found += 1
        if found > MOST_OF_ONE_KIND:
            return
        one = _stand_in(spec, text)
        ours = f'yardmaster_runner.data.dataset("{shorten(one.name) if one and one.name else "NAME"}")'
        remedy = f"Attach the data as a dataset and write {ours}, or read it below {where(spec)}."
        if one is not None:
            remedy = f"Write {ours}, or read the input below {where(spec)}."
        message = f"{shorten(text)} is in a store that TensorFlow cannot read in the task environment."
        if reader:
            message = f"{shorten(reader)} opens {shorten(text)} itself, which TensorFlow cannot do in a task."
        elif has_reader:
            message = f"{shorten(text)} maps to no input of the job."
            remedy = "Attach the data as a dataset whose input stands for this path (stands_for)."
        yield warn("s3_path", message, remedy, place)


def _stand_in(spec: TrainingSpec, text: str) -> DatasetInput | None:
    """The input that stands for this path, as far as it says so."""
    path = f"{_S3.sub('', text).rstrip('/')}/"
    return next((one for one in spec.inputs if one.stands_for and path.startswith(f"{_place_of(one)}/")), None)


def _may_be_mapped(spec: TrainingSpec, text: str) -> bool:
    """Whether a task may find an input for this path: an input that stands for no path is found by its name, which may
    be any folder's. A text may also be the beginning of a path."""
    start = _S3.sub("", text)
    return any(not one.stands_for or _place_of(one).startswith(start) for one in spec.inputs) or bool(
        _stand_in(spec, text)
    )


def _place_of(one: DatasetInput) -> str:
    return _S3.sub("", one.stands_for).rstrip("/")


def _given_to_tensorflow(facts: Facts) -> dict[tuple[str, Location], str]:
    """Texts among the arguments of TensorFlow's functions, with the function's name."""
    found = {}
    for call in facts.calls:
        if call.name.startswith("tensorflow."):
            for argument in [*call.node.args, *(one.value for one in call.node.keywords)]:
                for node in ast.walk(argument):
                    if isinstance(node, ast.Constant) and isinstance(node.value, str):
                        name = f"tf.{call.name.partition('.')[2]}"
                        found[(node.value, Location(call.place.file, node.lineno))] = name
    return found


_FOREIGN_VARIABLE = re.compile(r"(?:SM|KAGGLE|AIP)_[A-Z][A-Z_]+")


def foreign_variables(spec: TrainingSpec, facts: Facts) -> Iterator[Finding]:
    """Variables that only another platform sets: the script would get nothing, or end with a KeyError."""
    found = {text: place for text, place in reversed(facts.texts) if _FOREIGN_VARIABLE.fullmatch(text)}
    foreign = sorted(set(found) - spec.environment.keys())
    if foreign:
        message = f"{', '.join(foreign[:MOST_OF_ONE_KIND])}: set on another platform only."
        remedy = f"Read data below {where(spec)}, or set the variables in the job's environment."
        yield warn("foreign_variable", message, remedy, found[foreign[0]])


def where(spec: TrainingSpec) -> str:
    return spec.paths.data_flag or (f"${spec.paths.data_env}" if spec.paths.data_env else "the working directory")


def _overridden_defaults(spec: TrainingSpec, facts: Facts) -> set[tuple[str, Location]]:
    """Defaults of flags that the job sets anyhow."""
    given = {spec.paths.data_flag, spec.paths.log_flag, spec.paths.model_flag}
    given |= {argument.partition("=")[0] for argument in spec.arguments}
    found = set()
    for call in facts.calls:
        texts = call.texts()
        if call.method == "add_argument" and given & set(texts):
            defaults = [call.keyword("default")]
        elif call.method.startswith("DEFINE_") and texts and f"--{texts[0]}" in given:
            defaults = [call.keyword("default"), *call.node.args[1:2]]
        else:
            continue
        for one in defaults:
            if isinstance(one, ast.Constant) and isinstance(one.value, str):
                found.add((one.value, Location(call.place.file, one.lineno)))
    return found


def streamed_unread(spec: TrainingSpec, facts: Facts) -> Iterator[Finding]:
    """Shards that are streamed are in no folder: a script that only lists its data directory finds none."""
    streamed = [one for one in spec.inputs if one.mode is InputMode.STREAM]
    if streamed and not facts.imports_any("yardmaster_runner", *_READ_BY_FSSPEC):
        name = streamed[0].name
        message = (
            f"The input{f' {shorten(name)}' if name else ''} is streamed, and the script does not ask for its shards."
        )
        ours = f'yardmaster_runner.data.dataset("{shorten(name)}")' if name else "yardmaster_runner.data.dataset()"
        yield warn("stream_unread", message, f"Read it with {ours}, or copy it before the start (mode: folder).")
