"""What a machine is judged to be, and the words for it."""

from __future__ import annotations

import string

import pytest

from fakes.machines import GIB, FakeGpuDriver, busy, eight_h100, gpu, lost, machine, mixed, reading
from headway.config import EnvConfig, ParallelConfig, RunConfig
from headway.machine import Framework, GpuReading, MachineReport, inspect_machine, judge_machine
from headway.messages import LANGUAGES, hint, say
from headway.messages.machine import TEXTS


def codes(report: MachineReport, config: RunConfig | None = None) -> dict[str, str]:
    return {finding.code: finding.level for finding in judge_machine(report, config)}


def torch(**more) -> Framework:
    return Framework(**{"python": "py", "python_version": "3.12.4", "torch": "2.13.0", "cuda": "12.8", **more})


def test_a_healthy_machine_has_nothing_but_its_choice():
    assert codes(machine(eight_h100())) == {"machine/gpus-chosen": "ok"}
    assert codes(machine()) == {"machine/no-gpu": "ok"}


CASES = [
    (machine(framework=torch(torch=None)), "machine/torch-missing", "stop"),
    (machine(framework=torch(python_version=None, torch=None)), "machine/python-broken", "stop"),
    (machine(eight_h100(), framework=torch(cuda=None)), "machine/torch-cpu-build", "warn"),
    (machine(eight_h100(), gpu_driver_cuda="11.4"), "machine/driver-too-old", "stop"),
    (machine((gpu(0), busy(gpu(1)))), "machine/gpu-busy", "warn"),
    (machine((busy(gpu(0)),)), "machine/no-free-gpu", "stop"),
    (machine((gpu(0), lost(1))), "machine/gpu-lost", "warn"),
    (machine(mixed()), "machine/gpus-differ", "warn"),
    (machine(gpu_trouble="Unknown Error"), "machine/gpu-driver-broken", "stop"),
    (machine(hidden_gpus=2, environment={"CUDA_VISIBLE_DEVICES": ""}), "machine/gpus-hidden", "warn"),
    (machine(disk_free_bytes=GIB), "machine/disk-low", "warn"),
    (machine(disk_free_bytes=1 << 20), "machine/disk-full", "stop"),
    (machine(disk_free_inodes=50), "machine/inodes-low", "warn"),
    (machine(out_writable=False), "machine/out-not-writable", "stop"),
    (machine(memory_free_bytes=1 << 28), "machine/memory-low", "warn"),
    (machine(nofile=256), "machine/nofile-low", "warn"),
    (machine(environment={"RANK": "0", "WORLD_SIZE": "2"}), "machine/env-left-over", "warn"),
    (machine(environment={"OMP_NUM_THREADS": "8"}), "machine/omp-set", "warn"),
]


@pytest.mark.parametrize(("report", "code", "level"), CASES, ids=[case[1] for case in CASES])
def test_each_fault_is_found_and_told_in_both_languages(report, code, level):
    findings = {finding.code: finding for finding in judge_machine(report)}
    assert findings[code].level == level
    for lang in LANGUAGES:
        assert "{" not in say(code, lang, **findings[code].facts)
        assert hint(code, lang, **findings[code].facts)


def test_an_unknown_cuda_of_the_driver_is_no_fault():
    assert "machine/driver-too-old" not in codes(machine(eight_h100(), gpu_driver_cuda=None))


def test_small_shm_matters_only_with_loader_processes():
    report = machine(shm_bytes=64 << 20, shm_free_bytes=64 << 20)
    assert "machine/shm-small" not in codes(report)
    assert codes(report, RunConfig(parallel=ParallelConfig(workers=4)))["machine/shm-small"] == "warn"


def test_the_wish_of_the_config_is_tried():
    found = codes(machine(eight_h100()), RunConfig(parallel=ParallelConfig(gpus=9)))
    assert found == {"machine/too-few-gpus": "stop"}


def test_what_stops_the_run_is_told_first():
    levels = list(codes(machine((busy(gpu(0)),), nofile=100)).values())
    assert levels == sorted(levels, key=("stop", "warn", "ok").index)


def test_left_over_variables_are_named_ready_to_unset():
    (finding,) = (
        one for one in judge_machine(machine(environment={"RANK": "1", "MASTER_PORT": "9"})) if "env" in one.code
    )
    assert hint(finding.code, "en", **finding.facts) == "remove them:\n  unset RANK MASTER_PORT"


def test_inspect_reads_this_machine_without_importing_torch(tmp_path):
    report = inspect_machine(tmp_path / "runs", driver=FakeGpuDriver(None), environ={"RANK": "3", "HOME": "/x"})
    assert report.cores >= 1
    assert 0 < report.memory_free_bytes <= report.memory_bytes
    assert report.disk_place == str(tmp_path)
    assert report.environment == {"RANK": "3"}
    assert report.framework.python_version == report.python


def test_inspect_hides_gpus_as_the_environment_says(tmp_path):
    driver = FakeGpuDriver(reading(eight_h100()))
    report = inspect_machine(tmp_path, driver=driver, environ={"CUDA_VISIBLE_DEVICES": "6,7"})
    assert [(gpu.index, gpu.physical) for gpu in report.gpus] == [(0, 6), (1, 7)]
    assert report.hidden_gpus == 6


def test_an_interpreter_that_is_not_there_stops_the_run(tmp_path):
    config = RunConfig(env=EnvConfig(python=str(tmp_path / "python")))
    report = inspect_machine(tmp_path, driver=FakeGpuDriver(None), config=config, environ={})
    assert not report.can_run
    assert report.findings[0].code == "machine/python-broken"


def test_another_interpreter_is_asked_in_a_child(tmp_path):
    other = tmp_path / "python"
    other.write_text('#!/bin/sh\necho \'{"python_version":"3.10.1","torch":"2.9.0+cu126","cuda":"12.6","hip":null}\'\n')
    other.chmod(0o755)
    config = RunConfig(env=EnvConfig(python=str(other)))
    report = inspect_machine(tmp_path, driver=FakeGpuDriver(None), config=config, environ={})
    assert report.framework == Framework(python=str(other), python_version="3.10.1", torch="2.9.0+cu126", cuda="12.6")
    assert report.framework.build == "cu126"


def test_the_report_comes_back_from_its_json(tmp_path):
    import json

    driver = FakeGpuDriver(GpuReading(source="nvml", driver="570", cuda="12.8", gpus=(busy(gpu(0)), lost(1))))
    report = inspect_machine(tmp_path, driver=driver, environ={"OMP_NUM_THREADS": "1"})
    text = json.dumps({**report.to_json(), "from_the_future": 1})
    assert MachineReport.from_json(json.loads(text)) == report


@pytest.mark.parametrize("code", sorted(TEXTS))
def test_both_languages_have_the_same_placeholders(code):
    text = TEXTS[code]

    def names(words: str) -> set[str | None]:
        return {name for _, name, _, _ in string.Formatter().parse(words) if name}

    assert text.en and text.zh
    assert names(text.en) == names(text.zh)
    assert names(text.en_hint) == names(text.zh_hint)
    assert bool(text.en_hint) == bool(text.zh_hint)
