"""Where alerts go: variables, open addresses, and what no config may hold."""

from __future__ import annotations

import pytest

from headway.bridges import find_addresses, read_addresses, refuse_unset
from headway.config import ConfigErrors, has_secret, load_config
from headway.errors import UsageError
from headway.task import find_recipe


def refusals(*words: str) -> list[str]:
    with pytest.raises(ConfigErrors) as refused:
        load_config(None, recipe=find_recipe, overrides=words, environ={})
    return [problem.code for problem in refused.value.problems]


def test_several_addresses_stand_in_one_variable() -> None:
    assert read_addresses(" feishu://a?x=1,2 https://h/p;q\njson://x/ ") == [
        "feishu://a?x=1,2",
        "https://h/p;q",
        "json://x/",
    ]


def test_named_variables_come_beside_the_usual_one() -> None:
    environ = {"HEADWAY_ALERT_TO": "json://usual/a-b-c", "MINE": "json://mine/d-e-f"}
    assert find_addresses(["$MINE", "json://open/"], environ) == [
        "json://usual/a-b-c",
        "json://mine/d-e-f",
        "json://open/",
    ]


@pytest.mark.parametrize(("environ", "code"), [({}, "alert/variable-unset"), ({"MINE": "x"}, "alert/not-an-address")])
def test_a_variable_without_an_address_is_refused(environ: dict[str, str], code: str) -> None:
    with pytest.raises(UsageError) as refused:
        refuse_unset(["MINE"], environ)
    assert refused.value.code == code


@pytest.mark.parametrize(
    "address",
    [
        "feishu://token",
        "slack://a/b/c",
        "mailtos://me:pw@smtp.example.com",
        "https://open.feishu.cn/open-apis/bot/v2/hook/0123abcd",
        "https://example.com/hook?token=abc",
        "https://example.com/0a1b2C3d4E5f6789",
        "https://oapi.dingtalk.com/robot/send?access_token=ab",
    ],
)
def test_an_address_with_a_secret_is_known(address: str) -> None:
    assert has_secret(address)


def test_an_open_address_may_stand_in_a_config() -> None:
    for address in ("json://logs.example.com:8080/headway/runs", "mailto://mail.example.com?from=a@b.c&to=d@e.f"):
        assert not has_secret(address)
        assert load_config(None, recipe=find_recipe, overrides=[f"alert.to={address}"], environ={}).config.alert.to == (
            address,
        )


def test_everything_wrong_is_said_at_once() -> None:
    words = ("alert.to=feishu://abc", "alert.when=vall > 1", "alert.quiet=25-1", "track.to=wand", "alert.on=[finishd]")
    assert refusals(*words) == [
        "alert/address-secret",
        "config/wrong-value",
        "alert/condition-name",
        "alert/quiet-unknown",
        "config/not-a-choice",
    ]


def test_one_value_stands_for_a_list_of_one() -> None:
    words = ["alert.to=[A, B]", "alert.when=loss > 1", "alert.on=failed", "track.to=wandb"]
    found = load_config(None, recipe=find_recipe, overrides=words, environ={}).config
    assert (found.alert.to, found.alert.when, found.alert.on) == (("A", "B"), ("loss > 1",), "failed")
    assert found.track.to == "wandb"
