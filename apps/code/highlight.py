"""Source text as lines of HTML with classes for colours. Pure and bounded; what has no grammar stays plain.

Not here: the colours (`frontend/src/code.css` has one rule per class, for light and dark).
"""

from __future__ import annotations

from collections.abc import Iterator

from django.utils.html import escape
from django.utils.safestring import SafeString, mark_safe
from pygments.lexer import Lexer
from pygments.lexers import find_lexer_class_for_filename
from pygments.token import Token

LONGEST = 256 << 10
"""Characters up to which a text is coloured: about half a second's work."""
LONGEST_LINE = 5_000
"""Beyond this a line is data and not source; grammars can take very long over it."""

# The first that fits wins. Twelve classes are what a reader can tell apart; a grammar has two hundred.
CLASSES = (
    (Token.Comment, "c"),
    (Token.Literal.String.Doc, "c"),
    (Token.Name.Decorator, "d"),
    (Token.Literal.String, "s"),
    (Token.Literal.Number, "n"),
    (Token.Keyword.Constant, "n"),
    (Token.Keyword, "k"),
    (Token.Operator.Word, "k"),
    (Token.Name.Function, "f"),
    (Token.Name.Class, "f"),
    (Token.Name.Tag, "k"),
    (Token.Name.Attribute, "d"),
    (Token.Name.Builtin, "b"),
    (Token.Name.Exception, "b"),
    (Token.Generic.Heading, "f"),
    (Token.Generic.Subheading, "f"),
)


def highlight(path: str, text: str) -> list[SafeString]:
    """One piece of HTML per line of the text, without line ends. The text of all of them is the text, unchanged."""
    lines = text.split("\n")
    if lines[-1] == "":
        lines.pop()
    lexer = _lexer_for(path, text, lines)
    return list(_coloured(lexer, text, len(lines))) if lexer else [_safe(escape(line)) for line in lines]


def _lexer_for(path: str, text: str, lines: list[str]) -> Lexer | None:
    if len(text) > LONGEST or any(len(line) > LONGEST_LINE for line in lines):
        return None
    found = find_lexer_class_for_filename(path.rpartition("/")[2])
    return found(stripnl=False, ensurenl=False) if found else None


def _coloured(lexer: Lexer, text: str, count: int) -> Iterator[SafeString]:
    line: list[str] = []
    made = 0
    for kind, piece in lexer.get_tokens(text):
        before, *others = piece.split("\n")
        line.append(_marked(kind, before))
        for other in others:
            yield _safe("".join(line))
            made += 1
            line = [_marked(kind, other)]
    if made < count:
        yield _safe("".join(line))


def _marked(kind: object, piece: str) -> str:
    if not piece or piece.isspace():
        return piece
    name = next((name for token, name in CLASSES if kind in token), "")
    return f'<span class="{name}">{escape(piece)}</span>' if name else str(escape(piece))


def _safe(html: str) -> SafeString:
    return mark_safe(html)  # every piece of text in it has been escaped
