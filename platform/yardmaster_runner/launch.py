"""What the script is started with: its command line, its environment, its folders. Pure.

Not here: starting it (`script`), and what TensorFlow must receive about its peers (`cluster`).
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from typing import Dict, List, Mapping, Optional, Tuple

from yardmaster_runner import offered, own_programs, own_python, shell_command
from yardmaster_runner.cluster import BATCH, classic_flags, distribution_environment, tf_config
from yardmaster_runner.entry_point import is_notebook, module_of
from yardmaster_runner.expansion import expanded_all, expanded_values
from yardmaster_runner.in_script import notebook, tf1
from yardmaster_runner.order import Order
from yardmaster_runner.settings import Settings
from yardmaster_runner.spark import task as spark

SERVER_PROGRAM = os.path.join(os.path.dirname(os.path.abspath(__file__)), "programs", "serve.py")
"""In a folder of its own, which becomes the first place to import from: no module of the runner may be found there."""

SECRETS_DIR = "SECRETS_DIR"


@dataclass(frozen=True)
class Folders:
    """Where the script finds what it needs and leaves what it makes."""

    code: str
    data: str
    log: str
    model: str
    output: str
    secrets: str
    """Only there while the script runs, and only where it has files of secrets."""

    @classmethod
    def of(cls, settings: Settings) -> "Folders":
        def below(name: str) -> str:
            return os.path.join(settings.work_dir, name)

        code, data, model, output, secrets = (below(one) for one in ("code", "data", "model", "output", "secrets"))
        return cls(code=code, data=data, log=settings.log_dir, model=model, output=output, secrets=secrets)

    @property
    def of_script(self) -> Tuple[str, ...]:
        """Those that are made before it starts."""
        return (self.code, self.data, self.log, self.model, self.output)

    def of_input(self, name: str) -> str:
        """A named input has a folder below the data folder; one without a name is the data folder."""
        return os.path.join(self.data, name) if name else self.data


def command(settings: Settings, order: Order, folders: Folders) -> List[str]:
    """`python -u entry_point [paths] [classic flags] [arguments]`. The user's own arguments come last and so win.
    A command line goes to the shell as it is. Where there is no script, a program of ours: it learns all from its
    environment."""
    if order.runs_server:
        return [settings.python, "-u", SERVER_PROGRAM]
    if order.program:
        return [settings.python, "-u", "-m", own_programs.MODULES[order.program]]
    if order.is_spark and settings.role == "executor":
        return spark.executor(settings)
    if order.command:
        return shell_command.through_shell(order.command)
    paths = ["%s=%s" % given for given in _path_flags(order, folders)]
    flags = classic_flags(order.strategy, settings.cluster, settings.role, settings.index)
    known = {**_user_variables(settings, order, folders), **_own_variables(settings, order, folders)}
    script = [settings.python, "-u", *_started(order), *paths, *flags, *expanded_all(order.arguments, known)]
    return spark.driver(settings, script) if order.is_spark else script


def _started(order: Order) -> List[str]:
    """What Python starts: a module, the program that runs a notebook, or the script's file."""
    module = module_of(order.entry_point)
    if is_notebook(order.entry_point):
        return ["-m", notebook.__name__, order.entry_point]
    return ["-m", module] if module else [order.entry_point]


def _folder_variables(order: Order, folders: Folders) -> Dict[str, str]:
    """The variables that tell the script its folders, by the names that the job gives them."""
    given = _given(order, folders)
    found = {order.paths[kind + "_env"]: folder for kind, folder in given if order.paths[kind + "_env"]}
    return {**found, SECRETS_DIR: folders.secrets} if any(one.file for one in order.secrets) else found


def _own_variables(settings: Settings, order: Order, folders: Folders) -> Dict[str, str]:
    """What the job's arguments and variables may name of ours: the folders, and which task of the cluster this is. No
    value of a secret: command lines are there for all to read."""
    known = {
        **_secret_paths(order, folders),
        **_folder_variables(order, folders),
        "YARDMASTER_ROLE": settings.role,
        "YARDMASTER_INDEX": str(settings.index),
        "YARDMASTER_TASKS": str(sum(order.replicas.values())),
    }
    config = _tf_config(settings, order)
    return known if config is None else {**known, "TF_CONFIG": config}


def _user_variables(settings: Settings, order: Order, folders: Folders) -> Dict[str, str]:
    """The job's own variables, with what they name put in."""
    return expanded_values(order.environment, _own_variables(settings, order, folders))


def _tf_config(settings: Settings, order: Order) -> Optional[str]:
    replicas = sum(order.replicas.values())
    config = tf_config(order.strategy, settings.cluster, settings.role, settings.index, replicas)
    return None if config is None else json.dumps(config)


def _secret_variables(order: Order, folders: Folders) -> Dict[str, str]:
    values = {one.env: one.value for one in order.secrets if one.env and not one.file}
    return {**values, **_secret_paths(order, folders)}


def _secret_paths(order: Order, folders: Folders) -> Dict[str, str]:
    """The variables that have the path of a secret's file."""
    files = ((one.env, one.file) for one in order.secrets if one.env and one.file)
    return {env: os.path.join(folders.secrets, *file.split("/")) for env, file in files}


def _given(order: Order, folders: Folders) -> List[Tuple[str, str]]:
    """The folders that the script is told of; one for what is published only where something is."""
    given = [("data", folders.data), ("log", folders.log), ("model", model_folder(order, folders))]
    return [*given, ("output", folders.output)] if order.publishes else given


def model_folder(order: Order, folders: Folders) -> str:
    """Where the script writes its model: into the log directory, where it has one directory for both."""
    return folders.log if order.has_one_dir else folders.model


def _path_flags(order: Order, folders: Folders) -> List[Tuple[str, str]]:
    """The flags with their folders, each once."""
    given = [(order.paths[kind + "_flag"], folder) for kind, folder in _given(order, folders)]
    return list(dict.fromkeys((flag, folder) for flag, folder in given if flag))


def environment(settings: Settings, order: Order, folders: Folders, inherited: Mapping[str, str]) -> Dict[str, str]:
    """What the script sees: the engine's environment without the way to the token, the user's, ours, the strategy's."""
    own = own_python.variables(settings.work_dir, inherited) if settings.has_own_python else {}
    result = {**inherited, **own, **_user_variables(settings, order, folders)}
    for name in ("YARDMASTER_TOKEN_FILE", "YARDMASTER_NUDGE_FILE"):
        result.pop(name, None)
    result.update(_secret_variables(order, folders))
    result.update(_folder_variables(order, folders))
    ours = [] if order.runs_server else [offered.folder_in(settings.work_dir)]
    result["PYTHONPATH"] = os.pathsep.join([folders.code, *ours, *_foreign_paths(result.get("PYTHONPATH", ""))])
    if ours:
        result[offered.VARIABLE] = offered.inputs_file_in(settings.work_dir)
    result.update(_for_entry(settings, order, folders, result))
    if order.program:
        result["PYTHONPATH"] = os.pathsep.join([own_programs.runner_root(), result["PYTHONPATH"]])
        result.update(_orders_of_program(settings, order, folders))
    if order.strategy == BATCH:
        result["YARDMASTER_TASKS"] = str(sum(order.replicas.values()))
    config = _tf_config(settings, order)
    if config is not None:
        result["TF_CONFIG"] = config
    result.update(distribution_environment(order.strategy, order.environment))
    return result


def _for_entry(settings: Settings, order: Order, folders: Folders, result: Mapping[str, str]) -> Dict[str, str]:
    """What TensorFlow 1 mode, a notebook and a command add: the hook at Python's start and the Keras that has version
    1's layers; parameters; the task's Python by name."""
    found = shell_command.variables(settings.python, result) if order.command else {}
    if is_notebook(order.entry_point):
        keep = _executed_notebook(settings, order, folders)
        found[notebook.VARIABLE] = json.dumps({"parameters": dict(order.parameters), "keep": keep})
    if order.tf1:
        found["PYTHONPATH"] = os.pathsep.join([offered.tf1_folder_in(settings.work_dir), result["PYTHONPATH"]])
        found["TF_USE_LEGACY_KERAS"] = result.get("TF_USE_LEGACY_KERAS", "1")
        found[tf1.VARIABLE] = folders.code
    return found


def _executed_notebook(settings: Settings, order: Order, folders: Folders) -> str:
    """Where it is kept, among the outputs: that of the task that decides, and of each where the tasks are independent.
    Empty: nowhere."""
    name = order.entry_point.rpartition("/")[2]
    if order.strategy == BATCH:
        name = "%s.%s-%d.ipynb" % (name[: -len(".ipynb")], settings.role, settings.index)
    elif not order.is_decided_by(settings.role, settings.index):
        return ""
    return os.path.join(folders.log, "notebooks", name)


def _orders_of_program(settings: Settings, order: Order, folders: Folders) -> Dict[str, str]:
    orders = own_programs.Orders(
        options=dict(order.options),
        data_dir=folders.data,
        code_dir=folders.code if order.code is not None else "",
        log_dir=folders.log,
        model_dir=folders.model,
        output_dir=folders.output,
        task=settings.index,
        tasks=order.replicas.get(settings.role, 1),
        listing=own_programs.listing_in(settings.work_dir),
        inputs={one.name: one.version for one in order.inputs},
        cache_dir=settings.cache_dir,
        data_volume=settings.data_volume,
        log_volume=settings.log_volume,
        home_dir=settings.home_dir,
    )
    return own_programs.to_variable(orders)


def _foreign_paths(path: str) -> List[str]:
    """The module search path without the folder that the runner was found in: its neighbours are not the script's.
    What the script may import of the runner lies in a folder of its own (`offered`)."""
    here = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    return [one for one in path.split(os.pathsep) if one and os.path.abspath(one) != here]
