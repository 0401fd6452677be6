"""Each channel's request, byte for byte what its owner documents, and what becomes of a refusal."""

from __future__ import annotations

import base64
import email
import email.policy
import hashlib
import hmac
import time
import urllib.parse
from typing import Any

import pytest

from fakes.channels import Requests, black_hole, http_server, smtp_server
from headway.bridges.message import Message
from headway.bridges.robots import ChannelError, find_robot
from headway.bridges.send import name_channel, send_one

# apprise imports a module that Python itself calls deprecated.
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")
MESSAGE = Message(
    title="[headway] a: failed", body="out of memory 显存不足", level="failure", record={"kind": "failed"}
)
TEXT = "[headway] a: failed\nout of memory 显存不足"


def sent(address: str, server: Requests) -> dict[str, Any]:
    send_one(address, MESSAGE, 5.0)
    assert len(server.taken) == 1
    return server.taken[0]


def test_feishu_gets_a_text() -> None:
    with http_server() as server:
        found = sent(server.url("/open-apis/bot/v2/hook/abc-1"), server)
    assert found["path"] == "/open-apis/bot/v2/hook/abc-1"
    assert found["headers"]["content-type"] == "application/json; charset=utf-8"
    assert found["body"] == {"msg_type": "text", "content": {"text": TEXT}}


def test_feishu_is_signed_in_its_own_way() -> None:
    with http_server() as server:
        found = sent(server.url("/open-apis/bot/v2/hook/abc-1?secret=S3"), server)
    stamp = found["body"]["timestamp"]
    wanted = hmac.new(f"{stamp}\nS3".encode(), b"", hashlib.sha256).digest()
    assert found["body"]["sign"] == base64.b64encode(wanted).decode()
    assert abs(int(stamp) - time.time()) < 60
    assert "S3" not in found["path"]


def test_dingtalk_is_signed_in_the_address() -> None:
    with http_server() as server:
        found = sent(server.url("/robot/send?access_token=tok&secret=SEC"), server)
    query = dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(found["path"]).query))
    wanted = hmac.new(b"SEC", f"{query['timestamp']}\nSEC".encode(), hashlib.sha256).digest()
    assert query == {"access_token": "tok", "timestamp": query["timestamp"], "sign": base64.b64encode(wanted).decode()}
    assert len(query["timestamp"]) == 13, "milliseconds"
    assert found["body"] == {"msgtype": "text", "text": {"content": TEXT}}


def test_wecom_gets_no_more_than_it_takes() -> None:
    long = Message(title="t", body="长" * 2000)
    with http_server() as server:
        send_one(server.url("/cgi-bin/webhook/send?key=k"), long, 5.0)
        found = server.taken[0]
    assert found["path"] == "/cgi-bin/webhook/send?key=k"
    assert found["body"]["msgtype"] == "text"
    assert len(found["body"]["text"]["content"].encode()) <= 2048


def test_a_webhook_gets_text_and_record() -> None:
    with http_server() as server:
        found = sent(server.url("/any/path?x=1"), server)
    assert found["path"] == "/any/path?x=1"
    assert found["body"] == {"kind": "failed", "title": MESSAGE.title, "text": MESSAGE.body, "level": "failure"}


def test_json_of_apprise_works_too() -> None:
    with http_server() as server:
        found = sent(server.url("/j", "json"), server)
    assert found["body"]["title"] == MESSAGE.title and found["body"]["message"] == MESSAGE.body
    assert found["body"]["type"] == "failure"


def test_slack_gets_its_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    slack = pytest.importorskip("apprise.plugins.slack")
    with http_server() as server:
        server.answer = (200, b"ok")
        monkeypatch.setattr(slack.NotifySlack, "webhook_url", server.url("/services"))
        found = sent("https://hooks.slack.com/services/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", server)
    assert found["path"] == "/services/T1JJ3T3L2/B1JJ3T3L2/TIiajkdnlazkcOXrIdevi7FQ"
    assert MESSAGE.title in str(found["body"]) and "显存不足" in str(found["body"])


def test_discord_gets_its_content(monkeypatch: pytest.MonkeyPatch) -> None:
    discord = pytest.importorskip("apprise.plugins.discord")
    with http_server() as server:
        server.answer = (204, b"")
        monkeypatch.setattr(discord.NotifyDiscord, "notify_url", server.url("/api/webhooks"))
        found = sent(f"https://discord.com/api/webhooks/{'1' * 24}/{'a' * 64}", server)
    assert found["path"].partition("?")[0] == f"/api/webhooks/{'1' * 24}/{'a' * 64}"
    assert "显存不足" in str(found["body"]) and MESSAGE.title in str(found["body"])


def test_mail_arrives_with_subject_and_text() -> None:
    with smtp_server() as server:
        place = f"mailto://127.0.0.1:{server.port}?from=me@example.com&to=you@example.com&mode=insecure"
        found = sent(place, server)
    mail = email.message_from_bytes(found["data"], policy=email.policy.default)
    assert found["to"] == ["rcpt TO:<you@example.com>"]
    assert mail["Subject"] == MESSAGE.title
    part = mail.get_body(("plain", "html"))
    assert part is not None and "显存不足" in part.get_content()


@pytest.mark.parametrize(
    "path", ["/open-apis/bot/v2/hook/t", "/robot/send?access_token=t", "/cgi-bin/webhook/send?key=t"]
)
def test_a_refusal_behind_http_200_is_a_refusal(path: str) -> None:
    with http_server() as server:
        server.answer = (200, b'{"code":19021,"errcode":19021,"msg":"sign match fail"}')
        with pytest.raises(ChannelError) as refused:
            send_one(server.url(path), MESSAGE, 5.0)
    assert refused.value.code == "alert/refused"
    assert refused.value.facts["why"] == "19021: sign match fail"


def test_a_busy_server_is_asked_again_and_a_refusal_is_not() -> None:
    with http_server() as server:
        server.answer = (503, b"")
        with pytest.raises(ChannelError):
            send_one(server.url("/hook"), MESSAGE, 5.0)
        assert len(server.taken) == 3
        server.answer = (404, b"")
        with pytest.raises(ChannelError) as refused:
            send_one(server.url("/hook"), MESSAGE, 5.0)
        assert len(server.taken) == 4
    assert refused.value.facts["why"] == "HTTP 404"


def test_a_redirect_is_not_followed() -> None:
    with http_server() as server:
        server.answer = (307, b"")
        with pytest.raises(ChannelError) as refused:
            send_one(server.url("/hook"), MESSAGE, 5.0)
    assert refused.value.facts["why"] == "HTTP 307"


def test_a_black_hole_is_left_after_its_time() -> None:
    with black_hole() as port:
        began = time.monotonic()
        with pytest.raises(ChannelError) as refused:
            send_one(f"http://127.0.0.1:{port}/hook", MESSAGE, 0.5)
    assert refused.value.code == "alert/timeout" and time.monotonic() - began < 3


@pytest.mark.parametrize(
    ("address", "name", "url"),
    [
        ("feishu://AbC-1?secret=s", "feishu", "https://open.feishu.cn/open-apis/bot/v2/hook/AbC-1"),
        ("lark://AbC-1", "feishu", "https://open.larksuite.com/open-apis/bot/v2/hook/AbC-1"),
        ("dingtalk://SEC@Tok", "dingtalk", "https://oapi.dingtalk.com/robot/send?access_token=Tok"),
        ("wecombot://Key-1", "wecom", "https://qyapi.weixin.qq.com/cgi-bin/webhook/send?key=Key-1"),
    ],
)
def test_short_addresses_mean_the_long_ones(address: str, name: str, url: str) -> None:
    robot = find_robot(address)
    assert robot is not None and (robot.name, robot.url) == (name, url)


def test_a_channel_is_named_without_its_address() -> None:
    assert name_channel("https://hooks.slack.com/services/A/B/C") == "slack"
    assert name_channel("mailtos://u:p@smtp.example.com") == "e-mail"
    assert name_channel("https://example.com/secret") == "webhook"
