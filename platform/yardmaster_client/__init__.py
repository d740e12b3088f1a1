"""The Python SDK of Yardmaster, and the `yardmaster` command (`cli`).

    from yardmaster_client import Yardmaster
    portal = Yardmaster.from_environment()
    job = portal.jobs.launch(spec)
    for line in portal.jobs.follow(job.id):
        print(line.text)

It speaks HTTP and WebSocket with the portal and knows nothing of its code. Every call raises `PortalError` when the
portal refuses (with `code`, `remedy` and the fields that are wrong) and `NotReachable` when there is no answer.
"""

from yardmaster_client.errors import FieldError, NotReachable, NotSignedIn, PortalError
from yardmaster_client.models import (
    Code,
    CodeVersion,
    Dataset,
    DatasetVersion,
    Job,
    LogGap,
    LogLine,
    Model,
    ModelVersion,
    Namespace,
)
from yardmaster_client.portal import Yardmaster
from yardmaster_client.version import VERSION as __version__

__all__ = [
    "Code",
    "CodeVersion",
    "Dataset",
    "DatasetVersion",
    "FieldError",
    "Job",
    "LogGap",
    "LogLine",
    "Model",
    "ModelVersion",
    "Namespace",
    "NotReachable",
    "NotSignedIn",
    "PortalError",
    "Yardmaster",
    "__version__",
]
