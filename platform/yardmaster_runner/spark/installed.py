"""Where Spark and Java are in a task, or what is missing, in words that say what to install."""

from __future__ import annotations

import importlib.util
import os
import shutil
import socket
from dataclasses import dataclass
from typing import Dict, List, Mapping, Optional

from yardmaster_runner.in_script import spark_host
from yardmaster_runner.spark import granted, registered, shipped
from yardmaster_runner.spark.cluster import EVENTS, FOLDER, LOCAL_IP, LOGGING, Cluster, as_text, settings, settings_in
from yardmaster_runner.spark.paths import without_runner

OWN_SETTINGS = "spark-defaults.conf"
EVERYWHERE = "0.0.0.0"
"""Where the portal's machine is reached by an address that is not its own."""
_JAVA = "Spark needs Java 17 or later, and there is none. Install it where tasks run (Debian: openjdk-17-jre-headless)."
_PYSPARK = "Spark needs the package pyspark, and the task's Python has none. Add it to the packages of the job."


class NotInstalled(Exception):
    """Spark or Java is missing. The message says what to install."""


@dataclass(frozen=True)
class Installed:
    """Where Spark is. `path`: what has to stand in `PYTHONPATH`, empty where the task's Python has it."""

    home: str
    path: str

    @property
    def spark_class(self) -> List[str]:
        """The program that starts one of Spark's classes. Through bash: a wheel keeps no permissions."""
        return ["bash", os.path.join(self.home, "bin", "spark-class")]


def has_java(environment: Mapping[str, str]) -> bool:
    """Whether Spark's programs find one: that of `JAVA_HOME`, or else by the path."""
    home = environment.get("JAVA_HOME", "")
    java = os.path.join(home, "bin", "java") if home else shutil.which("java", path=environment.get("PATH"))
    return bool(java) and os.access(str(java), os.X_OK)


def find(environment: Mapping[str, str]) -> Installed:
    """What is here. A pyspark that the job itself has installed comes before the engine's. Raises `NotInstalled`."""
    if not has_java(environment):
        raise NotInstalled(_JAVA)
    folder = environment.get(FOLDER, "")
    own = importlib.util.find_spec("pyspark")
    if own is not None and own.origin:
        return Installed(os.path.dirname(own.origin), "")
    home = os.path.join(folder, "pyspark")
    if folder and os.path.isfile(os.path.join(home, "bin", "spark-class")):
        return Installed(home, folder)
    raise NotInstalled(_PYSPARK)


def prepared(
    cluster: Cluster, installed: Installed, environment: Mapping[str, str], usual: Optional[Mapping[str, str]] = None
) -> Dict[str, str]:
    """The environment of Spark's processes, without the runner in their path and with the folder of its settings, which
    is made. `usual`: settings that those of the code come before. Raises `OSError`."""
    elsewhere = cluster.registered
    host = cluster.host if elsewhere is None else elsewhere.driver_address
    ip = local_ip(host) if elsewhere is None else address_here(host)
    folder = os.path.join(cluster.work_dir, "spark-conf")
    os.makedirs(folder, mode=0o700, exist_ok=True)
    code = cluster.code_dir if elsewhere is None or elsewhere.has_code else ""
    archive = shipped.make(code, elsewhere.offered, cluster.work_dir) if elsewhere else ""
    text = as_text(settings(cluster, ip, {**(usual or {}), **_own_settings(cluster.code_dir)}, archive))
    _write(os.path.join(folder, OWN_SETTINGS), text)  # it has the secret
    logging = LOGGING + registered.LOGGING + granted.logging(cluster.work_dir) if elsewhere else LOGGING
    _write(os.path.join(folder, "log4j2.properties"), logging)
    os.makedirs(os.path.join(cluster.log_dir, EVENTS), exist_ok=True)
    scratch = os.path.join(cluster.work_dir, "spark-scratch")
    os.makedirs(scratch, exist_ok=True)
    return {
        **without_runner(environment, installed.path),
        "SPARK_HOME": installed.home,
        "SPARK_CONF_DIR": folder,
        "SPARK_LOCAL_DIRS": scratch,
        LOCAL_IP: ip,
        "SPARK_LOCAL_HOSTNAME": host,
        spark_host.VARIABLE: ip if elsewhere is None else local_ip(host),
        "TFOS_SERVER_HOST": ip if elsewhere is None else host,
        # The one port on which a wildcard address is the one that executors reach (`narrower`): no master has it.
        **({} if elsewhere is None else {"TFOS_SERVER_PORT": cluster.port}),
    }


def local_ip(host: str) -> str:
    """The address behind a task's own name. Raises `OSError` where it has none."""
    return socket.gethostbyname(host)


def address_here(host: str) -> str:
    """The address on which a driver listens that is reached as `host`: that one, or all of this machine's where the
    name leads to it in another way. Raises `OSError` where there is no such name."""
    ip = local_ip(host)
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as one:
        try:
            one.bind((ip, 0))
        except OSError:
            return EVERYWHERE
    return ip


def _own_settings(code_dir: str) -> Dict[str, str]:
    path = os.path.join(code_dir, OWN_SETTINGS)
    if not os.path.isfile(path):
        return {}
    with open(path, encoding="utf-8", errors="replace") as file:
        return settings_in(file.read(1 << 20))


def _write(path: str, text: str) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(text)
