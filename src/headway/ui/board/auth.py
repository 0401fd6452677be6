"""Who may look at the board: one gate in front of every page, also of those that do not exist.

In order: the Host header must be one of ours (a page of the web that has its name point here is refused), only GET and
HEAD are taken, nothing is read from a body, and a 256-bit token must come with the request: in a cookie that scripts
and other sites cannot send, or as a bearer. A browser gets the cookie for a code that works once and for a few
minutes, so that the token itself is in no address, history, referrer or log.
"""

from __future__ import annotations

import hmac
import os
import secrets
import stat
import time
from collections.abc import Callable
from http.cookies import CookieError, SimpleCookie
from pathlib import Path
from typing import Final

from starlette.datastructures import Headers
from starlette.responses import HTMLResponse, PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from headway.errors import UsageError

OPEN: Final = "/open/"
_CODE_S: Final = 600.0
_MOST_CODES: Final = 16
_MOST_TRIES: Final = 30
"""Wrong codes that are looked at before no code works any more: 128 bits are not guessed, and this makes it sure."""
_MOST_ADDRESS: Final = 2048
_COOKIE_S: Final = 30 * 24 * 3600
_SAFE: Final = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
        "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}
_CLOSED: Final = """<!doctype html><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>Headway</title><h1>401</h1>
<p>This board is private. Open the address that <code>headway board</code> printed; it works once.
Press Enter there for another.</p>
<p lang="zh">此看板仅供本人查看。打开 <code>headway board</code> 打印的地址（只能用一次）；
在那里按回车可得到新地址。</p>
"""


class Gate:
    """Middleware that lets through only requests of this board's owner."""

    def __init__(
        self,
        app: ASGIApp,
        *,
        token: str,
        hosts: frozenset[str],
        cookie: str,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.app, self._token, self._hosts, self._cookie, self._clock = app, token, hosts, cookie, clock
        self._codes: dict[str, float] = {}
        self._wrong = 0

    def make_code(self) -> str:
        """Return a code that opens the board once."""
        now = self._clock()
        self._codes = {code: until for code, until in self._codes.items() if until > now}
        while len(self._codes) >= _MOST_CODES:
            del self._codes[next(iter(self._codes))]
        code = secrets.token_urlsafe(16)
        self._codes[code] = now + _CODE_S
        self._wrong = 0
        return code

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer, or hand on."""
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        if scope["type"] != "http":  # no websockets here
            await send({"type": "websocket.close", "code": 1008})
            return

        async def send_safely(message: Message) -> None:
            if message["type"] == "http.response.start":
                own = {name.lower().encode(): value.encode() for name, value in _SAFE.items()}
                kept = [(name, value) for name, value in message["headers"] if name.lower() not in own]
                message = {**message, "headers": [*kept, *own.items(), *_cache(kept)]}
            await send(message)

        refusal = self._refuse(scope)
        await (refusal or self.app)(scope, receive, send_safely)

    def _refuse(self, scope: Scope) -> Response | None:
        """Return what is answered in place of the page; None: the owner asks."""
        headers = Headers(scope=scope)
        hosts = headers.getlist("host")
        if len(hosts) != 1 or hosts[0].lower() not in self._hosts:
            return PlainTextResponse("unknown host\n", 403)
        if scope["method"] not in ("GET", "HEAD"):
            return PlainTextResponse("the board only shows\n", 403)
        if headers.get("origin") is not None and not self._is_own(headers["origin"]):
            return PlainTextResponse("unknown origin\n", 403)
        if headers.get("content-length", "0") != "0" or headers.get("transfer-encoding"):
            return PlainTextResponse("no body is read\n", 413)
        if len(scope["raw_path"]) + len(scope["query_string"]) > _MOST_ADDRESS:
            return PlainTextResponse("the address is too long\n", 414)
        path = str(scope["path"])
        if path.startswith(OPEN):
            return self._open(path.removeprefix(OPEN))
        if self._has_token(headers):
            return None
        return HTMLResponse(_CLOSED, 401, {"WWW-Authenticate": "Bearer"})

    def _is_own(self, origin: str) -> bool:
        scheme, _, host = origin.partition("://")
        return scheme in ("http", "https") and host.lower() in self._hosts

    def _open(self, given: str) -> Response:
        now = self._clock()
        found = next((code for code in self._codes if hmac.compare_digest(code.encode(), given.encode())), None)
        if found is None or self._codes.pop(found) < now:
            self._wrong += 1
            if self._wrong > _MOST_TRIES:
                self._codes.clear()
            return HTMLResponse(_CLOSED, 401)
        answer = RedirectResponse("/", 303)
        answer.set_cookie(
            self._cookie, self._token, max_age=_COOKIE_S, path="/", httponly=True, samesite="strict", secure=False
        )
        return answer

    def _has_token(self, headers: Headers) -> bool:
        kind, _, bearer = headers.get("authorization", "").partition(" ")
        if kind.lower() == "bearer" and hmac.compare_digest(bearer.strip().encode(), self._token.encode()):
            return True
        try:
            cookie = SimpleCookie(headers.get("cookie", "")).get(self._cookie)
        except CookieError:
            return False
        return cookie is not None and hmac.compare_digest(cookie.value.encode(), self._token.encode())


def _cache(headers: list[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
    return [] if any(name.lower() == b"cache-control" for name, _ in headers) else [(b"cache-control", b"no-store")]


def find_token(folder: Path) -> str:
    """Return the token of this user, made at first; its file can be read by its owner alone.

    Raises:
        UsageError: the file is a link, another user's, or open to others.
    """
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    path = folder / "board-token"
    try:
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        with open(fd, "w", encoding="ascii") as file:
            file.write(secrets.token_urlsafe(32) + "\n")
    except FileExistsError:
        pass
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as err:
        raise UsageError("board/token-unsafe", path=path) from err
    with open(fd, encoding="ascii", errors="replace") as file:
        seen = os.fstat(fd)
        is_safe = stat.S_ISREG(seen.st_mode) and seen.st_uid == os.getuid() and not seen.st_mode & 0o077
        token = file.read(256).strip() if is_safe else ""
    if len(token) < 43:
        raise UsageError("board/token-unsafe", path=path)
    return token
