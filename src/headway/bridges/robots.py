"""Robots of Feishu, DingTalk and WeCom, and the plain webhook: one POST each, and the answer is read.

These are not left to apprise 2.2: it takes HTTP 200 for success, and all three robots answer 200 when they refuse a
message (wrong key, missing keyword, bad signature); it cannot sign for Feishu, encodes DingTalk's signature twice, and
sends WeCom more than its 2,048 bytes.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from headway.bridges.message import Message

_FEISHU_PATH: Final = "/open-apis/bot/v2/hook/"
_DINGTALK_PATH: Final = "/robot/send"
_WECOM_PATH: Final = "/cgi-bin/webhook/send"
_SHORT: Final[Mapping[str, str]] = {
    "feishu": f"https://open.feishu.cn{_FEISHU_PATH}",
    "lark": f"https://open.larksuite.com{_FEISHU_PATH}",
    "dingtalk": f"https://oapi.dingtalk.com{_DINGTALK_PATH}?access_token=",
    "wecombot": f"https://qyapi.weixin.qq.com{_WECOM_PATH}?key=",
}
_WECOM_BYTES: Final = 2048
_ANSWER_BYTES: Final = 1 << 16


class ChannelError(Exception):
    """A message that was not taken; `code` and `facts` say why."""

    def __init__(self, code: str, *, can_retry: bool = False, **facts: object) -> None:
        super().__init__(code)
        self.code, self.facts, self.can_retry = code, facts, can_retry


@dataclass(frozen=True, slots=True, kw_only=True)
class Robot:
    """Where and how one message is posted."""

    name: str
    url: str
    secret: str
    body: Callable[[Message, str], dict[str, Any]]
    """Any: plain JSON."""
    answer: tuple[str, ...]
    """Keys of the answer of which one must be 0; none: HTTP 2xx is enough."""


def find_robot(address: str) -> Robot | None:
    """Return the robot an address belongs to, by its scheme or, on whatever host, by its path."""
    parts = urllib.parse.urlsplit(_long(address))
    if parts.scheme not in ("http", "https") or not parts.hostname:
        return None
    query = urllib.parse.parse_qsl(parts.query, keep_blank_values=True)
    secret = next((value for name, value in query if name == "secret"), "")
    kept = urllib.parse.urlencode([(name, value) for name, value in query if name != "secret"])
    url = urllib.parse.urlunsplit(parts._replace(query=kept, fragment=""))
    if parts.path.startswith(_FEISHU_PATH) and parts.path != _FEISHU_PATH:
        return Robot(name="feishu", url=url, secret=secret, body=_feishu, answer=("code", "StatusCode"))
    if parts.path == _DINGTALK_PATH and "access_token=" in kept:
        return Robot(name="dingtalk", url=url, secret=secret, body=_dingtalk, answer=("errcode",))
    if parts.path == _WECOM_PATH and "key=" in kept:
        return Robot(name="wecom", url=url, secret="", body=_wecom, answer=("errcode",))
    return None


def webhook(address: str) -> Robot:
    """Return the plain webhook at an address: it gets the message as JSON."""
    return Robot(name="webhook", url=address, secret="", body=_plain, answer=())


def post(robot: Robot, message: Message, timeout_s: float) -> None:
    """Post a message and read what the robot says to it.

    Raises:
        ChannelError: it was not taken.
    """
    now = int(time.time())
    data = json.dumps(robot.body(message, robot.secret), ensure_ascii=False).encode()
    url = _signed(robot, now)
    headers = {"Content-Type": "application/json; charset=utf-8", "User-Agent": "headway"}
    try:
        request = urllib.request.Request(url, data, headers, method="POST")
        # No redirects: the address was the user's, where it leads is not.
        opener = urllib.request.build_opener(_NoRedirect)
        with opener.open(request, timeout=timeout_s) as answer:
            _judge(robot, answer.read(_ANSWER_BYTES))
    except urllib.error.HTTPError as err:
        with err:
            busy = err.code == 429 or err.code >= 500
            raise ChannelError("alert/refused", can_retry=busy, channel=robot.name, why=f"HTTP {err.code}") from err
    except TimeoutError as err:
        raise ChannelError("alert/timeout", channel=robot.name, seconds=f"{timeout_s:.0f}") from err
    except urllib.error.URLError as err:
        if isinstance(err.reason, TimeoutError):
            raise ChannelError("alert/timeout", channel=robot.name, seconds=f"{timeout_s:.0f}") from err
        raise ChannelError("alert/unreachable", can_retry=True, channel=robot.name, why=str(err.reason)) from err
    except (OSError, ValueError) as err:
        raise ChannelError("alert/unreachable", channel=robot.name, why=f"{type(err).__name__}: {err}") from err


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *args: Any, **kwargs: Any) -> None:
        """Follow none. Any: as urllib calls it."""
        return


def _long(address: str) -> str:
    """Return the address behind a short one: `feishu://TOKEN`, `dingtalk://SECRET@TOKEN`, `wecombot://KEY`."""
    scheme, sign, rest = address.partition("://")
    scheme = scheme.lower()
    if scheme not in _SHORT or not sign:
        return f"{scheme}://{rest}" if sign else address
    place, _, query = rest.partition("?")
    secret, at, token = place.rstrip("/").rpartition("@")
    found = dict(urllib.parse.parse_qsl(query))
    if at:
        found["secret"] = urllib.parse.unquote(secret)
    joint = "&" if "?" in _SHORT[scheme] else "?"
    return _SHORT[scheme] + token + (joint + urllib.parse.urlencode(found) if found else "")


def _signed(robot: Robot, now: int) -> str:
    """Return the URL; DingTalk's signature is part of it."""
    if robot.name != "dingtalk" or not robot.secret:
        return robot.url
    stamp = str(now * 1000)
    digest = hmac.new(robot.secret.encode(), f"{stamp}\n{robot.secret}".encode(), hashlib.sha256).digest()
    return f"{robot.url}&{urllib.parse.urlencode({'timestamp': stamp, 'sign': base64.b64encode(digest).decode()})}"


def _text(message: Message) -> str:
    return f"{message.title}\n{message.body}"


def _feishu(message: Message, secret: str) -> dict[str, Any]:
    found: dict[str, Any] = {"msg_type": "text", "content": {"text": _text(message)}}
    if secret:
        stamp = str(int(time.time()))
        # Feishu's own way: the key is what is signed elsewhere, and the message is empty.
        digest = hmac.new(f"{stamp}\n{secret}".encode(), b"", hashlib.sha256).digest()
        found = {"timestamp": stamp, "sign": base64.b64encode(digest).decode(), **found}
    return found


def _dingtalk(message: Message, secret: str) -> dict[str, Any]:
    return {"msgtype": "text", "text": {"content": _text(message)}}


def _wecom(message: Message, secret: str) -> dict[str, Any]:
    data = _text(message).encode()
    if len(data) > _WECOM_BYTES:
        data = data[: _WECOM_BYTES - 3].decode("utf-8", "ignore").encode() + "…".encode()
    return {"msgtype": "text", "text": {"content": data.decode()}}


def _plain(message: Message, secret: str) -> dict[str, Any]:
    return {**message.record, "title": message.title, "text": message.body, "level": message.level}


def _judge(robot: Robot, answer: bytes) -> None:
    """Refuse an answer that says no in spite of HTTP 200."""
    if not robot.answer:
        return
    try:
        told = json.loads(answer)
    except (ValueError, RecursionError):
        told = None
    if not isinstance(told, dict):
        raise ChannelError("alert/refused", channel=robot.name, why=answer[:200].decode("utf-8", "replace"))
    found = next((told[key] for key in robot.answer if key in told), None)
    if found != 0:
        why = told.get("msg") or told.get("errmsg") or told.get("StatusMessage") or ""
        raise ChannelError("alert/refused", channel=robot.name, why=f"{found}: {str(why)[:200]}")
