"""A real SMTP server for tests: it takes every mail and keeps it. No TLS, no authentication."""

from __future__ import annotations

import contextlib
import email
import email.policy
import socketserver
import threading
from collections.abc import Iterator
from email.message import EmailMessage


class SmtpSink(socketserver.ThreadingTCPServer):
    """`mails` are all that came, in order; `url` is what to set as `YARDMASTER_EMAIL_URL`."""

    daemon_threads = True
    allow_reuse_address = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Conversation)
        self.mails: list[EmailMessage] = []
        self.url = f"smtp://127.0.0.1:{self.server_address[1]}?starttls=no"

    def to(self, address: str) -> list[EmailMessage]:
        """The mails to this address."""
        return [mail for mail in self.mails if mail["To"] == address]


class _Conversation(socketserver.StreamRequestHandler):
    def handle(self) -> None:
        self._say("220 sink")
        while line := self.rfile.readline():
            verb = line.strip().upper()[:4]
            if verb == b"DATA":
                self._say("354 go on")
                self._keep()
            self._say("221 bye" if verb == b"QUIT" else "250 yes")
            if verb == b"QUIT":
                return

    def _keep(self) -> None:
        lines = []
        while (line := self.rfile.readline()) not in (b".\r\n", b""):
            lines.append(line.removeprefix(b".") if line.startswith(b"..") else line)
        mail = email.message_from_bytes(b"".join(lines), policy=email.policy.default)
        assert isinstance(self.server, SmtpSink)
        assert isinstance(mail, EmailMessage)
        self.server.mails.append(mail)

    def _say(self, text: str) -> None:
        self.wfile.write(f"{text}\r\n".encode())


@contextlib.contextmanager
def smtp_sink() -> Iterator[SmtpSink]:
    """A sink that listens until the end."""
    with SmtpSink() as sink:
        threading.Thread(target=sink.serve_forever, name="smtp sink", daemon=True).start()
        try:
            yield sink
        finally:
            sink.shutdown()
