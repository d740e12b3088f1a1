"""Files of the job's inputs, read through the portal: for processes that have neither them nor the runner beside them,
such as the executors of a Spark cluster that was there before the job.

The portal is asked for one file at a time, when it is read, since the addresses that it signs hold for minutes.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
import time
import urllib.error
import urllib.parse
import urllib.request
from dataclasses import dataclass
from typing import Any, BinaryIO, Dict, Mapping, Optional

from yardmaster_runner.data.inputs import DataError, DataUnavailable

URL = "YARDMASTER_TASK_URL"
TOKEN = "YARDMASTER_TASK_TOKEN"
"""The variables of a process that may ask the portal for the job."""
TRIES = 5
TIMEOUT = 60.0
_PIECE = 1 << 20


@dataclass(frozen=True)
class Portal:
    """Who answers, and with which token. `role`: the task for which is asked."""

    url: str
    token: str
    role: str = "driver"

    def file(self, version: str, path: str) -> Dict[str, Any]:
        """What the portal says of one file of a version: its size, and an address. Raises `DataError` where it has none
        of this path, and `OSError`."""
        query = {"role": self.role, "index": 0, "after": path[:-1], "most": 2}
        while True:
            answer = self._asked("task/versions/%s/files/?%s" % (version, urllib.parse.urlencode(query)))
            for one in answer["files"]:
                if one["path"] == path:
                    return dict(one)
            if not answer.get("next") or str(answer["next"]) >= path:
                raise DataError("The portal has no file %s in this version of the dataset." % path)
            query["after"] = answer["next"]

    def listed(self, version: str) -> "list[str]":
        """The paths of all files of a version. Raises `OSError`."""
        found, after = [], ""
        while True:
            query = urllib.parse.urlencode({"role": self.role, "index": 0, "after": after})
            answer = self._asked("task/versions/%s/files/?%s" % (version, query))
            found += [str(one["path"]) for one in answer["files"]]
            if not answer.get("next"):
                return found
            after = str(answer["next"])

    def _asked(self, path: str) -> Dict[str, Any]:
        headers = {"Authorization": "Bearer %s" % self.token, "Accept": "application/json"}
        request = urllib.request.Request("%s/api/v1/%s" % (self.url.rstrip("/"), path), headers=headers)
        with _direct().open(request, timeout=TIMEOUT) as answer:
            found: Dict[str, Any] = json.loads(answer.read())
        return found


def portal_in(environment: Mapping[str, str]) -> Optional[Portal]:
    """The one that this process may ask; None: none."""
    url, token = environment.get(URL, ""), environment.get(TOKEN, "")
    return Portal(url, token) if url and token else None


def opened(portal: Portal, version: str, path: str) -> BinaryIO:
    """The file, whole and open, in a place that goes with it. Raises `DataError`, and `DataUnavailable` where the
    portal or its store did not answer."""
    pause = 1.0
    for left in reversed(range(TRIES)):
        try:
            return _copied(portal.file(version, path))
        except urllib.error.HTTPError as error:
            error.close()
            if error.code in (401, 403, 404):
                message = "The portal refused the file %s (HTTP %d): the job may be over."
                raise DataError(message % (path, error.code)) from None
            trouble: OSError = error
        except OSError as error:
            trouble = error
        if left:
            time.sleep(pause)
            pause *= 2
    message = "%s cannot be read through the portal at %s: %s. Executors have to reach that address: docs/spark.md."
    raise DataUnavailable(message % (path, portal.url, trouble))


def beginning(portal: Portal, version: str, path: str) -> Any:
    """The file as it comes, for who reads its first records alone. Raises `DataError` and `OSError`."""
    return _direct().open(portal.file(version, path)["url"], timeout=TIMEOUT)


def _copied(file: Mapping[str, Any]) -> BinaryIO:
    scratch = os.environ.get("SPARK_LOCAL_DIRS", "").split(",")[0] or None
    copy = tempfile.TemporaryFile(dir=scratch)  # noqa: SIM115 - the caller closes it
    try:
        with _direct().open(str(file["url"]), timeout=TIMEOUT) as source:
            shutil.copyfileobj(source, copy, _PIECE)
        if copy.tell() != file["size"]:
            raise OSError("it came with %d of %d bytes" % (copy.tell(), file["size"]))
        copy.seek(0)
    except BaseException:
        copy.close()
        raise
    return copy


def _direct() -> urllib.request.OpenerDirector:
    """Without the proxies of the environment: the portal's address is the one seen from the tasks."""
    return urllib.request.build_opener(urllib.request.ProxyHandler({}))
