"""`--dry-run --json`: one object that says what would be done, and nothing is."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fakes.run_fixture import write_run
from headway.cli.main import main


def told(capsys, *words: str) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as end:
        main(["--lang", "en", *words])
    said = capsys.readouterr()
    return int(end.value.code or 0), said.out, said.err


def test_a_line_that_would_be_run_is_shown_as_json(tmp_path: Path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    code, out, _ = told(capsys, "run", "--dry-run", "--json", "A=1 env -u X python x.py '<s>' > log &")
    record = json.loads(out)
    assert code == 0 and record["schema"] == "run-line/1"
    assert (record["mode"], record["argv"][:2]) == ("original", ["bash", "-c"])
    assert record["notes"] and record["cwd"] == str(tmp_path)
    code, out, _ = told(
        capsys, "run", "--dry-run", "--json", "API_TOKEN=s3cret", "env", "--token", "hf_abcdefghijklmnopqrst"
    )
    assert json.loads(out)["env_names"] == ["API_TOKEN"] and "s3cret" not in out and "abcdefghijkl" not in out
    assert list(tmp_path.iterdir()) == []


def test_the_output_of_a_run_is_the_programs_so_json_needs_a_dry_run(tmp_path: Path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    code, _, err = told(capsys, "run", "--json", "env")
    assert code == 2 and "headway run --dry-run --json env" in err


@pytest.mark.parametrize("command", ["report", "export"])
def test_what_would_be_written_is_shown_as_json(tmp_path: Path, monkeypatch, capsys, command: str) -> None:
    monkeypatch.chdir(tmp_path)
    write_run(tmp_path / "runs" / "20260101-000000_a_0000")
    code, out, _ = told(capsys, command, "--dry-run", "--json")
    record = json.loads(out)
    assert code == 0 and record["schema"] == f"{command}/1" and record["dry_run"] is True
    assert not (tmp_path / "runs" / "20260101-000000_a_0000" / "export").exists()
