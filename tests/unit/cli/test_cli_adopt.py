"""`headway adopt` as a person types it."""

from __future__ import annotations

import json

import pytest

from headway.cli.main import main


def run(capsys, *words: str) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as ended:
        main(["--lang", "en", "adopt", *words])
    out = capsys.readouterr()
    return int(ended.value.code or 0), out.out, out.err


def test_a_line_in_quotes_gives_a_clean_file_on_stdout_and_talk_on_stderr(capsys):
    code, out, err = run(capsys, "USE_LIBUV=0 torchrun --nproc_per_node=2 t.py")
    assert code == 0
    assert out.startswith('schema: launch/1\nlauncher: "torchrun"\n')
    assert "no effect: USE_LIBUV=0" in err


def test_a_line_in_words_keeps_its_own_options(capsys):
    code, out, _ = run(capsys, "--json", "torchrun", "--nproc_per_node=2", "t.py", "--json", "a b")
    record = json.loads(out)
    assert (code, record["schema"]) == (0, "adopt/1")
    assert record["launch"]["args"] == ["--json", "a b"]


def test_options_may_follow_a_file(capsys, tmp_path):
    script, target = tmp_path / "run.sh", tmp_path / "launch.yaml"
    script.write_text("torchrun t.py\n", encoding="utf-8")
    code, out, err = run(capsys, str(script), "--to", str(target))
    assert (code, out) == (0, "") and str(target) in err
    assert "torchrun" in target.read_text(encoding="utf-8")


def test_a_dry_run_writes_nothing_and_shows_everything(capsys, tmp_path):
    target = tmp_path / "launch.yaml"
    code, out, _ = run(capsys, "--to", str(target), "--dry-run", "torchrun t.py")
    assert code == 0 and "torchrun" in out and not target.exists()


def test_a_file_is_replaced_only_when_asked(capsys, tmp_path):
    target = tmp_path / "launch.yaml"
    target.write_text("mine", encoding="utf-8")
    code, _, err = run(capsys, "--to", str(target), "torchrun t.py")
    assert code == 2 and "adopt/exists" in err and target.read_text(encoding="utf-8") == "mine"
    assert run(capsys, "--yes", "--to", str(target), "torchrun t.py")[0] == 0
    assert "torchrun" in target.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("words", "code"),
    [
        ((), "adopt/nothing-given"),
        (("missing.sh",), "adopt/no-file"),
        (("missing.sh", "--json"), "adopt/no-file"),
        (("ls -la && pwd",), "adopt/nothing-found"),
    ],
)
def test_what_cannot_be_read_is_refused(capsys, words, code):
    exit_code, out, err = run(capsys, *words)
    assert (exit_code, out) == (2, "") and code in err


def test_a_guide_is_read_as_a_guide(capsys, tmp_path):
    guide = tmp_path / "GUIDE.md"
    guide.write_text("# x\n```bash\ntorchrun \\ # why\n t.py\n```\n", encoding="utf-8")
    record = json.loads(run(capsys, str(guide), "--json")[1])
    assert record["launch"]["entry"]["name"] == "t.py"
    assert [one["line"] for one in record["findings"] if one["code"] == "adopt/slip-after-backslash"] == [3]


def test_the_torch_version_decides(capsys):
    line = "TORCH_NCCL_AVOID_RECORD_STREAMS=1 torchrun t.py"
    assert "adopt/env-gone" in run(capsys, "--json", "--torch", "2.15", line)[1]
    assert "adopt/env-going" in run(capsys, "--json", "--torch", "2.14", line)[1]
