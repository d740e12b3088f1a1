"""The `yardmaster` command: one module per subject, over the SDK.

Exit codes: 0 done, 1 the portal refused or a job failed, 2 wrong usage (also of a job file), 3 the portal does not
answer, 130 Ctrl-C. Results go to stdout, everything else to stderr; `--json` prints results for programs.
"""

from yardmaster_client.cli.main import main

__all__ = ["main"]
