"""`headway train` looks ahead by a trace on GPUs, before anything starts."""

from __future__ import annotations

import importlib
from dataclasses import fields, replace

import pytest

from fakes.engine_run import TINY
from fakes.machines import GIB, four_4090, machine
from headway.cli.main import main
from headway.messages import LANGUAGES, set_language
from headway.planner.recipe_trace import Trace


@pytest.fixture(autouse=True)
def own_home(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("COLUMNS", "120")
    yield
    set_language("en")


@pytest.fixture
def traced(monkeypatch):
    """Stand in for the child that traces: each sample of a step holds 4 GiB. Says what was asked for."""
    asked = []

    def trace(recipe, config, plan, *, micro_batches, python):
        asked.append(micro_batches)
        ones = {field.name: 1 for field in fields(Trace) if field.name not in ("parts", "moment", "peaks", "moments")}
        return [
            Trace(**{**ones, "micro_batch": size}, parts={"activations": 4 * GIB * size}, moment="backward")
            for size in micro_batches
        ]

    monkeypatch.setattr(importlib.import_module("headway.planner.outlook"), "make_trace", trace)
    return asked


def train(capsys, monkeypatch, here, *words, lang="en"):
    monkeypatch.setattr(importlib.import_module("headway.start.decide"), "inspect_machine", lambda *_, **__: here)
    with pytest.raises(SystemExit) as end:
        main(["--lang", lang, "train", TINY, "--dry-run", "train.steps=9", "parallel.gpus=auto", *words])
    return end.value.code, capsys.readouterr().err


@pytest.mark.parametrize("lang", LANGUAGES)
def test_a_step_that_does_not_fit_is_refused_before_it_starts(capsys, monkeypatch, traced, lang):
    code, err = train(capsys, monkeypatch, machine(four_4090()[:1]), "batch.per_device=8", lang=lang)
    assert code == 4 and traced == [(4, 8)]
    assert "plan/does-not-fit" in err and "batch.per_device=4" in err and "--no-trace" in err


def test_no_trace_is_made_where_nobody_wants_one(capsys, monkeypatch, traced):
    assert train(capsys, monkeypatch, machine(four_4090()[:1]), "batch.per_device=8", "--no-trace")[0] == 0
    assert train(capsys, monkeypatch, machine(), "batch.per_device=8")[0] == 0
    assert traced == []


def test_a_kept_trace_is_used_at_once(capsys, monkeypatch, traced):
    module = importlib.import_module("headway.planner.outlook")
    kept = module.make_trace("tiny", {}, None, micro_batches=(4, 8), python="")
    monkeypatch.setattr(module, "find_trace", lambda *_, **__: kept)
    traced.clear()
    code, err = train(capsys, monkeypatch, machine(four_4090()[:1]), "batch.per_device=8")
    assert code == 4 and traced == [] and "tracing" not in err
    fits = train(capsys, monkeypatch, machine((replace(four_4090()[0], total_bytes=80 * GIB, free_bytes=80 * GIB),)))
    assert fits[0] == 0
