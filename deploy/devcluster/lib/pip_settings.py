"""Write pip's settings on this machine, from files and environment alike, as one file; print the folders they name.

Usage: pip_settings.py FILE. An image is built with the file mounted, so that nothing of it ends up in the image.
"""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path

# What `pip config list` calls a source, weakest first. A setting of a command (`install.index-url`) keeps its section.
ENVIRONMENT = ":env:"


def read_settings() -> dict[str, dict[str, str]]:
    """Section and name to value; the environment's come last in pip's own list, and win."""
    listed = subprocess.run(
        [sys.executable, "-m", "pip", "config", "list"], check=True, capture_output=True, text=True
    ).stdout
    sections: dict[str, dict[str, str]] = {}
    for line in sorted(listed.splitlines(), key=lambda one: one.startswith(ENVIRONMENT)):
        key, _, value = line.partition("=")
        section, _, name = key.partition(".")
        section = "global" if section == ENVIRONMENT else section
        sections.setdefault(section, {})[name] = ast.literal_eval(value)
    return sections


def as_file(sections: dict[str, dict[str, str]]) -> str:
    lines = []
    for section, settings in sections.items():
        lines.append(f"[{section}]")
        # A value of several lines goes on where a line is indented; a percent sign begins a reference, unless doubled.
        lines += [
            f"{name} = {value.strip()}".replace("\n", "\n    ").replace("%", "%%") for name, value in settings.items()
        ]
    return "\n".join(lines) + "\n"


def local_folders(sections: dict[str, dict[str, str]]) -> list[str]:
    words = [word for settings in sections.values() for value in settings.values() for word in value.split()]
    return sorted({word for word in words if word.startswith("/") and os.path.isdir(word)})


def main() -> None:
    sections = read_settings()
    target = Path(sys.argv[1])
    target.touch(mode=0o600)
    target.write_text(as_file(sections))
    sys.stdout.writelines(folder + "\n" for folder in local_folders(sections))


if __name__ == "__main__":
    main()
