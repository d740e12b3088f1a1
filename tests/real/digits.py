"""The digits of the example as shards, as `prepare.py` writes them: it imports TensorFlow, so once for a test run."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from portal.env import task_python
from tests.real.once import once

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "digits"
_PICTURE = """
import sys
from PIL import Image
from sklearn.datasets import load_sample_images
Image.fromarray(load_sample_images().images[0]).resize((320, 214)).save(sys.argv[1], "PNG")
"""


def digits(folder: Path, *options: str) -> Path:
    """They in this folder, which is made."""
    name = "digits" + "".join(options).replace("=", "-")
    command = [task_python(), str(EXAMPLE / "prepare.py")]
    made = once(name, lambda draft: subprocess.run([*command, str(draft), *options], check=True, capture_output=True))
    shutil.copytree(made, folder)
    return folder


def picture(file: Path) -> None:
    """A photograph, as a file that no training reads."""
    command = [task_python(), "-c", _PICTURE]
    shutil.copyfile(once("picture", lambda draft: subprocess.run([*command, draft], check=True)), file)
