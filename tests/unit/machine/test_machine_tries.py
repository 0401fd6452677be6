"""What the deep check tries: room, sockets, trackers, the log, the environment, two ranks."""

from __future__ import annotations

import errno
import json
import os
import socket
import sys
from dataclasses import dataclass, replace
from typing import Any

import pytest

from fakes.machines import FakeGpuDriver, eight_h100, four_4090, gpu, machine, reading
from headway.ask import Answer
from headway.config import Recipe, Section
from headway.errors import CheckError
from headway.machine import (
    Framework,
    GpuHealth,
    RankAnswer,
    deep,
    inspect_machine,
    judge_answers,
    judge_batch,
    judge_data,
    judge_machine,
    probe,
    try_ranks,
)


def codes(report) -> dict[str, str]:
    return {finding.code.removeprefix("machine/"): finding.level for finding in judge_machine(report)}


def test_room_for_a_checkpoint_is_reserved_and_given_back(tmp_path):
    probe = deep.probe_write(tmp_path, 3 << 20)
    assert (probe.reserved_bytes, probe.trouble) == (3 << 20, None)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("code", "word"), [(errno.EDQUOT, "quota"), (errno.ENOSPC, "space"), (errno.EFBIG, "ulimit")])
def test_a_quota_or_a_limit_that_free_space_does_not_show_stops_the_run(tmp_path, monkeypatch, code, word):
    def refuse(*args):
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(os, "posix_fallocate", refuse)
    probe = deep.probe_write(tmp_path, 1 << 20)
    assert word in (probe.trouble or "")
    assert codes(machine(probe_bytes=0, probe_trouble=probe.trouble))["write-refused"] == "stop"


def test_a_disk_that_cannot_reserve_is_no_fault(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "posix_fallocate", lambda *args: (_ for _ in ()).throw(OSError(errno.EOPNOTSUPP, "no")))
    assert deep.probe_write(tmp_path, 1 << 20).trouble is None


def test_trackers_are_reached_with_a_deadline_and_without_their_secrets():
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        found = deep.reach_trackers({"MLFLOW_TRACKING_URI": f"http://me:secret@127.0.0.1:{port}"}, 2.0)
    assert found == {f"MLFLOW_TRACKING_URI 127.0.0.1:{port}": "ok"}
    gone = deep.reach_trackers({"WANDB_BASE_URL": f"http://127.0.0.1:{port}"}, 2.0)
    assert codes(machine(trackers=gone))["tracker-unreachable"] == "warn"
    assert deep.reach_trackers({"WANDB_BASE_URL": "http://x", "WANDB_MODE": "offline"}) == {}


def test_the_log_is_read_when_it_is_open_and_told_as_closed_when_not(tmp_path):
    log = tmp_path / "kmsg"
    log.write_text("6,1,2,-;NVRM: Xid (PCI:0000:9b:00): 119, pid=7, name=x, Timeout\n")
    text = deep.read_kernel_log(log)
    assert codes(machine(eight_h100(), kernel_log=text))["xid-gsp"] == "warn"
    assert deep.read_kernel_log(tmp_path / "none") is None


def test_the_deep_check_tries_everything_and_leaves_nothing(tmp_path):
    report = inspect_machine(tmp_path, driver=FakeGpuDriver(None), environ={}, deep=True, checkpoint_bytes=1 << 20)
    assert (report.probe_bytes, report.probe_trouble, report.port_trouble) == (1 << 20, None, None)
    assert report.clock_ahead_s is not None and report.trackers == {}
    assert list(tmp_path.iterdir()) == []


HEALTH = [
    ({"mig": True, "mig_devices": 0}, "mig-empty"),
    ({"remap_pending": True}, "gpu-remap-pending"),
    ({"remap_failed": True}, "gpu-remap-failed"),
    ({"uncorrected": 1}, "gpu-uncorrected"),
    ({"throttle": ("HW Thermal Slowdown",)}, "gpu-throttled"),
    ({"compute_mode": "Prohibited"}, "gpu-prohibited"),
    ({"ecc": False}, "gpu-ecc-off"),
    ({"recovery": "Reset"}, "gpu-needs"),
    ({"fabric": "In Progress"}, "gpu-fabric"),
    ({"pcie_width": 4, "pcie_width_max": 16}, "gpu-pcie-narrow"),
]


@pytest.mark.parametrize(("readings", "code"), HEALTH, ids=[code for _, code in HEALTH])
def test_a_sick_gpu_is_told_once_for_all_that_share_it(readings, code):
    gpus = tuple(replace(one, health=GpuHealth(**readings)) for one in eight_h100())
    found = [finding for finding in judge_machine(machine(gpus)) if finding.code == f"machine/{code}"]
    assert [finding.facts["gpus"] for finding in found] == ["0,1,2,3,4,5,6,7"]


def test_links_and_p2p_are_judged():
    found = codes(machine(four_4090(), links={"0-1": "SYS"}, p2p={"0-1": False}))
    assert (found["links-slow"], found["p2p-closed"]) == ("warn", "note")
    assert "links-slow" not in codes(machine(eight_h100(), links={"0-1": "NV18"}, p2p={"0-1": True}))


def test_links_follow_the_numbers_a_rank_sees(tmp_path):
    told = reading(eight_h100(), links={"6-7": "NV18", "0-1": "SYS"}, p2p={"6-7": True})
    report = inspect_machine(tmp_path, driver=FakeGpuDriver(told), environ={"CUDA_VISIBLE_DEVICES": "7,6"})
    assert (report.links, report.p2p) == ({"0-1": "NV18"}, {"0-1": True})


PAIRS = [
    ({"torch": "2.6.0", "torchvision": "0.20.0"}, "vision-pair"),
    ({"torch": "2.2.0", "numpy": "2.1.0"}, "numpy-pair"),
    ({"torch": "2.1.0", "python_version": "3.13.1"}, "python-pair"),
]


@pytest.mark.parametrize(("versions", "code"), PAIRS, ids=[code for _, code in PAIRS])
def test_versions_that_do_not_go_together_are_told(versions, code):
    framework = Framework(**{"python": "py", "python_version": "3.11.9", "cuda": None, **versions})
    assert codes(machine(framework=framework))[code] == "warn"


def test_a_build_without_kernels_for_the_gpu_stops_the_run():
    old = (gpu(0, name="Tesla P100-PCIE-16GB", gib=16, capability=(6, 0)),)
    new = (gpu(0, name="NVIDIA GeForce RTX 5090", gib=32, capability=(12, 0)),)
    build = Framework(python="py", python_version="3.12.1", torch="2.13.0+cu124", cuda="12.4")
    assert codes(machine(old))["gpu-not-in-build"] == "warn"
    assert codes(machine(new, framework=build))["gpu-not-in-build"] == "stop"
    assert "gpu-not-in-build" not in codes(machine(new))


def test_several_4090_under_a_driver_that_lies_about_p2p():
    assert codes(machine(four_4090(), gpu_driver="535.86.05"))["p2p-driver"] == "warn"
    assert "p2p-driver" not in codes(machine(four_4090(), gpu_driver="570.1"))


VARIABLES = [
    ({"CUDA_LAUNCH_BLOCKING": "1"}, "env-debug"),
    ({"NCCL_P2P_DISABLE": "1"}, "env-link-off"),
    ({"NCCL_BLOCKING_WAIT": "1"}, "env-renamed"),
    ({"TORCH_COMPILE": "1"}, "env-renamed"),
    ({"TORCHELASTIC_USE_AGENT_STORE": "False"}, "env-unread"),
    ({"PYTORCH_ALLOC_CONF": "a:1", "PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True"}, "env-alloc-both"),
    ({"PYTORCH_ALLOC_CONF": "expandable_segmets:True"}, "env-alloc-key"),
    ({"CUDA_DEVICE_ORDER": "FASTEST_FIRST"}, "env-order"),
    ({"NVIDIA_TF32_OVERRIDE": "0"}, "env-tf32"),
]


@pytest.mark.parametrize(("environment", "code"), VARIABLES, ids=[code for _, code in VARIABLES])
def test_variables_with_no_or_a_bad_effect_are_told(environment, code):
    assert code in codes(machine(environment=environment))


def test_variables_that_do_no_harm_are_not_told():
    assert codes(machine(environment={"CUDA_LAUNCH_BLOCKING": "0", "NCCL_DEBUG": "WARN"})) == {"no-gpu": "ok"}


@dataclass
class FakeRanks:
    """Answers for ranks that are never started."""

    answers: list[RankAnswer]
    jobs: Any = None

    def run(self, python, jobs):
        self.jobs = (python, list(jobs))
        return self.answers


def test_two_ranks_on_gpus_are_asked_over_nccl():
    ranks = FakeRanks([RankAnswer(rank=0, rate_bytes_s=5e9, pairs={"0-1": True}), RankAnswer(rank=1, rate_bytes_s=5e9)])
    (finding,) = try_ranks(machine(eight_h100()), "auto", ranks)
    python, jobs = ranks.jobs
    assert (finding.code, python) == ("machine/smoke-ok", "/opt/venv/bin/python")
    assert [(job["rank"], job["backend"], job["devices"][:2]) for job in jobs] == [
        (0, "nccl", [0, 1]),
        (1, "nccl", [0, 1]),
    ]


def test_wrong_content_and_failed_ranks_stop_the_run():
    wrong = judge_answers([RankAnswer(rank=0, pairs={"0-1": False}), RankAnswer(rank=1)], "nccl")
    changed = judge_answers([RankAnswer(rank=0, wrong=4), RankAnswer(rank=1)], "nccl")
    failed = judge_answers([RankAnswer(rank=0, trouble="> 60 s"), RankAnswer(rank=1, trouble="NCCL error")], "nccl")
    assert [one.code for one in (wrong, changed, failed)] == ["machine/smoke-wrong"] * 2 + ["machine/smoke-failed"]
    assert "P2P 0-1" in wrong.facts["why"] and failed.facts["why"] == "NCCL error"
    assert {one.level for one in (wrong, changed, failed)} == {"stop"}


def test_without_a_framework_no_rank_is_started():
    assert list(try_ranks(machine(framework=Framework(python="py")), "auto", FakeRanks([]))) == []


def test_an_interpreter_that_fails_is_told_with_its_last_words(tmp_path):
    broken = tmp_path / "python"
    broken.write_text("#!/bin/sh\necho no module named torch >&2\nexit 1\n")
    broken.chmod(0o755)
    framework = Framework(python=str(broken), python_version="3.12", torch="2.13.0+cpu")
    (finding,) = try_ranks(machine(framework=framework))
    assert (finding.code, finding.facts["why"]) == ("machine/smoke-failed", "no module named torch")


class Paths(Section):
    """A section with places."""

    data_dir: str | None = None
    cache_dir: str = "/nowhere/at/all"


def recipe(**more) -> Recipe:
    return Recipe(name="r", section=Paths, task="t", **more)


def test_data_that_is_not_there_stops_the_run(tmp_path):
    (finding,) = judge_data(recipe(), Paths(data_dir=str(tmp_path / "none")))
    assert (finding.code, finding.facts["key"]) == ("machine/data-absent", "task.data_dir")
    assert list(judge_data(recipe(), Paths(data_dir=str(tmp_path)))) == []


def test_what_a_recipe_refuses_is_told_with_its_own_words():
    def refuse(section):
        raise CheckError("machine/gpu-twice", wanted="0,0")

    (finding,) = judge_data(recipe(train_samples=refuse), Paths())
    assert finding.level == "stop" and "0,0" in finding.facts["why"]
    (ready,) = judge_data(recipe(train_samples=lambda section: 1234), Paths())
    assert ready.facts["num"] == "1,234"


def test_the_child_of_the_smoke_test_needs_nothing_of_ours():
    import ast
    from pathlib import Path

    from headway.machine import smoke_child

    tree = ast.parse(Path(smoke_child.__file__).read_text(encoding="utf-8"))
    names = {name.name for node in ast.walk(tree) if isinstance(node, ast.Import) for name in node.names}
    names |= {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert names <= set(sys.stdlib_module_names)


def told(said: str, exit_code: int | None = 0, errors: str = "") -> Answer:
    return Answer(value=json.loads(said) if said else None, said=said, errors=errors, exit_code=exit_code)


def test_the_answer_of_the_loader_is_judged():
    good = '{"samples": 9, "taken": 4, "seconds": 0.5, "shapes": {"x": [4, 8]}, "broken": []}'
    found = judge_batch(told(good))
    assert (found.code, found.facts["shapes"]) == ("machine/batch-ok", "x 4×8")
    assert judge_batch(told(good.replace("[]", '["x"]'))).code == "machine/batch-broken"
    assert judge_batch(told("", 1, "Traceback\nKeyError: 'x'")).facts["why"] == "KeyError: 'x'"
    assert judge_batch(told("")).level == "stop" and judge_batch(told("", None)).facts["why"] == "> 60 s"


def test_versions_of_packages_are_read_from_the_names_of_their_folders(tmp_path, monkeypatch):
    (tmp_path / "torchvision-0.28.1+cpu.dist-info").mkdir()
    monkeypatch.setattr(sys, "path", [str(tmp_path / "gone"), str(tmp_path)])
    assert probe.installed_version("torchvision") == "0.28.1+cpu"
    assert probe.installed_version("numpy") is None
