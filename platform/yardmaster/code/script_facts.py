"""What a training script says about itself, read from its syntax tree. Nothing is ever executed.

Only the entry point and those modules of the same code that it imports, directly or not, are read. Not here: what the
facts mean for a job (`preflight`).
"""

from __future__ import annotations

import ast
import posixpath
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from yardmaster.code.needed_imports import is_main_guard, needed_imports

LARGEST_FILE = 1_000_000
"""Characters. A larger Python file is generated, and would only cost time."""


@dataclass(frozen=True)
class Location:
    """Where in the code something stands."""

    file: str
    line: int


@dataclass(frozen=True)
class Call:
    """One call. `name` is the dotted name of what is called as far as imports tell (`tensorflow.distribute.Server`);
    what hangs on a value keeps the value's own name (`model.fit`, `?.fit`)."""

    name: str
    node: ast.Call
    place: Location

    @property
    def method(self) -> str:
        return self.name.rpartition(".")[2]

    def keyword(self, name: str) -> ast.expr | None:
        return next((one.value for one in self.node.keywords if one.arg == name), None)

    @property
    def has_open_keywords(self) -> bool:
        """Whether `**something` may bring any keyword."""
        return any(one.arg is None for one in self.node.keywords)

    def texts(self) -> list[str]:
        """The positional arguments that are constant texts."""
        return [one.value for one in self.node.args if isinstance(one, ast.Constant) and isinstance(one.value, str)]


@dataclass(frozen=True)
class Function:
    """A function that the code defines, with the dotted names of its decorators."""

    node: ast.FunctionDef
    decorators: tuple[str, ...]
    place: Location


@dataclass(frozen=True)
class Unreadable:
    """A file that Python cannot read."""

    place: Location
    message: str
    text: str
    """The line, as it stands."""


@dataclass
class Facts:
    """All that was found, over all files that were read."""

    imports: dict[str, Location] = field(default_factory=dict)
    """Modules, by dotted name, where they are first imported."""
    names: dict[str, Location] = field(default_factory=dict)
    """Dotted names that are used, where first."""
    keywords: set[str] = field(default_factory=set)
    calls: list[Call] = field(default_factory=list)
    functions: list[Function] = field(default_factory=list)
    needed: dict[str, Location] = field(default_factory=dict)
    """Modules that must be there: imported when the script starts, and not as one of two possibilities."""
    texts: list[tuple[str, Location]] = field(default_factory=list)
    """Constant texts that the program works with: no docstring, no help text, nothing that is only printed."""
    relative: list[tuple[int, Location]] = field(default_factory=list)
    """Relative imports that the entry point makes in any case, when it starts: how many dots they have."""
    unreadable: list[Unreadable] = field(default_factory=list)
    own_names: set[str] = field(default_factory=set)
    """Names that the code itself defines, which shadow built-in ones."""

    def uses(self, *endings: str) -> Location | None:
        """Where one of these dotted endings is used (`distribute.Server` matches `tensorflow.distribute.Server`)."""
        for name, place in self.names.items():
            if any(name == one or name.endswith(f".{one}") for one in endings):
                return place
        return None

    def imports_any(self, *modules: str) -> Location | None:
        """Where one of these modules, or a part of one, is imported."""
        for name, place in self.imports.items():
            if any(name == one or name.startswith(f"{one}.") for one in modules):
                return place
        return None

    def mentions(self, *words: str) -> bool:
        """Whether one of these words is within any constant text."""
        return any(word in text for text, _ in self.texts for word in words)


def read_script(files: Mapping[str, str], entry_point: str) -> Facts:
    """The facts about the entry point and what it imports of the same code."""
    facts, waiting, seen = Facts(), [entry_point], {entry_point}
    while waiting:
        path = waiting.pop()
        text = files[path]
        if len(text) > LARGEST_FILE:
            continue
        tree = _parse(path, text, facts)
        if tree is None:
            continue
        if path != entry_point:
            tree.body = [one for one in tree.body if not is_main_guard(one)]  # runs where the file is the script
        else:
            starts = (one for one in tree.body if isinstance(one, ast.ImportFrom) and one.level)
            facts.relative += [(one.level, Location(path, one.lineno)) for one in starts]
        module = _Module(path, tree, facts)
        module.read()
        folders = (posixpath.dirname(path), posixpath.dirname(entry_point), "")
        found = {one for name in module.imported for folder in folders for one in _files_of(name, folder, files)}
        waiting += sorted(found - seen)
        seen |= found
    return facts


def _parse(path: str, text: str, facts: Facts) -> ast.Module | None:
    try:
        with warnings.catch_warnings():
            # An odd escape in a user's script is no warning of ours.
            warnings.simplefilter("ignore")
            return ast.parse(text)
    except SyntaxError as error:
        line = error.lineno or 1
        lines = text.splitlines()
        written = lines[line - 1] if 0 < line <= len(lines) else ""
        facts.unreadable.append(Unreadable(Location(path, line), error.msg or "invalid syntax", written))
    except (ValueError, RecursionError, MemoryError) as error:
        facts.unreadable.append(Unreadable(Location(path, 1), str(error) or "nested too deeply", ""))
    return None


def _files_of(module: str, folder: str, files: Mapping[str, str]) -> Iterator[str]:
    base = posixpath.join(folder, module.replace(".", "/"))
    while base and base != folder:
        for path in (f"{base}.py", f"{base}/__init__.py"):
            if path in files:
                yield path
        base = posixpath.dirname(base)


class _Module:
    """One file's tree, read in three passes: imports and definitions, then what is not worked with, then the rest."""

    def __init__(self, path: str, tree: ast.Module, facts: Facts) -> None:
        self._path, self._tree, self._facts = path, tree, facts
        self._aliases: dict[str, str] = {}
        self.imported: set[str] = set()

    def read(self) -> None:
        nodes = list(ast.walk(self._tree))
        for name, line in needed_imports(self._tree):
            self._facts.needed.setdefault(name, Location(self._path, line))
        for node in nodes:
            self._read_import(node)
            self._read_definition(node)
        idle = {id(text) for node in nodes for text in self._idle_texts(node)}
        for node in nodes:
            self._read_use(node, idle)

    def _place(self, node: ast.AST) -> Location:
        return Location(self._path, getattr(node, "lineno", 1))

    def _read_import(self, node: ast.AST) -> None:
        if isinstance(node, ast.Import):
            for one in node.names:
                self._import(one.name, node)
                self._aliases[one.asname or one.name.partition(".")[0]] = (
                    one.name if one.asname else one.name.partition(".")[0]
                )
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                folder = posixpath.dirname(self._path).split("/")
                base = ".".join([*[part for part in folder[: len(folder) - node.level + 1] if part], base]).strip(".")
            self._import(base, node)
            for one in node.names:
                full = f"{base}.{one.name}".strip(".")
                self._import(full, node)
                self._aliases[one.asname or one.name] = full

    def _import(self, module: str, node: ast.AST) -> None:
        if module:
            self.imported.add(module)
            self._facts.imports.setdefault(module, self._place(node))

    def _read_definition(self, node: ast.AST) -> None:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            self._facts.own_names.add(node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            self._facts.own_names.add(node.id)
        elif isinstance(node, ast.arg):
            self._facts.own_names.add(node.arg)

    def _idle_texts(self, node: ast.AST) -> Iterator[ast.AST]:
        """Texts that are only there to be read by people, or as a fall-back for what the job sets."""
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            yield node.value
        elif isinstance(node, ast.Call):
            name = self._dotted(node.func)
            if name == "print" or name.rpartition(".")[2] in _TALK:
                for one in node.args:
                    yield from self._said(one)
            if name in ("os.environ.get", "os.getenv"):
                for one in node.args[1:]:
                    yield from ast.walk(one)
            for keyword in node.keywords:
                if keyword.arg in ("help", "description", "epilog", "usage"):
                    yield from ast.walk(keyword.value)

    def _said(self, node: ast.AST) -> Iterator[ast.AST]:
        """What of this is only said. What another call in it gets is worked with: `print(os.listdir("/data"))`."""
        if isinstance(node, ast.Call) and self._dotted(node.func).rpartition(".")[2] not in ("format", "join"):
            return
        yield node
        for one in ast.iter_child_nodes(node):
            yield from self._said(one)

    def _read_use(self, node: ast.AST, idle: set[int]) -> None:
        if isinstance(node, (ast.Attribute, ast.Name)):
            self._facts.names.setdefault(self._dotted(node), self._place(node))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in idle:
            self._facts.texts.append((node.value, self._place(node)))
        elif isinstance(node, ast.Call):
            self._facts.calls.append(Call(self._dotted(node.func), node, self._place(node)))
        elif isinstance(node, ast.keyword) and node.arg:
            self._facts.keywords.add(node.arg)
        elif isinstance(node, ast.FunctionDef):
            called = (one.func if isinstance(one, ast.Call) else one for one in node.decorator_list)
            decorators = tuple(self._dotted(one) for one in called)
            self._facts.functions.append(Function(node, decorators, self._place(node)))

    def _dotted(self, node: ast.AST) -> str:
        parts: list[str] = []
        while isinstance(node, ast.Attribute):
            parts.append(node.attr)
            node = node.value
        parts.append(self._aliases.get(node.id, node.id) if isinstance(node, ast.Name) else "?")
        return ".".join(reversed(parts))


_TALK = frozenset({"debug", "info", "warning", "warn", "error", "critical", "exception", "log"})
"""Methods that only say something."""
