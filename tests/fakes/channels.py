"""Servers that take what channels send: HTTP, SMTP, one that never answers; they keep every request as it came."""

from __future__ import annotations

import http.server
import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any


@dataclass
class Requests:
    """What has arrived."""

    port: int = 0
    taken: list[dict[str, Any]] = field(default_factory=list)
    answer: tuple[int, bytes] = (200, b'{"code":0,"errcode":0,"msg":"ok"}')

    def url(self, path: str, scheme: str = "http") -> str:
        """Return an address of this server."""
        return f"{scheme}://127.0.0.1:{self.port}{path}"


@contextmanager
def http_server() -> Iterator[Requests]:
    """Serve HTTP on a free port."""
    found = Requests()

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            try:
                data = json.loads(body)
            except ValueError:
                data = body.decode("utf-8", "replace")
            headers = {name.lower(): value for name, value in self.headers.items()}
            found.taken.append({"path": self.path, "headers": headers, "body": data})
            code, answer = found.answer
            self.send_response(code)
            if code in (301, 302, 307):
                self.send_header("Location", "http://127.0.0.1:1/elsewhere")
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, format: str, *args: object) -> None:
            """Say nothing."""

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    found.port = server.server_port
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield found
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@contextmanager
def black_hole() -> Iterator[int]:
    """Accept nothing and answer nothing: connections wait forever."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen(16)
        yield listening.getsockname()[1]


@contextmanager
def smtp_server() -> Iterator[Requests]:
    """Take mail as a server does."""
    found = Requests()
    listening = socket.create_server(("127.0.0.1", 0))
    found.port = listening.getsockname()[1]
    thread = threading.Thread(target=_serve_mail, args=(listening, found))
    thread.start()
    try:
        yield found
    finally:
        listening.shutdown(socket.SHUT_RDWR)
        listening.close()
        thread.join()


def _serve_mail(listening: socket.socket, found: Requests) -> None:
    while True:
        try:
            link, _ = listening.accept()
        except OSError:
            return
        with link, link.makefile("rwb") as talk:
            _take_mail(talk, found)


def _take_mail(talk: Any, found: Requests) -> None:
    def say(text: str) -> None:
        talk.write(f"{text}\r\n".encode())
        talk.flush()

    mail: dict[str, Any] = {"to": []}
    say("220 test")
    for line in talk:
        word = line.decode().strip()
        match word[:4].upper():
            case "MAIL":
                mail["from"] = word
                say("250 ok")
            case "RCPT":
                mail["to"].append(word)
                say("250 ok")
            case "DATA":
                say("354 go")
                lines = []
                while (text := talk.readline()) not in (b".\r\n", b""):
                    lines.append(text)
                found.taken.append({**mail, "data": b"".join(lines)})
                say("250 ok")
            case "QUIT":
                say("221 bye")
                return
            case _:
                say("250 test")
