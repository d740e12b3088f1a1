"""What of a lock a machine needs: by its own Python, not by the portal's."""

from __future__ import annotations

from yardmaster.engines.hosts.installing import WORKBENCH_LOCK, entries_for

LOCK = """# a comment
one==1.0 \\
    --hash=sha256:aa \\
    --hash=sha256:ab
    # via two
two==2.0 ; python_full_version < '3.11.5' \\
    --hash=sha256:ba
two==2.1 ; python_full_version >= '3.11.5' \\
    --hash=sha256:bb
three==3.0 ; sys_platform == 'win32' or platform_machine == 'aarch64' \\
    --hash=sha256:ca
"""


def test_a_machine_needs_what_applies_to_its_own_python_and_processor():
    assert entries_for(LOCK, "3.11.2", "x86_64").splitlines() == [
        "one==1.0 \\",
        "    --hash=sha256:aa \\",
        "    --hash=sha256:ab",
        "two==2.0 \\",
        "    --hash=sha256:ba",
    ]
    assert "two==2.1 \\" in entries_for(LOCK, "3.11.7", "x86_64")
    assert "three==3.0" in entries_for(LOCK, "3.12.0", "aarch64")


def test_each_package_of_the_shipped_lock_is_needed_once_at_most():
    for python in ("3.11.2", "3.11.7", "3.13.1"):
        found = [line.split("==")[0] for line in entries_for(WORKBENCH_LOCK.read_text(), python, "x86_64").splitlines()]
        names = [name for name in found if not name.startswith(" ")]
        assert len(names) == len(set(names)) > 50
