"""What kinds of token a source text is made of, as Pygments sees it. Runs in a sandboxed process (`highlight`).

A grammar may take exponential time over a short text, and a file's name chooses the grammar. So there are few of them,
and none runs in the portal's own processes. Imports nothing of the portal.
"""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import Any

_BY_SUFFIX = {
    ".py": "python", ".pyi": "python", ".yaml": "yaml", ".yml": "yaml", ".json": "json", ".ipynb": "json",
    ".toml": "toml", ".ini": "ini", ".cfg": "ini", ".conf": "ini", ".md": "markdown", ".sh": "bash", ".bash": "bash",
    ".js": "javascript", ".mjs": "javascript", ".ts": "typescript", ".css": "css",
}  # fmt: skip
_BY_NAME = {"Makefile": "make", "Dockerfile": "docker", "BUILD": "python"}
_OPTIONS: dict[str, dict[str, Any]] = {"markdown": {"handlecodeblocks": False}}  # or a text names any grammar

# The first that fits wins. Twelve classes are what a reader can tell apart; a grammar has two hundred.
CLASSES = (
    ("Comment", "c"),
    ("Literal.String.Doc", "c"),
    ("Name.Decorator", "d"),
    ("Literal.String", "s"),
    ("Literal.Number", "n"),
    ("Keyword.Constant", "n"),
    ("Keyword", "k"),
    ("Operator.Word", "k"),
    ("Name.Function", "f"),
    ("Name.Class", "f"),
    ("Name.Tag", "k"),
    ("Name.Attribute", "d"),
    ("Name.Builtin", "b"),
    ("Name.Exception", "b"),
    ("Generic.Heading", "f"),
    ("Generic.Subheading", "f"),
)


def grammar_of(path: str) -> str:
    """The grammar for a file of this name; empty where it is shown plain."""
    file = PurePosixPath(path)
    return _BY_NAME.get(file.name) or _BY_SUFFIX.get(file.suffix.lower(), "")


def runs_of(grammar: str, text: str) -> list[tuple[int, int]]:
    """(place in `CLASSES` or -1, characters) of each stretch of the text, in order."""
    from pygments.lexers import get_lexer_by_name
    from pygments.token import string_to_tokentype

    kinds = [string_to_tokentype(name) for name, _ in CLASSES]
    lexer = get_lexer_by_name(grammar, stripnl=False, ensurenl=False, **_OPTIONS.get(grammar, {}))
    runs: list[tuple[int, int]] = []
    for token, piece in lexer.get_tokens(text):
        place = next((place for place, kind in enumerate(kinds) if token in kind), -1)
        if runs and runs[-1][0] == place:
            runs[-1] = (place, runs[-1][1] + len(piece))
        else:
            runs.append((place, len(piece)))
    return runs
