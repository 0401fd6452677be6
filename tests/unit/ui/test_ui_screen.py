"""The table of runs and the live view, by snapshot."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner
from rich.console import Console, RenderableType

from fakes.run_fixture import START_T, FakeRun, write_live_run, write_run
from headway.cli.runs import runs
from headway.cli.watch import watch
from headway.messages import set_language
from headway.telemetry import Note, list_rows, write_note
from headway.ui.terminal.runs import render_runs
from headway.ui.terminal.watch import look, one_line, render


def shown(content: RenderableType, width: int = 90) -> list[str]:
    console = Console(record=True, width=width, file=open("/dev/null", "w"), highlight=False)  # noqa: SIM115
    with console.file:
        console.print(content)
        return [line.rstrip() for line in console.export_text().splitlines()]


def test_the_table_of_runs_as_it_looks(tmp_path: Path) -> None:
    write_run(tmp_path / "20260101-000000_one_aaaa")
    write_live_run(tmp_path / "20260102-000000_two_bbbb")
    assert shown(render_runs(list_rows(tmp_path), now=START_T + 7200), 120) == [
        "run                       state         step  best        loss        speed  started  checkpoints",
        "20260102-000000_two_bbbb  ● running  120/400  bpb 2.575  2.073  23.8k tok/s  2 h ago     14.0 MiB",
        "20260101-000000_one_aaaa  ✓ done     400/400  bpb 1.654  1.353  23.7k tok/s  2 h ago     28.0 MiB",
    ]


def failed_run(path: Path) -> FakeRun:
    run = FakeRun(path)
    run.begin()
    run.train(1, 1, 40)
    run.event("incident", code="diagnose/killed", facts={"signal": "SIGKILL"}, rank=0, attempt=1)
    run.end("failed", 5, "launch/failed")
    return run


def test_a_failed_run_names_its_cause_in_the_table_and_in_the_view(tmp_path: Path) -> None:
    write_run(tmp_path / "20260101-000000_one_aaaa")
    failed_run(tmp_path / "20260103-000000_bad_cccc")
    rows = list_rows(tmp_path)
    head, bad, _ = shown(render_runs(rows, now=START_T + 7200, width=160), 160)
    assert head.endswith("cause") and "rank 0: " in bad
    assert list_rows(tmp_path) == rows  # from the index
    assert any("rank 0: " in line for line in shown(render(look(failed_run(tmp_path / "x").run))))


@pytest.mark.parametrize("width", [40, 60, 80, 120, 200])
@pytest.mark.parametrize("lang", ["en", "zh"])
def test_a_run_is_one_line_at_every_width(tmp_path: Path, width: int, lang: str) -> None:
    set_language(lang)
    write_live_run(tmp_path / "20260102-000000_two_bbbb")
    failed_run(tmp_path / "20260103-000000_bad_cccc")
    lines = shown(render_runs(list_rows(tmp_path), now=START_T + 7200, width=width), width)
    assert len(lines) == 3 and all("20260" in line for line in lines[1:])
    assert all(("failed" if lang == "en" else "失败") in line for line in lines if "_bad_" in line)


def test_runs_are_listed_by_tag_and_state(tmp_path: Path) -> None:
    done, bad = write_run(tmp_path / "20260101-000000_one_aaaa"), failed_run(tmp_path / "20260103-000000_bad_cccc").run
    write_note(done, Note(tags=("paper",)))
    for words, found in ((["--tag", "paper"], [done.name]), (["--state", "failed"], [bad.name]), (["--tag", "no"], [])):
        told = json.loads(CliRunner().invoke(runs, ["--json", "--out", str(tmp_path), *words]).output)
        assert [row["name"] for row in told["runs"]] == found


def test_the_live_view_as_it_looks(tmp_path: Path) -> None:
    run = write_live_run(tmp_path / "20260102-000000_two_bbbb")
    lines = shown(render(look(run)))
    text = "\n".join(line.strip("│ ") for line in lines)
    assert "20260102-000000_two_bbbb  ● running" in lines[0]
    for part in (
        "120/400 30%",
        "time left 0:25",
        "loss          2.073",
        "validation    bpb 2.575",
        "best          bpb 2.575 at step 100",
        "speed         23.8k tok/s",
        "checkpoints   step 100 (14.0 MiB)",
        "attempts      1",
        "rank   phase   step   last update",
        "rank 1: tokens ready",
    ):
        assert part in text
    assert all(len(line) == 90 for line in lines)


def test_escapes_in_a_log_never_reach_the_terminal(tmp_path: Path) -> None:
    run = write_live_run(tmp_path / "r")
    run.log.write_bytes(b"\x1b]0;owned\x07\x1b[2Jhello [bold red]x[/] \xff\n")
    console = Console(record=True, width=90, force_terminal=True, color_system=None, file=(tmp_path / "out").open("w"))
    with console.file:
        console.print(render(look(run)))
    out = (tmp_path / "out").read_bytes()
    assert b"\x1b]" not in out and b"[2J" not in out and b"\x07" not in out
    assert b"hello [bold red]x[/]" in out


def test_a_lost_run_says_how_to_go_on(tmp_path: Path) -> None:
    run = write_live_run(tmp_path / "r")
    run.lease.unlink()
    assert any("headway resume r" in line for line in shown(render(look(run))))


def test_the_view_speaks_chinese(tmp_path: Path) -> None:
    run = write_live_run(tmp_path / "r")
    set_language("zh")
    try:
        text = "\n".join(shown(render(look(run))))
        line = one_line(look(run))
    finally:
        set_language("en")
    assert "训练中" in text and "剩余时间" in text and line.startswith("训练中 | 步 120/400 30%")


def test_a_run_that_has_only_begun_can_be_watched(tmp_path: Path) -> None:
    fake = FakeRun(tmp_path / "r")
    fake.events.close()
    assert any("0/400 0%" in line for line in shown(render(look(fake.run))))


def test_watch_once_prints_one_json_object(tmp_path: Path) -> None:
    write_live_run(tmp_path / "r")
    done = CliRunner().invoke(watch, ["r", "--out", str(tmp_path), "--once", "--json"])
    data = json.loads(done.output)
    assert done.exit_code == 0 and data["schema"] == "watch/1"
    assert (data["state"], data["step"], len(data["ranks"]), data["best"]["name"]) == ("running", 120, 2, "bpb")


def test_watching_a_finished_run_ends_at_once(tmp_path: Path) -> None:
    write_run(tmp_path / "r")
    done = CliRunner().invoke(watch, ["--out", str(tmp_path)])
    assert done.output == "done | step 400/400 100% | loss 1.353 | val bpb 1.654 | 23.7k tok/s\n"


def test_runs_prints_json_and_an_empty_folder_is_no_error(tmp_path: Path) -> None:
    write_run(tmp_path / "20260101-000000_one_aaaa")
    data = json.loads(CliRunner().invoke(runs, ["--out", str(tmp_path), "--json"]).output)
    assert data["schema"] == "runs/1" and [row["state"] for row in data["runs"]] == ["done"]
    empty = CliRunner().invoke(runs, ["--out", str(tmp_path / "none")])
    assert empty.exit_code == 0 and "headway train" in empty.output


def test_help_ends_with_an_example_in_both_languages() -> None:
    for lang in ("en", "zh"):
        set_language(lang)
        try:
            text = CliRunner().invoke(watch, ["--help"]).output
        finally:
            set_language("en")
        assert "headway watch ab12 --once" in text
