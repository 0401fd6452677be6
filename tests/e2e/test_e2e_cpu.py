"""Commands on a processor that advertises instructions and refuses them (`fakes/forbidden`)."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import command
import pytest
from command import TINY, clean_env, events, headway, only_run

ROOT = Path(__file__).parents[2]
FORBIDDEN = str(ROOT / "tests" / "fakes" / "forbidden")
BF16 = (TINY, "train.precision=bf16", "train.steps=3")


@pytest.fixture
def forbidden(tmp_path):
    """Return a command whose bf16 products end by SIGILL above a setting, with or without suspect flags."""
    (tmp_path / "amx").write_text("model name : Xeon\nflags : avx512f amx_bf16 amx_tile hypervisor\n")
    (tmp_path / "plain").write_text("model name : Xeon\nflags : avx512f hypervisor\n")

    def run(*words, flags="amx", allowed="AVX512_CORE_FP16", **env):
        more = {"FORBIDDEN": f"bf16={allowed}", "FORBIDDEN_CPUINFO": str(tmp_path / flags), "PYTHONPATH": FORBIDDEN}
        return headway(tmp_path, *words, **{"ONEDNN_MAX_CPU_ISA": "", **more, **env})

    return run


def test_suspect_flags_are_looked_into_once_and_the_run_gets_what_works(tmp_path, forbidden):
    first = forbidden("train", *BF16)
    assert first.returncode == 0, first.stderr
    assert "testing which instructions this CPU really executes" in first.stderr
    assert "gets ONEDNN_MAX_CPU_ISA=AVX512_CORE_FP16" in " ".join(first.stderr.split())
    run = only_run(tmp_path)
    assert "cpu_settings.ONEDNN_MAX_CPU_ISA" in run.report.read_text(encoding="utf-8")
    told = [finding["code"] for finding in events(run, "checked")[0]["findings"]]
    assert "machine/cpu-limited" in told
    again = forbidden("eval")
    assert again.returncode == 0, again.stderr
    assert "testing which instructions this CPU" not in again.stderr


def test_without_suspect_flags_the_first_step_tells_and_a_smoke_test_finds_the_cure(tmp_path, forbidden):
    failed = forbidden("train", *BF16, flags="plain")
    assert failed.returncode == 93
    assert "[diagnose/illegal-instruction]" in failed.stderr
    assert "headway check --smoke" in failed.stderr
    assert len(events(only_run(tmp_path), "attempt_started")) == 1
    checked = forbidden("check", "--smoke", "--json", flags="plain")
    assert json.loads(checked.stdout)["cpu_settings"] == {"ONEDNN_MAX_CPU_ISA": "AVX512_CORE_FP16"}
    cured = forbidden("train", *BF16, "name=cured", flags="plain")
    assert cured.returncode == 0, cured.stderr


def test_a_precision_that_never_works_is_refused_before_anything_starts(tmp_path, forbidden):
    refused = forbidden("--lang", "zh", "train", *BF16, "--dry-run", allowed="")
    assert refused.returncode == 3
    assert "[machine/cpu-no-precision]" in refused.stderr
    assert "任何设置下都不能用 bf16" in refused.stderr
    other = forbidden("train", TINY, "train.steps=3", "--dry-run", allowed="")
    assert other.returncode == 0, other.stderr
    assert "[machine/cpu-no-precision]" in other.stderr


def test_a_value_of_the_users_own_is_kept_and_told_when_it_fails(forbidden):
    refused = forbidden("check", *BF16, ONEDNN_MAX_CPU_ISA="AVX512_CORE_AMX")
    assert refused.returncode == 3
    assert " export ONEDNN_MAX_CPU_ISA=AVX512_CORE_FP16" in " ".join(refused.stdout.split())
    limits = {"ONEDNN_MAX_CPU_ISA": "AVX512_CORE_FP16", "MKL_ENABLE_INSTRUCTIONS": "AVX512_E3"}
    followed = forbidden("train", *BF16, **limits)
    assert followed.returncode == 0, followed.stderr
    assert "testing which instructions this CPU" not in followed.stderr


def test_commands_of_tests_take_over_every_limit_and_what_is_known(tmp_path, monkeypatch):
    limits = {
        "ONEDNN_MAX_CPU_ISA": "AVX10_1_512",
        "MKL_ENABLE_INSTRUCTIONS": "AVX512_E3",
        "ATEN_CPU_CAPABILITY": "avx2",
    }
    for name, value in limits.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(command, "KNOWN", tmp_path / "known")
    (tmp_path / "known").mkdir()
    (tmp_path / "known" / "answer.json").write_text("{}")
    env = clean_env(tmp_path / "home")
    assert limits.items() <= env.items()
    assert (tmp_path / "home" / ".cache" / "headway" / "cpu" / "answer.json").read_text() == "{}"


def test_the_tests_set_themselves_up_the_same_way(tmp_path, forbidden):
    product = "torch.nn.functional.linear(*[torch.ones(64, 64, dtype=torch.bfloat16)] * 2)"
    (tmp_path / "test_product.py").write_text(f"def test_product():\n    import torch\n    {product}\n")
    paths = os.pathsep.join([FORBIDDEN, str(ROOT / "tests")])
    env = clean_env(
        tmp_path, PYTHONPATH=paths, FORBIDDEN="bf16=AVX512_CORE_FP16", FORBIDDEN_CPUINFO=str(tmp_path / "amx")
    )
    line = [sys.executable, "-m", "pytest", "-q", "-p", "conftest", "test_product.py"]
    done = subprocess.run(line, cwd=tmp_path, env={**env, "ONEDNN_MAX_CPU_ISA": ""}, capture_output=True, timeout=240)
    assert done.returncode == 0, done.stdout
    assert subprocess.run([*line[:4], *line[6:]], cwd=tmp_path, env=env, timeout=240).returncode == -signal.SIGILL
