"""Which flags of a script mean its data, its logs and its model, and which it requires that no one gives.

A path flag of a specification that is `auto` is decided here, once, before the launch: the stored specification has
the flag that the tasks get. What the specification says itself always counts.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from yardmaster.code.findings import Finding, Fix, warn
from yardmaster.code.flags import Flag, Parser, given_in, parser_of
from yardmaster.code.script_facts import Facts, Location
from yardmaster.job.spec import AUTO, USUAL_PATHS, Paths, Strategy, TrainingSpec
from yardmaster.job.spec_limits import shorten
from yardmaster.job.spec_rules import CLASSIC_FLAGS

KINDS = ("data", "log", "model")
_TITLES = {"data": "the data", "log": "logs and checkpoints", "model": "the model"}
_ONE_DIR = (("model_dir", "modeldir"), ("output_dir", "out_dir", "outdir"))
"""Names of the one directory of a script that keeps checkpoints and its model together."""
_NAMES = {
    "data": (
        ("data_dir", "datadir"),
        ("dataset_dir", "data_path", "dataset_path", "data_root", "data_folder", "data_directory", "input_dir",
         "input_path", "train_data_dir", "train_data_path", "tfrecord_dir"),
    ),
    "log": (
        ("log_dir", "logdir", "logs_dir", "log_directory"),
        ("train_dir", "checkpoint_dir", "checkpoints_dir", "ckpt_dir", "summaries_dir", "summary_dir",
         "tensorboard_dir", "job_dir"),
        *_ONE_DIR,
    ),
    "model": (
        ("export_dir", "saved_model_dir", "export_path", "export_directory"),
        *_ONE_DIR,
        ("save_dir", "model_output_dir"),
    ),
}  # fmt: skip
"""By kind the names of flags, the likeliest first. Of the first group in which the script has a name, it has to be the
only one: of two the user chooses."""
_MAYBE_DATA = ("data", "dataset", "input", "inputs", "input_data", "train_data")
"""A path or the name of a dataset: a path where the default looks like one."""
_SPLITS = frozenset({"val_dir", "valid_dir", "validation_dir", "test_dir", "eval_dir"})
"""Beside one of these `train_dir` has data."""
MOST_MISSING = 5


@dataclass(frozen=True)
class Choice:
    """What `auto` stands for, by kind; and of which kinds several flags may be meant."""

    flags: dict[str, str]
    unclear: dict[str, list[Flag]]


def with_flags(spec: TrainingSpec, facts: Facts | None) -> TrainingSpec:
    """The specification with the flags that `auto` stands for. `facts` None: the code could not be read, or is not
    read here; then the usual flags are passed."""
    paths = _usual(spec.paths) if facts is None else _chosen_paths(spec, parser_of(facts))
    return spec if paths == spec.paths else replace(spec, paths=paths)


def _usual(paths: Paths) -> Paths:
    wanted = {f"{kind}_flag" for kind in KINDS if getattr(paths, f"{kind}_flag") == AUTO}
    return replace(paths, **{key: getattr(USUAL_PATHS, key) for key in wanted})


def _chosen_paths(spec: TrainingSpec, parser: Parser) -> Paths:
    if not parser.is_known:
        return _without_given(spec, _usual(spec.paths), parser)
    chosen = choice_of(spec, parser).flags
    if not parser.is_strict and parser.reads_argv:  # it passes over what it does not know: as ever
        taken = {getattr(spec.paths, f"{kind}_flag") for kind in KINDS} | set(chosen.values())
        usual = {kind: getattr(USUAL_PATHS, f"{kind}_flag") for kind in KINDS}
        chosen = {kind: flag or ("" if usual[kind] in taken else usual[kind]) for kind, flag in chosen.items()}
    found = replace(spec.paths, **{f"{kind}_flag": flag for kind, flag in chosen.items()})
    return _without_given(spec, found, parser)


def _without_given(spec: TrainingSpec, paths: Paths, parser: Parser) -> Paths:
    """Without the flags of `auto` that are among the arguments, which say what is meant."""
    given, _ = given_in(spec.arguments, parser)
    keys = [f"{kind}_flag" for kind in KINDS if getattr(spec.paths, f"{kind}_flag") == AUTO]
    return replace(paths, **{key: "" for key in keys if getattr(paths, key) in given})


def choice_of(spec: TrainingSpec, parser: Parser) -> Choice:
    """What `auto` stands for in this specification."""
    explicit = {kind: getattr(spec.paths, f"{kind}_flag") for kind in KINDS}
    given, _ = given_in(spec.arguments, parser)
    taken = {flag for flag in explicit.values() if flag != AUTO} | {spec.paths.output_flag}
    free = [one for one in parser.flags if not one.is_positional and one.is_text and not taken & set(one.names)]
    chosen: dict[str, str] = {}
    unclear: dict[str, list[Flag]] = {}
    for kind in (kind for kind in KINDS if explicit[kind] == AUTO):
        found = _candidates(kind, free)
        is_given = any(given & set(one.names) for one in found)
        chosen[kind] = found[0].name if len(found) == 1 and not is_given else ""
        maybe = found if len(found) > 1 else _maybe_data(free) if kind == "data" and not found else []
        if maybe and not is_given and not any(given & set(one.names) or one.is_required for one in maybe):
            unclear[kind] = maybe
        free = [one for one in free if one.name != chosen[kind]]
    log = chosen.get("log", explicit["log"])
    if chosen.get("model") == "" and "model" not in unclear and any(_normal(log) in group for group in _ONE_DIR):
        chosen["model"] = log
    return Choice(chosen, unclear)


def _candidates(kind: str, flags: Sequence[Flag]) -> list[Flag]:
    names = {_normal(one.name) for one in flags}
    for group in _NAMES[kind]:
        wanted = set(group) - ({"train_dir"} if names & _SPLITS else set())
        if found := [one for one in flags if _normal(one.name) in wanted]:
            return found
    if kind == "data":
        return [one for one in _maybe_data(flags) if one.default and any(sign in one.default for sign in "/\\.")]
    return []


def _maybe_data(flags: Sequence[Flag]) -> list[Flag]:
    return [one for one in flags if _normal(one.name) in _MAYBE_DATA]


def _normal(flag: str) -> str:
    return flag.lstrip("-").replace("-", "_").lower()


def kind_of(name: str) -> str | None:
    """What a flag or a positional argument of this name most likely means: `data`, `log` or `model`."""
    name = _normal(name)
    for kind in ("data", "model", "log"):
        if any(name in group for group in _NAMES[kind]) or (kind == "data" and name in _MAYBE_DATA):
            return kind
    return None


# Findings. They are asked with the specification in which `auto` is decided already, but for `unclear_flags`.


def unclear_flags(spec: TrainingSpec, facts: Facts) -> Iterator[Finding]:
    """Several flags of the script may mean the same directory: the user says which."""
    parser = parser_of(facts)
    if not parser.is_known:
        return
    for kind, flags in choice_of(spec, parser).unclear.items():
        if kind == "data" and not spec.inputs:
            continue
        names = [shorten(one.name) for one in flags]
        message = f"{', '.join(names[:-1])} and {names[-1]} may each mean {_TITLES[kind]}, so that none is passed."
        if len(names) == 1:  # a path or a name
            if spec.paths.data_env and facts.mentions(spec.paths.data_env):
                continue
            message = f"{names[0]} may mean {_TITLES[kind]}, or a name. It is not passed."
        field = f"paths.{kind}_flag"
        fixes = tuple(Fix(f"{name} is {_TITLES[kind]}", field, name) for name in names)
        yield warn("unclear_flag", message, f"Choose one: {field}.", flags[0].place, fixes=fixes)


def unknown_flags(spec: TrainingSpec, facts: Facts) -> Iterator[Finding]:
    """Flags that the job passes and a strict parser does not know end the script at once."""
    parser = parser_of(facts)
    if not parser.is_strict or not parser.is_known:
        return
    place = Location(spec.entry_point, 0)
    for kind in KINDS:
        key = f"{kind}_flag"
        flag = getattr(spec.paths, key)
        if flag and flag != AUTO and not parser.knows(flag):
            variable = getattr(spec.paths, f"{kind}_env")
            remedy = f'Set paths.{key} to "" and read the variable {variable}, or add {flag} to the parser.'
            message = f"The script's parser does not know {flag}, which Yardmaster passes."
            fix = Fix("Pass what the parser knows", f"paths.{key}", AUTO)
            yield warn("unknown_flag", message, remedy, place, fixes=(fix,))
    missing = [flag for flag in CLASSIC_FLAGS if flag not in parser.names]
    if spec.strategy is Strategy.BETWEEN_GRAPH and missing:
        message = f"The script's parser does not know {', '.join(missing)}, which every between_graph task gets."
        yield warn("unknown_flag", message, "Use parse_known_args, or add them to the parser.", place)


def doubled_flags(spec: TrainingSpec, facts: Facts) -> Iterator[Finding]:
    ours = {getattr(spec.paths, f"{kind}_flag"): f"paths.{kind}_flag" for kind in KINDS}
    for argument in spec.arguments:
        flag = argument.partition("=")[0]
        if flag and flag in ours:
            message = f"{flag} is among the arguments: the script would not get the directory that Yardmaster passes."
            fix = Fix(f"Pass {flag} of the arguments alone", ours[flag], "")
            yield warn("doubled_flag", message, f'Remove it, or set {ours[flag]} to "".', fixes=(fix,))


_JOINED = re.compile(r"(--?[A-Za-z][\w-]*)\s+(\S.*)", re.DOTALL)


def joined_arguments(spec: TrainingSpec, facts: Facts) -> Iterator[Finding]:
    """A flag and its value in one argument, as one writes them in a shell: no parser takes them apart."""
    for index, argument in enumerate(spec.arguments):
        found = _JOINED.fullmatch(argument)
        if found and "=" not in found[1]:
            flag, value = found[1], found[2].rstrip()
            message = f"{shorten(argument)} is one argument, which no parser takes apart."
            remedy = f"Write two, {shorten(flag)} and {shorten(value)}, or {shorten(flag)}=…"
            fix = Fix(f"Write {shorten(f'{flag}={value}')}", f"arguments.{index}", f"{flag}={value}")
            yield warn("joined_argument", message, remedy, fixes=(fix,) if flag.startswith("--") else ())


def missing_flags(spec: TrainingSpec, facts: Facts) -> Iterator[Finding]:
    """What the parser requires and no one gives: the script would end at once."""
    parser = parser_of(facts)
    if not parser.is_known or not parser.reads_argv or not parser.is_one:
        return
    given, positional = given_in(spec.arguments, parser)
    passed = given | {getattr(spec.paths, f"{kind}_flag") for kind in (*KINDS, "output")}
    if spec.strategy is Strategy.BETWEEN_GRAPH:
        passed |= set(CLASSIC_FLAGS)
    required = [one for one in parser.flags if one.is_required]
    options = [one for one in required if not one.is_positional and not _is_given(one, passed, parser)]
    places = [one for one in required if one.is_positional][positional:]
    for one in [*options, *places][:MOST_MISSING]:
        yield _missing(spec, one)


def no_inputs(spec: TrainingSpec, facts: Facts) -> Iterator[Finding]:
    """A parser that requires its data, and a job that has none: the flag is passed, and the directory is empty."""
    name = spec.paths.data_flag
    flag = parser_of(facts).named(name) if name and not spec.inputs else None
    if flag is not None and flag.is_required:
        message = f"The script requires {shorten(name)}, and the job has no data: the directory is empty."
        yield warn("no_inputs", message, "Attach a dataset, or say in the arguments where the data is.", flag.place)


def _is_given(flag: Flag, passed: set[str], parser: Parser) -> bool:
    if passed & set(flag.names):
        return True
    return parser.has_prefixes and any(len(one) > 2 and flag.name.startswith(one) for one in passed)


def _missing(spec: TrainingSpec, flag: Flag) -> Finding:
    name, kind = shorten(flag.name), kind_of(flag.name)
    variable = getattr(spec.paths, f"{kind}_env") if kind else ""
    what = f"the argument {name}" if flag.is_positional else name
    message = f"The script requires {what}, which the job does not give."
    if not variable or not flag.is_text:
        how = "its value" if flag.is_positional else f"{name}=…"
        return warn("required_flag", message, f"Add {how} to the arguments.", flag.place)
    value = f"${variable}" if flag.is_positional else f"{flag.name}=${variable}"
    fix = Fix(f"Add {shorten(value)}", "arguments", value, adds=True)
    remedy = f"Use ${variable}: add {shorten(value)} to the arguments."
    return warn("required_flag", message, remedy, flag.place, fixes=(fix,))
