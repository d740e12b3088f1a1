"""A user for Java where the system has no name for the task's: in a pod whose image does not know its user's number.

Java's own class for this (`com.sun.security.auth.module.UnixSystem`) asks the system alone, and Spark ends where it
gets no name. So a class is put in its place whose answers are fixed. There is no compiler beside a Java runtime: it is
written byte by byte as the JVM's specification lays it out (JVMS, chapter 4).
"""

from __future__ import annotations

import os
import pwd
import struct
from typing import Dict, List

NAME = "task"
MODULE = "jdk.security.auth"
_CLASS = "com/sun/security/auth/module/UnixSystem"
_PUBLIC, _PROTECTED, _SUPER = 0x1, 0x4, 0x20
_ALOAD_0, _ICONST_0, _LDC, _LDC_LONG, _NEW_LONGS = b"\x2a", b"\x03", b"\x13", b"\x14", b"\xbc\x0b"
_GET, _PUT, _INVOKE, _RETURN = b"\xb4", b"\xb5", b"\xb7", b"\xb1"
_GETTERS = (
    ("username", "Ljava/lang/String;", "getUsername", b"\xb0"),
    ("uid", "J", "getUid", b"\xad"),
    ("gid", "J", "getGid", b"\xad"),
    ("groups", "[J", "getGroups", b"\xb0"),
)
"""Field, type, method, and the instruction that returns the value."""


def options(folder: str) -> List[str]:
    """What every Java is to be started with; nothing where the user has a name. `folder` gets the class. Raises
    `OSError`."""
    if has_name():
        return []
    path = os.path.join(folder, "user", *_CLASS.split("/")) + ".class"
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path + ".new", "wb") as file:
        file.write(user_class(NAME, os.getuid(), os.getgid()))
    os.replace(path + ".new", path)
    home = os.environ.get("HOME") or folder
    patch = "%s=%s" % (MODULE, os.path.join(folder, "user"))
    return ["--patch-module", patch, "-Duser.name=%s" % NAME, "-Duser.home=%s" % home]


def has_name() -> bool:
    """Whether the system knows this process's user."""
    try:
        return bool(pwd.getpwuid(os.getuid()).pw_name)
    except KeyError:
        return False


def user_class(name: str, uid: int, gid: int) -> bytes:
    """The class file. Pure."""
    pool = _Constants()
    values = {"username": _LDC + _index(pool.string(name)), "uid": _LDC_LONG + _index(pool.long(uid))}
    values.update(gid=_LDC_LONG + _index(pool.long(gid)), groups=_ICONST_0 + _NEW_LONGS)
    fields = [(one, kind, _index(pool.field(one, kind))) for one, kind, _, _ in _GETTERS]
    begin = _ALOAD_0 + _INVOKE + _index(pool.constructor("java/lang/Object"))
    begin += b"".join(_ALOAD_0 + values[one] + _PUT + at for one, _, at in fields)
    methods = [_method(pool, "<init>", "()V", begin + _RETURN)]
    for (_, kind, at), (_, _, getter, returns) in zip(fields, _GETTERS):
        methods.append(_method(pool, getter, "()" + kind, _ALOAD_0 + _GET + at + returns))
    members = [struct.pack(">HHHH", _PROTECTED, pool.text(one), pool.text(kind), 0) for one, kind, _ in fields]
    this = struct.pack(">HHHH", _PUBLIC | _SUPER, pool.type(_CLASS), pool.type("java/lang/Object"), 0)
    body = _index(len(members)) + b"".join(members) + _index(len(methods)) + b"".join(methods) + _index(0)
    return struct.pack(">IHH", 0xCAFEBABE, 0, 52) + pool.packed() + this + body


def _method(pool: "_Constants", name: str, kind: str, code: bytes) -> bytes:
    """Without branches, so that nothing has to be said of its stack but how deep it is."""
    attribute = struct.pack(">HHI", 3, 1, len(code)) + code + _index(0) + _index(0)
    head = struct.pack(">HHHHHI", _PUBLIC, pool.text(name), pool.text(kind), 1, pool.text("Code"), len(attribute))
    return head + attribute


def _index(number: int) -> bytes:
    return struct.pack(">H", number)


class _Constants:
    """The constants of a class. Each method gives the number of one, which is added once."""

    def __init__(self) -> None:
        self._known: Dict[bytes, int] = {}
        self._next = 1

    def text(self, value: str) -> int:
        return self._add(1, _index(len(value)) + value.encode("ascii"))

    def long(self, value: int) -> int:
        return self._add(5, struct.pack(">q", value), 2)

    def type(self, name: str) -> int:
        return self._add(7, _index(self.text(name)))

    def string(self, value: str) -> int:
        return self._add(8, _index(self.text(value)))

    def field(self, name: str, kind: str) -> int:
        return self._add(9, _index(self.type(_CLASS)) + _index(self._named(name, kind)))

    def constructor(self, owner: str) -> int:
        return self._add(10, _index(self.type(owner)) + _index(self._named("<init>", "()V")))

    def packed(self) -> bytes:
        return _index(self._next) + b"".join(self._known)

    def _named(self, name: str, kind: str) -> int:
        return self._add(12, _index(self.text(name)) + _index(self.text(kind)))

    def _add(self, tag: int, content: bytes, size: int = 1) -> int:
        entry = bytes([tag]) + content
        if entry not in self._known:
            self._known[entry] = self._next
            self._next += size
        return self._known[entry]
