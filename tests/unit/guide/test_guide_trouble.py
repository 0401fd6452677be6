"""A bad end is explained: cause, evidence, and the guide's own advice with the current numbers."""

from __future__ import annotations

import json

import pytest

from headway import guide
from headway.errors import HeadwayError, UsageError
from headway.guide import GuideLog, find_trouble, trouble_of, write_trouble
from headway.guide.trouble import facts_of
from headway.messages import set_language
from headway.recipes.nanochat.guide import ADVICE
from headway.recipes.rdt.guide import ADVICE as RDT_ADVICE
from headway.recipes.tfnet.guide import ADVICE as TFNET_ADVICE
from headway.telemetry import RunDir


def run_with(tmp_path, **incident):
    run = RunDir(tmp_path / "run")
    run.root.mkdir()
    run.events.write_text(json.dumps({"kind": "incident", "t": 1.0, **incident}) + "\n")
    return run


def explain(tmp_path, own, trouble, facts):
    log = GuideLog(tmp_path / "log", is_levelled=True)
    write_trouble(log, own, trouble, facts)
    log.close()
    return (tmp_path / "log").read_text()


def test_out_of_memory_gets_the_guides_three_pieces_of_advice_with_the_current_numbers(tmp_path):
    set_language("zh")
    try:
        text = "CUDA out of memory"
        run = run_with(tmp_path, **{"class": "device-out-of-memory", "text": "显存不足", "evidence": text})
        config = guide.load(None, ["recipe=nanochat", "device_batch_size=16", "total_batch_size=49152"]).config
        said = explain(tmp_path, ADVICE, find_trouble([], run), facts_of(config))
    finally:
        set_language("en")
    for wanted in ("[ERROR]", "错误分析：显存不足", text, "1. 减小 device_batch_size（当前 16）"):
        assert wanted in said
    assert "减小 total_batch_size（当前 49152）" in said and "TORCH_COMPILE=0" in said


@pytest.mark.parametrize(
    ("own", "line", "wanted"),
    [
        (ADVICE, "RuntimeError: use_libuv was requested but PyTorch was built without libuv support", "USE_LIBUV=0"),
        (ADVICE, "wandb: ERROR api_key not configured (no-tty)", "WANDB_MODE=disabled"),
        (RDT_ADVICE, "torch.OutOfMemoryError: CUDA out of memory", "--train_batch_size=12"),
        (TFNET_ADVICE, "Error: GPU not available", "nvidia-smi"),
        (TFNET_ADVICE, "ModuleNotFoundError: No module named 'mindspore'", "enter_mindspore.sh"),
        ({}, "error: there are no posters in x [layoutmaster/no-posters]", "data folder"),
        ({}, "OSError: [Errno 98] Address already in use", "free port"),
        ({}, "error: run a is finished: 48 of 48 steps [cli/resume-done]", "raise the epochs or steps"),
    ],
)
def test_each_row_of_the_guides_tables_of_troubles_is_known_by_what_is_printed(tmp_path, own, line, wanted):
    said = explain(tmp_path, own, find_trouble(["", line, ""], None), {})
    assert wanted in said and line.split(" [")[0].removeprefix("error: ") in said


def test_of_a_config_with_problems_the_first_is_the_cause_and_not_their_number():
    lines = [
        "error: line: steps is many [config/wrong-value]",
        "  headway config explain",
        "one problem [config/problems]",
    ]
    found = find_trouble([f"[ERROR] 2026-11-19 06:34:13 {line}" for line in lines], None)
    assert (found.cause, found.evidence) == (
        "line: steps is many",
        "error code config/wrong-value, explained by headway explain config/wrong-value",
    )
    with pytest.raises(HeadwayError) as refused:
        guide.load(None, ["recipe=nanochat", "num_iterations=many"])
    assert "num_iterations" in trouble_of(refused.value).cause


def test_the_hint_of_a_refusal_is_in_the_log(tmp_path):
    def refuse(log):
        raise UsageError("guide/no-config", path="x.yaml", known="a.yaml", usual="a.yaml")

    with pytest.raises(UsageError):
        guide.with_log({}, GuideLog(tmp_path / "log", is_levelled=True), refuse)
    assert "[INFO]" in (tmp_path / "log").read_text().splitlines()[-1]
    assert "use one of them, or omit it to use a.yaml" in (tmp_path / "log").read_text()


def test_a_refusal_is_explained_in_the_log_too(tmp_path):
    def refuse(log):
        raise UsageError("guide/no-config", path="x.yaml", known="a.yaml", usual="a.yaml")

    with pytest.raises(UsageError):
        guide.with_log({}, GuideLog(tmp_path / "log"), refuse)
    assert "x.yaml" in (tmp_path / "log").read_text() and "guide/no-config" in (tmp_path / "log").read_text()
