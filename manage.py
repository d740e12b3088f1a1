"""Django's entry point. `platform/` is a source root: it goes on the path here, and is never a package itself."""

import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent / "platform"))

if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "portal.settings")
    from portal.cluster import choice

    os.environ.update(choice.settings_for_command(sys.argv, os.environ, Path(__file__).resolve().parent))
    from django.core.management import execute_from_command_line

    execute_from_command_line(sys.argv)
