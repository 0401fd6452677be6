"""What the guides' commands share: logs and files that never take each other's place."""

from __future__ import annotations

import os

from headway.recipes import guided


def test_two_commands_of_one_second_write_two_logs(tmp_path, monkeypatch):
    monkeypatch.setattr(guided.time, "strftime", lambda _: "20261116_043536")
    logs = [guided.GuideLog.of_now(tmp_path / "logs", "train") for _ in range(3)]
    for number, log in enumerate(logs):
        log.write(f"command {number}")
        log.close()
    assert [log.path.name for log in logs] == [
        "train_20261116_043536.log",
        "train_20261116_043536_2.log",
        "train_20261116_043536_3.log",
    ]
    assert [log.path.read_text() for log in logs] == ["command 0\n", "command 1\n", "command 2\n"]
    assert sorted(logs[0].path.parent.iterdir())[-1] == logs[-1].path


def test_what_is_set_aside_twice_in_one_second_is_kept_twice(tmp_path):
    path = tmp_path / "best.pt"
    for text in ("first", "second", "third"):
        path.write_text(text)
        os.utime(path, (1e9, 1e9))
        guided.set_aside([path])
    assert not path.exists()
    assert sorted(kept.read_text() for kept in tmp_path.iterdir()) == ["first", "second", "third"]
