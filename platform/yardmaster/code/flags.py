"""Which flags a script's own parser knows: argparse, absl and TensorFlow flags, click, and simple typer commands.

Not here: which of them mean data, logs or the model (`path_flags`).
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from yardmaster.code.script_facts import Call, Facts, Function, Location

_OTHER_PARSERS = (
    "fire", "docopt", "hydra", "tyro", "simple_parsing", "plac", "jsonargparse", "configargparse", "tap", "sacred",
)  # fmt: skip
"""Libraries whose flags are made while the script runs."""
_NO_VALUE = frozenset({"store_true", "store_false", "store_const", "append_const", "count", "help", "version"})
_NOT_TEXT = frozenset({"int", "float", "bool", "complex"})
_OPEN_NARGS = frozenset({"?", "*", "..."})


@dataclass(frozen=True)
class Flag:
    """One flag, or one positional argument (`is_positional`)."""

    names: tuple[str, ...]
    place: Location
    is_required: bool = False
    is_positional: bool = False
    takes_value: bool = True
    is_text: bool = True
    """Whether any text may be its value: no number, no choice among words."""
    default: str | None = None
    """Its default, where that is a constant text."""

    @property
    def name(self) -> str:
        """The long one, as one writes it."""
        return next((one for one in self.names if one.startswith("--")), self.names[0])


@dataclass(frozen=True)
class Parser:
    """What is known of the script's parser. `is_known`: these are all its flags. `is_strict`: a flag that it does not
    know ends the script. `reads_argv`: it reads the task's command line, so that required flags must be there."""

    flags: tuple[Flag, ...] = ()
    is_known: bool = True
    is_strict: bool = False
    reads_argv: bool = True
    has_prefixes: bool = False
    """It takes the beginning of a flag's name for the flag (argparse)."""
    is_one: bool = True
    """No other parser in the code may be the one that runs."""

    def knows(self, flag: str) -> bool:
        return any(name == flag or (self.has_prefixes and name.startswith(flag)) for name in self.names)

    @property
    def names(self) -> list[str]:
        return [name for one in self.flags for name in one.names if not one.is_positional]

    def named(self, flag: str) -> Flag | None:
        return next((one for one in self.flags if flag in one.names and not one.is_positional), None)


NOT_KNOWN = Parser(is_known=False)


def parser_of(facts: Facts) -> Parser:
    """The script's parser; one without flags where it has none and reads no command line."""
    found = [one for one in (_argparse(facts), _click(facts), _typer(facts), _absl(facts)) if one is not None]
    if found:
        strict = [one for one in found if one.is_strict]
        return (strict or found)[0]
    if facts.imports_any(*_OTHER_PARSERS) or facts.uses("sys.argv", "HfArgumentParser"):
        return NOT_KNOWN
    return Parser(reads_argv=False)


def given_in(arguments: Sequence[str], parser: Parser) -> tuple[set[str], int]:
    """The flags that these arguments give, and how many positional arguments."""
    flags, positional, skips = set(), 0, False
    for one in arguments:
        if skips:
            skips = False
            continue
        if one.startswith("-") and len(one) > 1 and not one[1:2].isdigit():
            name, equals, _ = one.partition("=")
            name = name.partition(" ")[0]
            flags.add(name)
            known = parser.named(name)
            skips = not equals and " " not in one and (known is None or known.takes_value)
        else:
            positional += 1
    return flags, positional


def _argparse(facts: Facts) -> Parser | None:
    adds = [call for call in facts.calls if call.method == "add_argument"]
    makes = [call for call in facts.calls if call.method == "ArgumentParser"]
    parses = [call for call in facts.calls if call.method in ("parse_args", "parse_known_args")]
    if not adds and not (makes and parses):
        return None
    is_open = any(not call.texts() for call in adds)
    is_open |= any(call.method in ("add_subparsers", "HfArgumentParser") for call in facts.calls)
    is_open |= any(call.keyword("parents") is not None for call in makes)
    reading = [call for call in parses if _reads_argv(call)]
    return Parser(
        flags=tuple(_of_add_argument(call) for call in adds if call.texts()),
        is_known=not is_open,
        is_strict=bool(adds or makes) and bool(reading) and all(call.method == "parse_args" for call in parses),
        reads_argv=bool(reading),
        has_prefixes=True,
        is_one=len(makes) <= 1,
    )


def _reads_argv(call: Call) -> bool:
    """`parse_args()`, also of a parameter that is None by default; not `parse_args([])`."""
    return not call.node.args or isinstance(call.node.args[0], (ast.Name, ast.Subscript, ast.Attribute))


def _of_add_argument(call: Call) -> Flag:
    options = tuple(text for text in call.texts() if text.startswith("-"))
    action = _text_of(call.keyword("action"))
    nargs = _text_of(call.keyword("nargs")) or _last_name(call.keyword("nargs"))
    is_open = nargs in _OPEN_NARGS or nargs == "REMAINDER"
    return Flag(
        names=options or (call.texts()[0],),
        place=call.place,
        is_required=_is_true(call.keyword("required")) if options else not is_open,
        is_positional=not options,
        takes_value=action not in _NO_VALUE and "Boolean" not in _last_name(call.keyword("action")),
        is_text=action not in _NO_VALUE and _takes_text(call),
        default=_text_of(call.keyword("default")),
    )


def _takes_text(call: Call) -> bool:
    return _last_name(call.keyword("type")) not in _NOT_TEXT and call.keyword("choices") is None


def _absl(facts: Facts) -> Parser | None:
    defines = [call for call in facts.calls if call.method.startswith("DEFINE_")]
    if not defines and not facts.uses("app.run"):
        return None
    marked = {text for call in facts.calls if "flag" in call.method for text in _marked(call)}
    flags = [_of_define(call) for call in defines if call.texts()]
    return Parser(
        flags=tuple(replace(one, is_required=one.is_required or one.name[2:] in marked) for one in flags),
        is_known=all(call.texts() for call in defines),
        is_strict=facts.uses("app.run") is not None,
    )


def _marked(call: Call) -> Iterable[str]:
    if call.method == "mark_flag_as_required":
        return call.texts()
    listed = next(iter(call.node.args), None) if call.method == "mark_flags_as_required" else None
    return [text for one in listed.elts if (text := _text_of(one))] if isinstance(listed, (ast.List, ast.Tuple)) else ()


def _of_define(call: Call) -> Flag:
    default = call.keyword("default") or next(iter(call.node.args[1:2]), None)
    return Flag(
        names=(f"--{call.texts()[0]}",),
        place=call.place,
        is_required=_is_true(call.keyword("required")),
        takes_value=call.method not in ("DEFINE_bool", "DEFINE_boolean"),
        is_text=call.method in ("DEFINE_string", "DEFINE_list", "DEFINE_multi_string"),
        default=_text_of(default),
    )


def _click(facts: Facts) -> Parser | None:
    of_click = [call for call in facts.calls if call.name.startswith("click.")]
    made = [call for call in of_click if call.method in ("option", "argument")]
    if not made:
        return None
    is_open = any(call.method in ("group", "Group", "MultiCommand") for call in of_click)
    return Parser(
        flags=tuple(_of_click(call) for call in made if call.texts()),
        is_known=not is_open and all(call.texts() for call in made),
        is_strict=not is_open and "ignore_unknown_options" not in facts.keywords | {text for text, _ in facts.texts},
        is_one=sum(call.method == "command" for call in of_click) <= 1,
    )


def _of_click(call: Call) -> Flag:
    options = tuple(text.partition("/")[0] for text in call.texts() if text.startswith("-"))
    is_positional = call.method == "argument"
    required, default = call.keyword("required"), call.keyword("default")
    needed = required is None and default is None and _text_of(call.keyword("envvar")) is None
    many = isinstance(call.keyword("nargs"), ast.UnaryOp)
    return Flag(
        names=options or (call.texts()[0],),
        place=call.place,
        is_required=_is_true(required) or (is_positional and needed and not many),
        is_positional=is_positional,
        takes_value=not _is_true(call.keyword("is_flag")),
        is_text=not _is_true(call.keyword("is_flag")) and _takes_text(call),
        default=_text_of(default),
    )


def _typer(facts: Facts) -> Parser | None:
    if not facts.imports_any("typer"):
        return None
    run = {_last_name(one) for call in facts.calls if call.name == "typer.run" for one in call.node.args}
    commands = [one for one in facts.functions if one.node.name in run or any(map(_is_command, one.decorators))]
    if not commands:
        return NOT_KNOWN
    flags = tuple(flag for one in commands for flag in _of_command(one))
    return Parser(flags, is_known=len(commands) == 1, is_strict=len(commands) == 1)


def _is_command(decorator: str) -> bool:
    return decorator.endswith(".command") and not decorator.startswith("click.")


def _of_command(one: Function) -> Iterable[Flag]:
    spec = one.node.args
    missing: list[ast.expr | None] = [None] * (len(spec.args) - len(spec.defaults))
    pairs = [
        *zip(spec.args, [*missing, *spec.defaults], strict=True),
        *zip(spec.kwonlyargs, spec.kw_defaults, strict=True),
    ]
    return [_of_parameter(argument, default, one.place) for argument, default in pairs]


def _of_parameter(argument: ast.arg, default: ast.expr | None, place: Location) -> Flag:
    """A parameter without a default is a positional argument, one with a default an option, unless `typer.Option` or
    `typer.Argument` says otherwise."""
    given = [node for node in (default, argument.annotation) if node is not None]
    calls = [node for one in given for node in ast.walk(one) if isinstance(node, ast.Call)]
    option = next((call for call in calls if _last_name(call.func) == "Option"), None)
    said = option or next((call for call in calls if _last_name(call.func) == "Argument"), None)
    value = default if said is None or default is not said else next(iter(said.args), None)
    is_required = value is None or (isinstance(value, ast.Constant) and value.value is ...)
    is_positional = option is None and (said is not None or default is None)
    names = [text for one in (option.args if option else ()) if (text := _text_of(one)) and text.startswith("-")]
    kind = argument.annotation
    kinds = {one.id for one in ast.walk(kind) if isinstance(one, ast.Name)} if kind else set()
    name = argument.arg if is_positional else f"--{argument.arg.replace('_', '-')}"
    return Flag(
        names=tuple(names) or (name,),
        place=Location(place.file, argument.lineno),
        is_required=is_required,
        is_positional=is_positional,
        takes_value="bool" not in kinds,
        is_text=not kinds & _NOT_TEXT,
        default=_text_of(value),
    )


def _is_true(node: ast.expr | None) -> bool:
    return isinstance(node, ast.Constant) and node.value is True


def _text_of(node: ast.expr | None) -> str | None:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else None


def _last_name(node: ast.expr | None) -> str:
    """The last part of a dotted name; empty where it is none."""
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""
