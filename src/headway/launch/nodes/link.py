"""A link between two supervisors: proven at both ends, sealed, and ended by the kernel when the other machine is gone.

Both ends show that they know the secret of the run over two fresh nonces, which also make the keys of this connection.
Each message is then encrypted (SHAKE-256 as a key stream) and authenticated (keyed BLAKE2b) under its own number, so
that nothing can be read, changed, repeated or put in by others. TLS with a shared secret needs Python 3.13.
"""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import json
import secrets
import socket
import struct
import threading
import time
from collections import deque
from dataclasses import dataclass
from typing import Any, Final

GREETING_S: Final = 5.0
"""Whoever has not shown by then that it knows the secret is turned away."""
PING_S: Final = 1.0
SILENT_S: Final = 30.0
"""A supervisor that is stopped, not gone: its kernel answers, its ranks may train on; longer is a lost node."""
_LOST_MS: Final = 6_000
_MAGIC: Final = b"headway-node/1\n"
_NONCE: Final = 32
_MAC: Final = 16
_HEAD: Final = struct.Struct(">I")
_MOST_FRAME: Final = 64 << 20
_READ_BYTES: Final = 1 << 20
_MOST_GREETED: Final = 32
_FULL_BYTES: Final = 8 << 20


class LinkError(Exception):
    """The other end does not know the secret of the run, or is not a supervisor."""


@dataclass(frozen=True, slots=True)
class Message:
    """What the other end says: JSON, and bytes beside it."""

    facts: dict[str, Any]
    blob: bytes

    @property
    def kind(self) -> str:
        """Return what it is about."""
        return str(self.facts.get("kind"))


class Link:
    """One connection whose both ends are proven. It never blocks: what does not go out now goes out later."""

    def __init__(self, sock: socket.socket, *, key: bytes, is_leader: bool) -> None:
        names = (b"leader", b"follower") if is_leader else (b"follower", b"leader")
        self._sock = sock
        self._out, self._in = (_Seal(_derive(key, name)) for name in names)
        self._waiting: deque[bytes] = deque()
        self._waiting_bytes = 0
        self._buffer = bytearray()
        self._said_at = 0.0
        self.heard_at = time.monotonic()
        self.is_gone = False
        self.address = str(sock.getsockname()[0])
        """Ours, as the other end reaches it."""
        self.peer = str(sock.getpeername()[0])
        sock.setblocking(False)
        _watch_peer(sock)

    def fileno(self) -> int:
        """Return the number of the open socket."""
        return self._sock.fileno()

    @property
    def is_full(self) -> bool:
        """Say whether the other end takes less than we send."""
        return self._waiting_bytes > _FULL_BYTES

    @property
    def has_waiting(self) -> bool:
        """Say whether something is still to go out."""
        return bool(self._waiting)

    def send(self, kind: str, blob: bytes = b"", **facts: object) -> None:
        """Say something; on a link that is gone it is lost."""
        head = json.dumps({"kind": kind, **facts}, ensure_ascii=True).encode()
        frame = self._out.close(_HEAD.pack(len(head)) + head + blob)
        self._waiting.append(_HEAD.pack(len(frame)) + frame)
        self._waiting_bytes += len(frame) + _HEAD.size
        self._said_at = time.monotonic()
        self.flush()

    def flush(self) -> None:
        """Send what waits, as far as there is room."""
        try:
            while self._waiting and not self.is_gone:
                sent = self._sock.send(self._waiting[0])
                self._waiting_bytes -= sent
                rest = self._waiting.popleft()[sent:]
                if rest:
                    self._waiting.appendleft(rest)
        except BlockingIOError:
            return
        except OSError:
            self.is_gone = True

    def tick(self, now: float) -> None:
        """Show that we live, and notice when the other end has not for long."""
        self.flush()
        if now - self._said_at >= PING_S:
            self.send("ping")
        if now - self.heard_at > SILENT_S:
            self.is_gone = True

    def receive(self) -> list[Message]:
        """Return what has arrived in full; a message that was not sealed by the other end ends the link."""
        try:
            data = self._sock.recv(_READ_BYTES)
            if not data:
                self.is_gone = True
        except (BlockingIOError, InterruptedError):
            return []
        except OSError:  # reset, or given up by the kernel
            self.is_gone = True
            return []
        self.heard_at = time.monotonic()
        self._buffer += data
        try:
            return [message for message in self._take_frames() if message.kind != "ping"]
        except (LinkError, ValueError, struct.error):
            self.is_gone = True
            return []

    def _take_frames(self) -> list[Message]:
        found, at = [], 0
        while len(self._buffer) - at >= _HEAD.size:
            (size,) = _HEAD.unpack_from(self._buffer, at)
            if size > _MOST_FRAME:
                raise LinkError("a message larger than any of ours")
            if len(self._buffer) - at - _HEAD.size < size:
                break
            at += _HEAD.size
            plain = self._in.open(bytes(self._buffer[at : at + size]))
            at += size
            (length,) = _HEAD.unpack_from(plain)
            facts = json.loads(plain[_HEAD.size : _HEAD.size + length])
            found.append(Message(facts, plain[_HEAD.size + length :]))
        del self._buffer[:at]
        return found

    def drain(self, timeout_s: float) -> None:
        """Wait until everything has gone out, for a last word."""
        until = time.monotonic() + timeout_s
        while self._waiting and not self.is_gone and time.monotonic() < until:
            time.sleep(0.005)
            self.flush()

    def close(self) -> None:
        """End the connection."""
        self.is_gone = True
        self._sock.close()


class Door:
    """Where followers knock. Each is greeted in a thread of its own, so that a silent one keeps nobody waiting."""

    def __init__(self, listener: socket.socket, secret: bytes) -> None:
        self._listener, self._secret = listener, secret
        self._let_in: deque[Link] = deque()
        self._reading, self._writing = socket.socketpair()
        self._reading.setblocking(False)
        self._room = threading.Semaphore(_MOST_GREETED)
        self._is_closed = False
        self.turned_away = 0
        """Connections that did not know the secret."""
        threading.Thread(target=self._accept, name="headway-door", daemon=True).start()

    @property
    def address(self) -> tuple[str, int]:
        """Return where it is."""
        host, port = self._listener.getsockname()[:2]
        return str(host), int(port)

    def fileno(self) -> int:
        """Return a number that is readable when a link is there."""
        return self._reading.fileno()

    def take(self) -> list[Link]:
        """Return the links that are new."""
        with contextlib.suppress(BlockingIOError):
            self._reading.recv(4096)
        found = []
        while self._let_in:
            found.append(self._let_in.popleft())
        return found

    def close(self) -> None:
        """Let nobody in any more; safe to call twice."""
        if self._is_closed:
            return
        self._is_closed = True
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for link in self.take():
            link.close()
        self._reading.close()
        self._writing.close()

    def _accept(self) -> None:
        while not self._is_closed:
            try:
                sock, _ = self._listener.accept()
            except OSError:
                return
            if not self._room.acquire(blocking=False):
                sock.close()
                continue
            threading.Thread(target=self._greet, args=(sock,), name="headway-greet", daemon=True).start()

    def _greet(self, sock: socket.socket) -> None:
        try:
            link = greet_follower(sock, self._secret)
        except (LinkError, OSError):
            self.turned_away += 1
            sock.close()
        else:
            self._let_in.append(link)
            with contextlib.suppress(OSError):
                self._writing.send(b"x")
        finally:
            self._room.release()


def greet_follower(sock: socket.socket, secret: bytes) -> Link:
    """Prove who a follower is, and to it who we are.

    Raises:
        LinkError: it does not know the secret.
    """
    sock.settimeout(GREETING_S)
    ours = secrets.token_bytes(_NONCE)
    sock.sendall(_MAGIC + ours)
    answer = _read(sock, _NONCE + 32)
    theirs, proof = answer[:_NONCE], answer[_NONCE:]
    if not hmac.compare_digest(proof, _prove(secret, b"follower", ours, theirs)):
        raise LinkError("a follower that does not know the secret")
    sock.sendall(_prove(secret, b"leader", ours, theirs))
    return Link(sock, key=_prove(secret, b"keys", ours, theirs), is_leader=True)


def greet_leader(sock: socket.socket, secret: bytes) -> Link:
    """Prove to the leader who we are, and that it is the leader.

    Raises:
        LinkError: it is not, or does not take us for a follower of its run.
    """
    sock.settimeout(GREETING_S)
    if _read(sock, len(_MAGIC)) != _MAGIC:
        raise LinkError("no supervisor of ours")
    theirs, ours = _read(sock, _NONCE), secrets.token_bytes(_NONCE)
    sock.sendall(ours + _prove(secret, b"follower", theirs, ours))
    if not hmac.compare_digest(_read(sock, 32), _prove(secret, b"leader", theirs, ours)):
        raise LinkError("a leader that does not know the secret")
    return Link(sock, key=_prove(secret, b"keys", theirs, ours), is_leader=False)


class _Seal:
    """One direction of a link: messages are numbered, and no number is used twice under a key."""

    def __init__(self, key: bytes) -> None:
        self._stream, self._mac = _derive(key, b"stream"), _derive(key, b"mac")
        self._number = 0

    def close(self, plain: bytes) -> bytes:
        number = self._next()
        hidden = _mix(plain, self._stream + number)
        return hidden + self._sign(number, hidden)

    def open(self, sealed: bytes) -> bytes:
        number = self._next()
        hidden, mac = sealed[:-_MAC], sealed[-_MAC:]
        if not hmac.compare_digest(mac, self._sign(number, hidden)):
            raise LinkError("a message that was changed on its way")
        return _mix(hidden, self._stream + number)

    def _next(self) -> bytes:
        self._number += 1
        return self._number.to_bytes(8, "big")

    def _sign(self, number: bytes, hidden: bytes) -> bytes:
        return hashlib.blake2b(number + hidden, key=self._mac, digest_size=_MAC).digest()


def _mix(data: bytes, key: bytes) -> bytes:
    stream = hashlib.shake_256(key).digest(len(data))
    return (int.from_bytes(data, "big") ^ int.from_bytes(stream, "big")).to_bytes(len(data), "big")


def _derive(key: bytes, name: bytes) -> bytes:
    return hmac.digest(key, name, "sha256")


def _prove(secret: bytes, who: bytes, leader: bytes, follower: bytes) -> bytes:
    return hmac.digest(secret, who + leader + follower, "sha256")


def _read(sock: socket.socket, size: int) -> bytes:
    """Read exactly so much in the time of a greeting, however slowly it drips."""
    until, data = time.monotonic() + GREETING_S, b""
    while len(data) < size:
        sock.settimeout(max(0.01, until - time.monotonic()))
        part = sock.recv(size - len(data))
        if not part or time.monotonic() > until:
            raise LinkError("closed before it was proven")
        data += part
    return data


def _watch_peer(sock: socket.socket) -> None:
    """Let the kernel end the connection when the other machine is gone, however busy this process is."""
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 1)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, 1)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT, 5)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, _LOST_MS)
