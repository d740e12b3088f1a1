"""What a container runs, as an entry point with arguments, or as a command for the shell."""

from __future__ import annotations

import posixpath
import re
import shlex
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from yardmaster.job.spec_texts import path_is_inside
from yardmaster_runner.entry_point import module_of

_PYTHON = re.compile(r"(?:.*/)?python[0-9.]*")
_SHELLS = ("sh", "bash", "dash", "ash")
_WITH_VALUE = ("-W", "-X")
_FLAG_ONLY = re.compile(r"-[BEIOSbdisquvx]+")
_SHELL_SIGNS = re.compile(r"[;&|<>`$(){}*?~#\n\\]|\[")
_NAME = "[A-Za-z_][A-Za-z0-9_]*"
_DOLLAR = re.compile(rf"\$(?:(\$)|(\({_NAME}\))|(?=({_NAME}|\{{{_NAME}\}})))")
_FILE = "-r"
_PIP_FLAGS = ("-q", "--quiet", "--no-cache-dir", "-U", "--upgrade", "--user", "--no-input")


@dataclass(frozen=True)
class Entry:
    """What is run: an entry point with its arguments, or a command."""

    entry_point: str = ""
    arguments: tuple[str, ...] = ()
    command: str = ""
    requirements: tuple[str, ...] = ()
    """Packages that the command installed before."""
    moved_from: str = ""
    """The path of the script in the image, where it is another than the entry point."""
    to_add: tuple[str, ...] = ()
    """The same, where the code's requirements.txt was installed, too: it has to name them."""
    installs: bool = False


def entry_of(argv: Sequence[str], folders: Sequence[str], variables: Collection[str]) -> Entry:
    """What this command line runs. `folders`: those of the image that hold the code, such as the working directory;
    `variables`: the names that Kubernetes puts into `$(NAME)`."""
    line = _shell_line(argv)
    if line is not None:
        return _of_line(_for_shell(line, variables), folders)
    found = _of_python([as_argument(one) for one in argv], folders)
    return found or Entry(command=_for_shell(shlex.join(argv), variables, quoted=True))


def as_argument(text: str) -> str:
    """A text in which Kubernetes expands `$(NAME)` alone, as an argument in which `$NAME` and `${NAME}` count, too."""
    return _DOLLAR.sub(lambda found: found[0] if found[1] or found[2] else "$$", text)


def _for_shell(text: str, variables: Collection[str], quoted: bool = False) -> str:
    """What Kubernetes expands before the shell sees it. Of `$(NAME)` a shell would run a command."""

    def expanded(found: re.Match[str]) -> str:
        if found[1]:
            return "$"
        name = (found[2] or "")[1:-1]
        if name not in variables:
            return found[0]
        return f"'\"${{{name}}}\"'" if quoted else f"${{{name}}}"

    return _DOLLAR.sub(expanded, text)


def _shell_line(argv: Sequence[str]) -> str | None:
    """The line of `sh -c LINE`; None where it is another command, or the line has arguments of its own."""
    if len(argv) != 3 or posixpath.basename(argv[0]) not in _SHELLS:
        return None
    is_line = re.fullmatch(r"-[elux]*c", argv[1]) is not None
    return argv[2] if is_line else None


def _of_line(line: str, folders: Sequence[str]) -> Entry:
    """A line that only installs packages, changes the folder and starts Python is an entry point; any other stays."""
    whole = Entry(command=line.strip())
    *before, last = [one.strip() for one in re.split(r"&&|;(?=\s|$)|\n", line.strip().rstrip(";")) if one.strip()] or [
        ""
    ]
    packages: list[str] = []
    for step in before:
        words = _words(step)
        if words is not None and words[:1] == ["cd"] and len(words) == 2:
            folders = [posixpath.join(folders[0] if folders else "/", words[1]), *folders]
        elif words is not None and words[0] == "set":
            continue
        elif words is None or (asked := _installed(words)) is None:
            return whole
        else:
            packages += asked
    words = _words(last)
    found = None if words is None else _of_python(words[1:] if words[:1] == ["exec"] else words, folders)
    if found is None:
        return whole
    has_installed = any("pip" in step for step in before)
    names = tuple(one for one in packages if one != _FILE)
    kept, to_add = ((), names) if _FILE in packages else (names, ())
    return replace(found, requirements=kept, to_add=to_add, installs=has_installed)


def _words(step: str) -> list[str] | None:
    """The words of a plain command; None where the shell would do more with it."""
    if _SHELL_SIGNS.search(step):
        return None
    try:
        return shlex.split(step)
    except ValueError:
        return None


def _installed(words: Sequence[str]) -> list[str] | None:
    """The packages of `pip install`, and `-r` for the requirements file of the code. None: it is something else."""
    if words and _PYTHON.fullmatch(words[0]) and words[1:2] == ["-m"]:
        words = words[2:]
    if len(words) < 3 or posixpath.basename(words[0]) not in ("pip", "pip3") or words[1] != "install":
        return None
    found, rest = [], list(words[2:])
    while rest:
        word = rest.pop(0)
        if word in ("-r", "--requirement") and rest and posixpath.basename(rest[0]) == "requirements.txt":
            rest.pop(0)
            found.append(_FILE)
        elif word in _PIP_FLAGS:
            continue
        elif word.startswith(("-", ".")) or "/" in word:
            return None
        else:
            found.append(word)
    return found


def _of_python(words: Sequence[str], folders: Sequence[str]) -> Entry | None:
    """`python train.py …` and `python -m package.train …`; None for anything else."""
    if not words or not _PYTHON.fullmatch(words[0]):
        return _of_script(words, folders) if words and words[0].endswith(".py") else None
    rest = list(words[1:])
    while rest and rest[0].startswith("-") and rest[0] != "-m":
        if rest[0] in _WITH_VALUE and len(rest) > 1:
            rest = rest[2:]
        elif _FLAG_ONLY.fullmatch(rest[0]):
            rest = rest[1:]
        else:
            return None
    if rest[:1] == ["-m"]:
        module = f"-m {rest[1]}" if len(rest) > 1 else ""
        return Entry(module, tuple(rest[2:])) if module_of(module) else None
    return _of_script(rest, folders) if rest else None


def _of_script(words: Sequence[str], folders: Sequence[str]) -> Entry | None:
    path, is_moved = path_in_code(words[0], folders)
    if not path.endswith((".py", ".ipynb")) or not path_is_inside(path):
        return None
    return Entry(path, tuple(words[1:]), moved_from=words[0] if is_moved else "")


def path_in_code(path: str, folders: Sequence[str]) -> tuple[str, bool]:
    """A path of the image as one of the code, and whether that is a guess: below one of the folders it keeps what
    follows, from anywhere else its name alone is left."""
    plain = posixpath.normpath(path)
    if not plain.startswith(("/", "../")):
        return plain, False
    for folder in sorted(folders, key=len, reverse=True):
        base = posixpath.normpath(folder).rstrip("/")
        if base and plain.startswith(f"{base}/"):
            return plain[len(base) + 1 :], True
    return posixpath.basename(plain), True
