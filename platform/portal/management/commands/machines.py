"""`manage.py machines`: the machines of the engine `hosts`, and what an administrator does before they run jobs."""

from __future__ import annotations

import asyncio
from argparse import ArgumentParser
from collections.abc import Iterable, Mapping
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from apps.jobs.engines.configured import engine_named, engine_names
from yardmaster.engines.hosts import HostsEngine
from yardmaster.engines.hosts.installing import Installer
from yardmaster.engines.hosts.inventory import Host
from yardmaster.engines.hosts.keys import fingerprint, shown_key
from yardmaster.engines.hosts.surveying import Installed
from yardmaster.errors import YardmasterError

_GIB = 1 << 30
_MORE = ("workbench", "spark")
"""What is installed only where that is asked for."""


class Command(BaseCommand):
    help = "Lists the machines of YARDMASTER_HOSTS; accepts their host keys; installs what tasks import."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--key", action="store_true", help="print the line for ~/.ssh/authorized_keys of each machine"
        )
        parser.add_argument(
            "--accept", nargs="*", metavar="NAME", help="accept the host keys that these show now (all)"
        )
        parser.add_argument("--install", nargs="*", metavar="NAME", help="install the task environment on these (all)")
        parser.add_argument("--workbench", action="store_true", help="with --install: install JupyterLab, too")
        parser.add_argument("--spark", action="store_true", help="with --install: install Spark for jobs, too")
        parser.add_argument(
            "--forget", metavar="NAME", help="give up the files of Jupyters on a machine that is gone for good"
        )
        parser.add_argument("--yes", action="store_true", help="accept without asking")

    def handle(self, **options: Any) -> None:
        engine = self._engine()
        try:
            if options["key"]:
                self.stdout.write(engine.keys.public())
            elif options["accept"] is not None:
                self._accept(engine, options["accept"], is_sure=options["yes"])
            elif options["install"] is not None:
                self._install(engine, options["install"], {name: options[name] for name in _MORE})
            elif given := [name for name in _MORE if options[name]]:
                words = f"--{given[0]} goes with --install: python manage.py machines --install --{given[0]}"
                raise CommandError(words)
            elif options["forget"]:
                self._forget(engine, options["forget"])
            else:
                self._list(engine)
        except YardmasterError as error:
            raise CommandError(f"{error.message} {error.remedy}") from error
        finally:
            engine.close()

    def _engine(self) -> HostsEngine:
        for name in engine_names():
            engine = engine_named(name)
            if isinstance(engine, HostsEngine):
                return engine
        raise CommandError("No engine of this portal has machines. Set YARDMASTER_HOSTS to a file that lists some.")

    def _chosen(self, engine: HostsEngine, names: Iterable[str]) -> list[Host]:
        hosts = engine.inventory.hosts()
        unknown = [name for name in names if name not in hosts]
        if unknown:
            raise CommandError(f"There is no machine {unknown[0]!r}. The list has: {', '.join(hosts)}.")
        return [hosts[name] for name in names] or list(hosts.values())

    def _list(self, engine: HostsEngine) -> None:
        surveys = engine.survey()
        for one in surveys:
            total, free = one.machine.total, one.machine.free
            self.stdout.write(
                f"{one.host.name:<16} {one.host.address:<16} {one.machine.state.value:<14} "
                f"{free.cpu:g} of {total.cpu:g} cores, {free.memory / _GIB:.1f} of {total.memory / _GIB:.1f} GiB, "
                f"{free.gpus} of {total.gpus} GPUs free"
            )
            if one.has_workbench:
                self.stdout.write("    JupyterLab is installed.")
            if one.has_spark:
                self.stdout.write("    Spark is installed.")
            if Installed.OUTDATED in (one.environment, one.workbench):
                options = " --workbench" * one.has_workbench + " --spark" * one.has_spark
                self.stdout.write(
                    "    It was installed by another release of the portal, or for another Python.\n"
                    f"    Install it again: python manage.py machines --install {one.host.name}{options}"
                )
            if one.error is not None:
                self.stdout.write(f"    {one.error.message}\n    {one.error.remedy}")
        if not surveys:
            self.stdout.write(f"{engine.inventory.path} lists no machine.")

    def _accept(self, engine: HostsEngine, names: Iterable[str], *, is_sure: bool) -> None:
        for host in self._chosen(engine, names):
            try:
                key = asyncio.run(shown_key(host))
            except OSError as error:
                self.stderr.write(f"{host.name} does not answer: {error}")
                continue
            if key is None:
                self.stderr.write(f"{host.name} shows no host key.")
                continue
            self.stdout.write(f"{host.name} ({host.address}) shows {fingerprint(key)}")
            if key in engine.keys.trusted(host):
                self.stdout.write("    It is known by this key.")
            elif host.host_key:
                self.stderr.write("    It is not the host_key of the list: change it there, if you know why.")
            elif is_sure or input("    Is that its key (yes/no)? ").strip().lower() == "yes":
                engine.keys.accept(host, key)
                self.stdout.write("    Accepted.")

    def _forget(self, engine: HostsEngine, name: str) -> None:
        if name in engine.inventory.hosts():
            raise CommandError(f"The machine {name} is in the list. Take it off first, if it is gone for good.")
        count = engine.homes.forget_machine(name)
        self.stdout.write(f"Given up: the files of {count} Jupyters on {name}. They start with empty homes elsewhere.")

    def _install(self, engine: HostsEngine, names: Iterable[str], more: Mapping[str, bool]) -> None:
        installer = Installer(engine.root, engine.links, lambda text: self.stdout.write(text))
        chosen = self._chosen(engine, names)
        failed = [host.name for host in chosen if not self._installed(installer, host, more)]
        engine.survey()  # remembers which have JupyterLab and Spark
        if failed:
            raise CommandError(f"Not installed on: {', '.join(failed)}.")

    def _installed(self, installer: Installer, host: Host, more: Mapping[str, bool]) -> bool:
        try:
            installer.install(host, **more)
        except YardmasterError as error:
            self.stderr.write(f"{error.message} {error.remedy}")
            return False
        return True
