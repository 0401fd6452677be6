"""`headway tune` at its edges: what is refused before a probe runs, and what a dry run shows."""

from __future__ import annotations

import importlib
import json
from pathlib import Path

import pytest

from fakes.engine_run import TINY
from headway.cli.main import main
from headway.messages import set_language
from headway.tune import Probe, RateAdvice, Tuned, settings_of


@pytest.fixture(autouse=True)
def own_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    yield
    set_language("en")


def run(capsys, *words):
    with pytest.raises(SystemExit) as end:
        main(["--lang", "en", *words])
    said = capsys.readouterr()
    return end.value.code, said.out, said.err


def test_a_dry_run_shows_the_space_and_starts_nothing(capsys):
    code, out, _ = run(capsys, "tune", TINY, "--dry-run", "parallel.cpus=1", "train.compile=false")
    assert code == 0
    assert "batch.per_device" in out and "combinations" in out
    assert "not tried: train.compile=true: typed on the command line" in out
    assert not Path("runs/tune").exists()


def test_a_dry_run_is_json_where_json_is_asked_for(capsys):
    code, out, _ = run(capsys, "tune", TINY, "--dry-run", "--json", "parallel.cpus=1", "train.compile=false")
    record = json.loads(out)
    assert code == 0 and record["schema"] == "tune-space/1" and record["grid"] >= 1
    assert "batch.per_device" in record["values"]
    assert {"key": "train.compile", "value": True} in [
        {k: one[k] for k in ("key", "value")} for one in record["skipped"]
    ]


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (("run.py",), "tune/source-unwritable"),
        ((TINY, "--write-to", "new.json"), "tune/target-not-yaml"),
        ((TINY, "--budget", "soon"), "tune/budget-unreadable"),
    ],
)
def test_what_cannot_end_well_is_refused_at_once(capsys, words, text):
    Path("run.py").write_text(f'recipe = "{TINY}"\nbatch = {{"per_device": 2 * 2, "total": 16}}\n')
    code, out, err = run(capsys, "tune", *words)
    assert code == 2 and out == "" and text in err
    assert not Path("runs/tune").exists() and Path("run.py").read_text().endswith('"total": 16}\n')


@pytest.fixture
def found(monkeypatch):
    """Stand in for the search: the micro-batch doubled is twice as fast."""

    def search(question, *, start_nursery, watcher, has_rates):
        start = settings_of(question.plan, question.loaded.config)
        fast = start.moved("micro_batch", 2 * start.micro_batch)
        probes = tuple(
            Probe(number=number, settings=one, ending="ok", samples_s=10.0 * number, step_s=1.0 / number)
            for number, one in enumerate((start, fast), 1)
        )
        for probe in probes:
            watcher.begin(probe.settings, probe.number)
            watcher.tick()
            watcher.end(probe)
        tuned = Tuned(start=probes[0], best=probes[1], probes=probes, skips=(), grid=24, is_cut=False)
        return tuned, RateAdvice(factor=0.5, breaks_at=3.0) if has_rates else None

    # By its module: `headway.cli.tune` names the command too.
    monkeypatch.setattr(importlib.import_module("headway.cli.tune"), "find_best", search)


def test_the_winner_is_written_and_the_next_command_said(capsys, found):
    Path("run.yaml").write_text(f"recipe: {TINY}  # tiny\nbatch: {{total: 16, per_device: 4}}\nparallel: {{cpus: 1}}\n")
    code, out, err = run(capsys, "tune", "run.yaml", "--lr-range")
    assert code == 0 and out == "next: headway train run.yaml\n"
    assert Path("run.yaml").read_text() == (
        f"recipe: {TINY}  # tiny\nbatch: {{total: 16, per_device: 8}}\nparallel: {{cpus: 1}}\n"
    )
    assert "2.00× the start" in err and "lr.base=0.005" in err


@pytest.mark.parametrize(
    ("name", "text"),
    [
        (
            "run.json",
            f'{{"recipe": "{TINY}", // tiny\n "batch": {{"total": 16, "per_device": 4}}, "parallel.cpus": 1}}\n',
        ),
        ("run.toml", f'recipe = "{TINY}"  # tiny\nparallel.cpus = 1\n[batch]\nper_device = 4\ntotal = 16 # all\n'),
        ("run.py", f'recipe = "{TINY}"  # tiny\ncpus = 1\nbatch = {{"total": 16, "per_device": 4}}\n'),
    ],
)
def test_every_format_is_changed_in_place(capsys, found, name, text):
    Path(name).write_text(text)
    code, out, _ = run(capsys, "tune", name, "parallel.threads=1")
    assert code == 0 and out == f"next: headway train {name} parallel.threads=1\n"
    assert Path(name).read_text().splitlines() == [
        line.replace('"per_device": 4', '"per_device": 8').replace("per_device = 4", "per_device = 8")
        for line in text.splitlines()
    ]
    assert [path.name for path in Path().iterdir() if path.is_file()] == [name]


def test_json_is_one_object_with_every_probe(capsys, found):
    Path("run.yaml").write_text(f"recipe: {TINY}\nbatch: {{total: 16, per_device: 4}}\nparallel: {{cpus: 1}}\n")
    code, out, _ = run(capsys, "tune", "run.yaml", "--json", "--write-to", "new.yaml")
    told = json.loads(out)
    assert code == 0 and told["schema"] == "tune/1" and told["written"] == "new.yaml"
    assert told["changes"] == {"batch.per_device": 8} and len(told["probes"]) == 2
    assert "per_device: 8" in Path("new.yaml").read_text()


def test_a_recipe_without_a_file_gets_words_to_type(capsys, found):
    code, out, _ = run(capsys, "tune", TINY, "parallel.cpus=1", "batch.total=16")
    assert code == 0 and out.startswith("next: headway train ") and "batch.per_device=8" in out
