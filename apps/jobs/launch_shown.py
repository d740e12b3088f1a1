"""How the launch form looks: its fields with what was typed and what is wrong with it, and the words around them. Pure.

Not here: what the form means (`launch_form`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from apps.jobs.launch_form import DURATIONS, PATHS, PLACE, WHOLES, Values, counts_of, problems_by_field, runs_script
from apps.jobs.row_words import count_words
from yardmaster.errors import Problem
from yardmaster.quantity import NotAQuantity, format_bytes, parse_memory
from yardmaster.spec import Role, Strategy
from yardmaster.strategy import ROLES, never_ending_roles


@dataclass(frozen=True)
class Field:
    """One field: its name as in the specification, what stands in it, and what is wrong with that."""

    name: str
    value: str = ""
    problems: Sequence[Problem] = ()

    @property
    def id(self) -> str:
        """Of its element."""
        return f"f-{self.name.replace('.', '-')}"

    @property
    def label(self) -> str:
        """What the form calls it."""
        first, _, rest = self.name.partition(".")
        if first == "roles":
            role, _, what = rest.partition(".")
            return f"{count_words(role, 1).removeprefix('1 ').capitalize()}: {_LABELS.get(what, what)}"
        if first == "inputs":
            number, _, what = rest.partition(".")
            return f"Dataset {int(number) + 1}" + (": folder" if what == "name" else "")
        return _PATH_TITLES.get(rest) or _LABELS.get(self.name, self.name)


@dataclass(frozen=True)
class RoleShown:
    """One role of the strategy. `optional`: it may be left out; `fixed`: there is exactly one."""

    role: str
    title: str
    text: str
    optional: bool
    fixed: bool
    single: bool
    replicas: Field
    cpu: Field
    memory: Field
    gpus: Field
    extended: Field

    @property
    def role_title(self) -> str:
        """Of one of its tasks."""
        return count_words(self.role, 1).removeprefix("1 ").capitalize()

    @property
    def is_there(self) -> bool:
        return self.fixed or self.replicas.value.strip() not in ("", "0")


@dataclass(frozen=True)
class InputShown:
    """One dataset, and the folder that it becomes."""

    version: Field
    folder: Field


@dataclass(frozen=True)
class Preset:
    """One way to train, as the first choice of the form."""

    strategy: str
    title: str
    text: str
    icon: str


PRESETS = (
    Preset("single", "Single task", "One script, one machine. The shortest way to a model.", icon="player-play"),
    Preset(
        "between_graph",
        "Parameter servers",
        "Parameter servers hold the variables, each worker trains by itself.",
        icon="server-2",
    ),
    Preset(
        "parameter_server",
        "Parameter servers, TF 2",
        "A chief hands out the steps: ParameterServerStrategy.",
        icon="sitemap",
    ),
    Preset(
        "multi_worker_mirrored",
        "Mirrored workers",
        "Every worker has the whole model, and all keep in step.",
        icon="copy",
    ),
    Preset(
        "in_graph",
        "Servers to drive",
        "No script: plain TensorFlow servers, and your notebook drives them.",
        icon="terminal-2",
    ),
)
_TITLES = {
    "ps": ("Parameter servers", "Hold the variables of the model."),
    "worker": ("Workers", "Read the data and train."),
    "chief": ("A chief", "that leads, and saves checkpoints and the model"),
    "evaluator": ("An evaluator", "that tests checkpoints beside the training"),
}
_TITLES_OF_SERVERS = {
    "ps": ("Parameter servers", "Hold the variables that you place on them."),
    "worker": ("Workers", "Do the work that you place on them."),
    "chief": ("A chief", "that does no work of its own and to which you connect"),
}
_LABELS = {
    "name": "Name", "strategy": "Strategy", "code": "Code", "entry_point": "Script to run", "arguments": "Arguments",
    "environment": "Environment variables", "retries": "Restarts", "max_runtime": "Longest time",
    "grace_period": "Time to end", "reclaim_delay": "Release after", "priority": "Priority",
    "success.rule": "Who decides", "success.percent": "Percent of the workers", "namespace": "Namespace",
    "engine": "Engine", "replicas": "how many", "cpu": "CPU", "memory": "memory", "gpus": "GPUs", "extended": "others",
}  # fmt: skip
_ORDER = (Role.PS, Role.WORKER, Role.CHIEF, Role.EVALUATOR)
_PATH_TITLES = {
    "data_flag": "Flag for the data", "log_flag": "Flag for logs and checkpoints", "model_flag": "Flag for the model",
    "data_env": "Variable for the data", "log_env": "Variable for logs and checkpoints",
    "model_env": "Variable for the model",
}  # fmt: skip


@dataclass(frozen=True)
class FormShown:
    """The whole form."""

    values: Values
    problems: Sequence[Problem] = ()
    empty_inputs: int = 0
    """How many empty rows for more inputs there are."""

    def field(self, name: str) -> Field:
        return Field(name, self.values.get(name, ""), self._placed.get(name, ()))

    @cached_property
    def _placed(self) -> Mapping[str, list[Problem]]:
        names = {*self.values, *_HEAD, *(f"paths.{one}" for one in PATHS), *DURATIONS, *_role_fields(self.strategy)}
        return problems_by_field(self.problems, names)

    @property
    def strategy(self) -> str:
        return self.values.get("strategy", "")

    @property
    def runs_script(self) -> bool:
        """Whether a script of the user runs, rather than servers alone."""
        return runs_script(self.values)

    @property
    def top(self) -> list[Problem]:
        """What is wrong with no field of its own."""
        shown = {one.name for one in self._fields()}
        return [problem for name, some in self._placed.items() if name not in shown for problem in some]

    @property
    def wrong(self) -> list[Field]:
        """The fields with problems, in the order of the form."""
        return [one for one in self._fields() if one.problems]

    @property
    def head(self) -> dict[str, Field]:
        return {name: self.field(name) for name in _HEAD}

    @cached_property
    def roles(self) -> list[RoleShown]:
        """Those of the strategy, the ones with a count first."""
        try:
            rules = ROLES[Strategy(self.strategy)]
        except ValueError:
            return []
        found = []
        for role in _ORDER:
            if (rule := rules.get(role)) is not None:
                fields = {one: self.field(f"roles.{role.value}.{one}") for one in ("replicas", *_EACH)}
                title, text = (_TITLES if self.runs_script else _TITLES_OF_SERVERS)[role.value]
                found.append(
                    RoleShown(
                        role.value,
                        title,
                        text,
                        optional=rule.least == 0,
                        fixed=rule.least == rule.most == 1,
                        single=rule.most == 1,
                        **fields,
                    )
                )
        return found

    @property
    def counted(self) -> list[RoleShown]:
        """Roles whose number is chosen."""
        return [role for role in self.roles if not role.single]

    @property
    def singles(self) -> list[RoleShown]:
        """Roles that are there once, or may be."""
        return [role for role in self.roles if role.single and self.strategy != "single"]

    @cached_property
    def inputs(self) -> list[InputShown]:
        count = sum(1 for name in self.values if name.startswith("inputs.") and name.endswith(".dataset_version"))
        return [
            InputShown(self.field(f"inputs.{number}.dataset_version"), self.field(f"inputs.{number}.name"))
            for number in range(count + self.empty_inputs)
        ]

    @property
    def paths(self) -> list[tuple[str, Field]]:
        return [(_PATH_TITLES[one], self.field(f"paths.{one}")) for one in PATHS]

    @property
    def rule(self) -> Field:
        return self.field("success.rule")

    @property
    def percent(self) -> Field:
        return self.field("success.percent")

    @property
    def open_sections(self) -> set[str]:
        """The folded sections in which something is wrong."""
        return {_section(one.name) for one in self.wrong}

    @property
    def percent_matters(self) -> bool:
        """Whether a share of the workers can decide: not where they never end."""
        try:
            return Role.WORKER not in never_ending_roles(Strategy(self.strategy))
        except ValueError:
            return True

    def _fields(self) -> list[Field]:
        of_roles = [getattr(role, one) for role in self.roles for one in ("replicas", *_EACH)]
        of_inputs = [field for one in self.inputs for field in (one.version, one.folder)]
        return [*self.head.values(), *of_roles, *of_inputs, *(field for _, field in self.paths)]

    # What the folded sections hold, in a few words each.

    @property
    def said_of_resources(self) -> str:
        return " · ".join(
            f"{role.role}: {role.cpu.value or '1'} CPU, {_memory(role.memory.value)}"
            + (f", {role.gpus.value} GPU" if role.gpus.value not in ("", "0") else "")
            for role in self.roles
            if role.is_there
        )

    @property
    def said_of_inputs(self) -> str:
        chosen = sum(1 for one in self.inputs if one.version.value)
        return "none" if not chosen else "1 dataset" if chosen == 1 else f"{chosen} datasets"

    @property
    def said_of_script(self) -> str:
        arguments = self.values.get("arguments", "") if self.runs_script else ""
        return _some([
            (_count_lines(arguments), "argument"),
            (_count_lines(self.values.get("environment", "")), "variable"),
        ])  # fmt: skip

    @property
    def said_of_limits(self) -> str:
        longest = self.values.get("max_runtime", "").strip()
        return f"{self.values.get('retries') or '3'} restarts, {f'at most {longest}' if longest else 'no time limit'}"

    @property
    def said_of_success(self) -> str:
        if not self.runs_script:
            return "never: it runs until it is stopped"
        if self.values.get("success.rule") == "chief" or not self.percent_matters:
            return "when the chief has ended well"
        percent = self.values.get("success.percent", "").strip() or "100"
        return "when all workers have ended well" if percent == "100" else f"when {percent} % of the workers have"

    @property
    def said_of_paths(self) -> str:
        set_ones = [field.value for _, field in self.paths if field.value]
        return ", ".join(set_ones[:3]) + (" …" if len(set_ones) > 3 else "") if set_ones else "not at all"

    @property
    def said_of_place(self) -> str:
        engine = self.values.get("engine", "")
        return f"in {self.values.get('namespace', '')}" + (f", on {engine}" if engine else "")


_EACH = ("cpu", "memory", "gpus", "extended")
_HEAD = (
    "name", "strategy", "code", "entry_point", "arguments", "environment", "retries", "priority", *DURATIONS,
    "success.rule", "success.percent", "namespace", "engine",
)  # fmt: skip


def cluster_words(values: Values) -> str:
    """The picture of the cluster, said in a sentence."""
    counts = counts_of(values)
    said = [count_words(role, counts[role]) for role in ("chief", "ps", "worker", "evaluator") if counts.get(role)]
    everybody = ", ".join(said) or "nothing yet"
    owners = "the parameter server" if counts.get("ps") == 1 else "the parameter servers"
    match values.get("strategy"):
        case "single":
            return "One task that runs the script by itself."
        case "between_graph":
            deed = (
                "the worker trains and sends its" if counts.get("worker") == 1 else "the workers train and send their"
            )
            return f"{everybody}: {deed} gradients to {owners}."
        case "parameter_server":
            return f"{everybody}: the chief hands out the steps, and the variables live on {owners}."
        case "multi_worker_mirrored":
            return f"{everybody}: after every step all of them average their gradients."
        case "in_graph":
            return f"{everybody}: they serve until they are stopped, and your own program drives them."
    return f"{everybody}."


def _section(name: str) -> str:
    """The folded section that a field is in; empty: in none."""
    first, last = name.partition(".")[0], name.rpartition(".")[2]
    if first == "roles":
        return "" if last == "replicas" else "resources"
    if first in ("success", "paths"):
        return first
    places = {"script": ("arguments", "environment"), "limits": (*WHOLES, *DURATIONS), "place": PLACE}
    return next((section for section, names in places.items() if name in names), "")


def _role_fields(strategy: str) -> set[str]:
    try:
        rules = ROLES[Strategy(strategy)]
    except ValueError:
        return set()
    return {f"roles.{role.value}.{one}" for role in rules for one in ("replicas", *_EACH)}


def _memory(text: str) -> str:
    try:
        return format_bytes(parse_memory(int(text) if text.isdecimal() else text or "1Gi"))
    except (NotAQuantity, ValueError):
        return text[:20]


def _count_lines(text: str) -> int:
    return sum(1 for line in text.split("\n") if line.strip())


def _some(counts: Sequence[tuple[int, str]]) -> str:
    words = [f"{count} {noun}{'s' if count != 1 else ''}" for count, noun in counts if count]
    return ", ".join(words) or "none"
