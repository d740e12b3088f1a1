"""Which words may follow those that were typed: commands, options, fixed values, and names that the portal knows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from yardmaster_client.cli.completion_names import names_of

_PHASES = ("QUEUED", "STARTING", "RUNNING", "STOPPING", "SUCCEEDED", "FAILED", "STOPPED")
_FIXED = {
    ("completion", "shell"): ("bash", "zsh", "fish"),
    ("list", "--phase"): _PHASES,
    ("logs", "--level"): ("error", "warning", "info"),
    ("promote", "--to"): ("staging", "production", "archived"),
    ("start", "kind"): ("tensorboard", "jupyter", "spark_history"),
    ("login", "--scope"): ("read", "jobs", "data", "admin"),
    ("create", "--scope"): ("read", "jobs", "data", "admin"),
}
"""Values by the command's name and its parameter."""
_NAMED = {
    "job": "jobs",
    "jobs": "jobs",
    "namespace": "namespaces",
    "--namespace": "namespaces",
    "--dataset": "datasets",
    "image": "images",
    "--image": "images",
    "cluster": "spark_clusters",
    "--spark-cluster": "spark_clusters",
}
"""Which parameters are names of what."""
_SUBJECTS = ("code", "datasets", "models", "sessions")
"""Commands of these name one of their own in `reference`."""


@dataclass(frozen=True)
class Word:
    """One that may follow, and what it is."""

    value: str
    about: str = ""


@dataclass
class _Place:
    """Where in the command the words so far have come."""

    command: Any
    path: tuple[str, ...] = ()
    waiting: Any = None
    """An option that waits for its value."""
    arguments: int = 0
    only_arguments: bool = False

    def take(self, word: str) -> bool:
        """Whether there is such a command."""
        if self.waiting is not None:
            self.waiting = None
        elif word == "--" and not self.only_arguments:
            self.only_arguments = True
        elif word.startswith("-") and not self.only_arguments:
            option = self._option(word.partition("=")[0])
            self.waiting = option if option is not None and not option.is_flag and "=" not in word else None
        elif (commands := getattr(self.command, "commands", None)) is not None:
            if word not in commands:
                return False
            self.command, self.path = commands[word], (*self.path, word)
        else:
            self.arguments += 1
        return True

    def _option(self, name: str) -> Any:
        return next((one for one in self.options() if name in (*one.opts, *one.secondary_opts)), None)

    def options(self) -> list[Any]:
        return [one for one in self.command.params if one.param_type_name == "option"]

    def argument(self) -> Any:
        """The one that comes next; the last one again, where it takes any number."""
        found = [one for one in self.command.params if one.param_type_name == "argument"]
        if self.arguments < len(found):
            return found[self.arguments]
        return found[-1] if found and found[-1].nargs == -1 else None


def candidates(
    root: Any, words: Sequence[str], names: Callable[[str, str], Sequence[Word]] | None = None
) -> list[Word]:
    """What may stand in the place of the last word, which is not complete. Nothing: perhaps a file. `names` gives what
    the portal knows, by its subject and how it begins."""
    place = _Place(root)
    *before, last = words or [""]
    if not all(place.take(word) for word in before):
        return []
    found = list(_words(place, last, names or _of_the_portal))
    return [one for one in found if one.value.startswith(last)]


def _words(place: _Place, last: str, names: Callable[[str, str], Sequence[Word]]) -> Iterator[Word]:
    parameter = place.waiting
    if parameter is None and last.startswith("-") and not place.only_arguments:
        yield from _options(place)
        return
    if parameter is None and hasattr(place.command, "commands"):
        for name, command in sorted(place.command.commands.items()):
            if not command.hidden:
                yield Word(name, (command.help or "").partition(".")[0].replace("\n", " "))
        return
    parameter = parameter or place.argument()
    if parameter is not None:
        yield from _values(place.path, parameter, last, names)


def _options(place: _Place) -> Iterator[Word]:
    for option in place.options():
        for name in (*option.opts, *option.secondary_opts):
            if name.startswith("--") and not getattr(option, "hidden", False):
                yield Word(name, (option.help or "").replace("\n", " "))
    yield Word("--help", "Show this message and exit.")


def _values(
    path: tuple[str, ...], parameter: Any, last: str, names: Callable[[str, str], Sequence[Word]]
) -> Iterator[Word]:
    called = [*getattr(parameter, "opts", ()), parameter.name]
    for name in called:
        if (path[-1], name) in _FIXED:
            yield from map(Word, _FIXED[path[-1], name])
            return
    subject = next((_NAMED[name] for name in called if name in _NAMED), "")
    if not subject and parameter.name == "reference" and path[0] in _SUBJECTS:
        subject = path[0]
    if subject:
        yield from names(subject, last)


def _of_the_portal(subject: str, begins: str) -> list[Word]:
    return [Word(name, about) for name, about in names_of(subject, begins)]
