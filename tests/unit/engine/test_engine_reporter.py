from __future__ import annotations

import json
import os

from headway.engine.reporter import Reporter, report_saves
from headway.errors import TrainError


def test_saves_that_take_longer_than_a_stop_leaves_are_told_once_with_the_setting(tmp_path):
    fd = os.open(tmp_path / "told", os.O_WRONLY | os.O_CREAT)
    report = report_saves(Reporter(fd), run="20260101-000000_tiny_ab12", grace_s=30)
    for step, write_s in ((1, 2.0), (2, 14.9), (3, 52.0), (4, 60.0)):
        report({"kind": "checkpoint_committed", "step": step, "write_s": write_s})
    os.close(fd)
    told = [json.loads(line)["event"] for line in (tmp_path / "told").read_text().splitlines()]
    assert [event.get("step", event.get("code")) for event in told] == [1, 2, 3, "engine/grace-short", 4]
    warning = TrainError(told[3]["code"], **told[3]["facts"])
    assert "52 s" in warning.text("en") and warning.hint("en").endswith("_tiny_ab12 launch.grace_s=160")
