"""`yardmaster completion SHELL`: a script for bash, zsh or fish, and the hidden command that it asks.

Not what typer brings: its script for zsh evaluates what the program prints, and here that includes names which other
users chose. These scripts only read lines, and the shell quotes what it inserts.
"""

from __future__ import annotations

import shlex
import sys
from enum import StrEnum
from typing import Annotated

import typer

from yardmaster_client.cli.completing import Word, candidates

BASH = r"""# For ~/.bashrc: source <(yardmaster completion bash)
_yardmaster() {
    local value
    COMPREPLY=()
    while IFS= read -r value; do
        printf -v value %q "$value"
        COMPREPLY+=("$value")
    done < <("$1" _complete --line "${COMP_LINE:0:COMP_POINT}" 2>/dev/null)
}
complete -o default -F _yardmaster yardmaster
"""
ZSH = r"""#compdef yardmaster
# For ~/.zshrc, after compinit: source <(yardmaster completion zsh)
_yardmaster() {
    local line
    local -a values shown
    while IFS= read -r line; do
        values+=("${line%%$'\t'*}")
        shown+=("${line/$'\t'/  -- }")
    done < <("${words[1]}" _complete --described -- "${(@Q)words[1,CURRENT]}" 2>/dev/null)
    if (( ${#values} )); then
        compadd -l -d shown -a values
    else
        _files
    fi
}
compdef _yardmaster yardmaster
"""
FISH = r"""# For ~/.config/fish/completions/yardmaster.fish: yardmaster completion fish > that file
function __yardmaster
    set -l words (commandline -opc)
    $words[1] _complete --described -- $words (commandline -ct) 2>/dev/null
end
complete --command yardmaster --keep-order --arguments '(__yardmaster)'
"""
_BREAKS = ":=@"
"""Where bash cuts words: it replaces what follows the last of them alone."""


class Shell(StrEnum):
    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"


_SCRIPTS = {Shell.BASH: BASH, Shell.ZSH: ZSH, Shell.FISH: FISH}


def register(app: typer.Typer) -> None:
    app.command()(completion)
    app.command("_complete", hidden=True)(complete)


def completion(shell: Annotated[Shell, typer.Argument(help="bash, zsh or fish.")]) -> None:
    """Print what completes commands, options and names in your shell. For bash: source <(yardmaster completion bash)"""
    sys.stdout.write(_SCRIPTS[shell])


def complete(
    context: typer.Context,
    words: Annotated[list[str] | None, typer.Argument(help="The words so far; the last one is not complete.")] = None,
    line: Annotated[str | None, typer.Option(help="All of them as they were typed.")] = None,
    described: Annotated[bool, typer.Option("--described", help="With a description after a tab.")] = False,
) -> None:
    """What may follow, one per line. Asked by the scripts."""
    given = words_of(line) if line is not None else list(words or [""])
    found = candidates(context.find_root().command, given[1:])
    keep = max(given[-1].rfind(one) for one in _BREAKS) + 1 if line is not None else 0
    for one in found:
        sys.stdout.write(_as_line(Word(one.value[keep:], one.about), described) + "\n")


def words_of(line: str) -> list[str]:
    """A line as the shell would take it apart; the last word is empty after a space, and its quotes may be open."""
    if (len(line) - len(line.rstrip("\\"))) % 2:
        line = line[:-1]  # what it stands before is not there yet
    for close in ("", '"', "'"):
        try:
            words = shlex.split(line + close)
        except ValueError:
            continue
        is_new = line[-1:].isspace() and not line[:-1].endswith("\\") and not close
        return [*words, ""] if is_new or not words else words
    return [""]


def _as_line(word: Word, described: bool) -> str:
    return f"{word.value}\t{word.about}" if described and word.about else word.value
