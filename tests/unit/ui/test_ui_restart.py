"""What the screen says of a restart depends on whether there is a checkpoint."""

from __future__ import annotations

import io
from types import SimpleNamespace

import pytest

from headway.ui.terminal.run_screen import RunScreen


@pytest.mark.parametrize(
    ("before", "said"),
    [
        ([], "restarting from the first step, because there is no checkpoint yet"),
        ([{"kind": "checkpoint_committed", "step": 5}], "restarting from the newest intact checkpoint"),
        ([{"kind": "training_started", "step": 5}], "restarting from the newest intact checkpoint"),
    ],
)
def test_a_restart_names_a_checkpoint_only_where_there_is_one(before, said):
    stream = io.StringIO()
    screen = RunScreen(stream, SimpleNamespace(total_steps=9, tokens_per_sample=None))
    for event in (*before, {"kind": "incident", "action": "restart", "rank": 1, "text": "killed"}):
        screen.event(event)
    assert stream.getvalue().splitlines()[-1] == f"rank 1: killed; {said}"
