"""What recorded machines are judged to be, and how they stand in for this one."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
import test_machine_dumps as samples

from fakes.dumps import judge_text
from fakes.machines import GIB, eight_h100, machine, two_v100
from headway.config import ParallelConfig, RunConfig
from headway.errors import CheckError, UsageError
from headway.machine import (
    MachineReport,
    find_machine,
    find_model,
    gpu_models,
    judge_machine,
    make_machine,
    read_dump,
    read_machine,
)
from headway.machine.devices import list_alike
from headway.messages import LANGUAGES, hint, say

FREE = """\
              total        used        free      shared  buff/cache   available
Mem:           15Gi        14Gi       212Mi       1.0Gi       900Mi       301Mi
Swap:         2.0Gi       2.0Gi          0B
"""
INODES = """\
Filesystem        Inodes    IUsed     IFree IUse% Mounted on
/dev/sda1       61054976 61054970         6  100% /
/dev/sdb1              0        0         0     - /btrfs
tmpfs           16461234       12  16461222    1% /dev/shm
"""
LISTED = """\
GPU 0: NVIDIA H20 (UUID: GPU-8ad4a1c3-1111-2222-3333-444455556666)
GPU 1: NVIDIA H20 (UUID: GPU-8ad4a1c3-1111-2222-3333-444455556667)
"""
P2P = """\
 \tGPU0\tGPU1\tGPU2\t
 GPU0\tX\tCNS\tOK\t
 GPU1\tCNS\tX\tOK\t
 GPU2\tOK\tOK\tX\t

Legend:

  X    = Self
  OK   = Status Ok
  CNS  = Chipset not supported
"""
COLLECTED = """\
PyTorch version: 2.6.0+cu124
Is debug build: False
CUDA used to build PyTorch: 12.4
ROCM used to build PyTorch: N/A

OS: Ubuntu 22.04.4 LTS (x86_64)
Python version: 3.10.16 (main, Dec 11 2024) (64-bit runtime)
Is CUDA available: False
GPU models and configuration:
GPU 0: NVIDIA GeForce RTX 3090

Nvidia driver version: 470.82.01
"""


def codes(text: str) -> dict[str, str]:
    return {finding.code.removeprefix("machine/"): finding.level for finding in judge_text(text)}


CASES = [
    (samples.OLD, "driver-old", "warn"),
    (samples.OLD, "gpu-persistence-off", "note"),
    (samples.WINDOWS, "gpu-wddm", "note"),
    (samples.WINDOWS, "gpu-small", "note"),
    (samples.NEW, "mig-on", "warn"),
    (samples.NEW, "gpu-sensor-broken", "warn"),
    (samples.NEW, "gpu-exclusive", "warn"),
    (samples.LONG, "gpu-hot", "warn"),
    (samples.LONG, "gpu-throttled", "warn"),
    (samples.LONG, "gpu-uncorrected", "warn"),
    (samples.LONG, "gpu-pages-pending", "warn"),
    (samples.LONG, "gpu-pages-retired", "note"),
    (samples.LONG, "gpu-no-bf16", "note"),
    (samples.ASCEND, "npu-unwell", "warn"),
    (samples.ASCEND, "npu-busy", "warn"),
    (samples.ULIMIT, "nproc-low", "warn"),
    (FREE, "swap-full", "note"),
    (INODES, "inodes-low", "warn"),
    (P2P, "p2p-closed", "note"),
    (COLLECTED, "driver-too-old", "stop"),
    ("NVRM: Xid (PCI:0000:01:00): 48, pid=1, DBE", "xid-memory", "warn"),
    ("NVRM: Xid (PCI:0000:01:00): 31, pid=1, MMU", "xid-program", "note"),
    ("NVRM: Xid (PCI:0000:01:00): 74, NVLINK", "xid-link", "warn"),
    ("NVRM: Xid (PCI:0000:01:00): 999, what", "xid-other", "warn"),
    ("nvidia-nvswitch1: SXid (PCI:0000:06:00.0): 20034, Fatal", "sxid", "warn"),
    ("nvmlInit_v2() failed: Driver/library version mismatch\n", "driver-mismatch", "stop"),
    ("Failed to initialize NVML: Unknown Error", "container-lost", "stop"),
    ("Unable to determine the device handle for GPU 0000:05:00.0: GPU is lost.", "gpu-lost-bus", "stop"),
    ("No devices were found", "no-devices", "warn"),
    ("nvidia-smi: command not found", "driver-not-loaded", "warn"),
    ("Filesystem Size Used Avail Use% Mounted on\nshm 64M 0 64M 0% /dev/shm\n", "shm-little", "warn"),
    ("GPU0 GPU1 CPU Affinity\nGPU0 X SYS 0-3\nGPU1 SYS X 0-3\n", "links-slow", "warn"),
    ("GPU0 GPU1 CPU Affinity\nGPU0 X PIX 0-3\nGPU1 PIX X 0-3\n", "links-pcie", "note"),
    ("GPU 0: A (UUID: u)\n\t Link 0: 25 GB/s\n\t Link 1: <inactive>\n", "nvlink-down", "warn"),
    ("Server Version: 24\n Runtimes: runc\n Default Runtime: runc\n", "docker-no-nvidia", "warn"),
    ("Server Version: 24\n Runtimes: runc nvidia\n Default Runtime: runc\n", "docker-default", "note"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "code", "level"), CASES, ids=[case[1] for case in CASES])
def test_each_fault_of_a_recording_is_told_in_both_languages(text, code, level):
    assert codes(text)[code] == level
    for finding in judge_text(text):
        for lang in LANGUAGES:
            assert "{" not in say(finding.code, lang, **finding.facts)
            assert hint(finding.code, lang, **finding.facts)


def test_an_idle_link_of_equal_gpus_has_nothing_to_say():
    matrix = "GPU0 GPU1 CPU Affinity NUMA Affinity\nGPU0 X NV18 0-3 0\nGPU1 NV18 X 0-3 0\n"
    assert codes(matrix) == {}


def test_counts_and_their_total_are_not_added_up():
    (finding,) = (one for one in judge_text(samples.LONG) if one.code == "machine/gpu-uncorrected")
    assert (finding.facts["num"], finding.facts["ever"]) == ("2", "7")


def test_a_recorded_table_stands_in_with_gpus_a_run_could_take():
    report = read_machine(samples.LONG, "q.txt")
    assert [gpu.name for gpu in report.gpus] == ["Tesla V100-SXM2-32GB"]
    assert (report.gpu_driver, report.gpu_driver_cuda, report.stands_in) == ("470.57.02", "11.4", "q.txt")
    assert (report.framework.torch, report.cores, report.memory_bytes, report.host) == (None, None, None, None)
    assert "machine/stands-in" in {finding.code for finding in report.findings}


def test_a_list_without_processes_says_nothing_about_company():
    text = "index, name, memory.total [MiB], memory.used [MiB]\n0, NVIDIA L4, 23034 MiB, 1900 MiB\n"
    found = {finding.code for finding in read_machine(text, "gpus.csv").findings}
    assert "machine/gpu-memory-unseen" not in found


def test_machine_json_stands_in_whole():
    other = machine(eight_h100(), host="gz7")
    report = read_machine(json.dumps(other.to_json()), "m.json")
    assert (report.host, len(report.gpus), report.can_run) == ("gz7", 8, True)


def test_the_config_is_judged_against_the_machine_that_stands_in():
    config = RunConfig(parallel=ParallelConfig(gpus=4))
    assert not make_machine("2x4090", machine(), config).can_run
    assert make_machine("4x4090", machine(), config).can_run


@pytest.mark.parametrize("text", ["", "hello", "{", '{"host": 1}'])
def test_a_text_that_tells_nothing_is_refused(text):
    with pytest.raises(CheckError) as refused:
        read_machine(text, "x.txt")
    assert refused.value.code in ("machine/record-unknown", "machine/record-unreadable")


@pytest.mark.parametrize(
    ("wanted", "number", "name", "gib"),
    [
        ("8xH20", 8, "NVIDIA H20 96GB", 95),
        ("2x4090", 2, "NVIDIA GeForce RTX 4090", 23),
        ("a100-40gb", 1, "NVIDIA A100 SXM4 40GB", 39),
        ("4 × RTX A6000", 4, "NVIDIA RTX A6000", 47),
    ],
)
def test_a_wished_machine_has_those_gpus(wanted, number, name, gib):
    report = make_machine(wanted, machine(two_v100(), environment={"CUDA_VISIBLE_DEVICES": ""}))
    assert [gpu.name for gpu in report.gpus] == [name] * number
    assert (report.gpus[0].total_bytes or 0) // GIB == gib
    assert report.can_run and report.cores >= 8 * number


def test_a_wish_nobody_knows_names_the_nearest():
    with pytest.raises(UsageError) as refused:
        make_machine("8xH21", machine())
    assert "8xh20" in refused.value.hint("en")
    with pytest.raises(UsageError):
        make_machine("0xH20", machine())


@pytest.mark.parametrize(
    ("name", "gib", "found"),
    [
        ("NVIDIA H100 80GB HBM3", 79, "H100 SXM5 80GB"),
        ("NVIDIA H100 PCIe", 79, "H100 PCIe 80GB"),
        ("NVIDIA A100-SXM4-40GB", 39, "A100 SXM4 40GB"),
        ("NVIDIA A100 80GB PCIe", 79, "A100 PCIe 80GB"),
        ("Tesla V100-SXM2-32GB", 32, "Tesla V100 SXM2 32GB"),
        ("NVIDIA GeForce RTX 3090", 24, "GeForce RTX 3090"),
        ("NVIDIA GeForce RTX 3080 Ti", 12, "GeForce RTX 3080 Ti"),
        ("NVIDIA L40S", 45, "L40S"),
        ("NVIDIA L40", 45, "L40"),
        ("Tesla T4", 15, "Tesla T4"),
        ("NVIDIA GeForce RTX 4090", 48, "GeForce RTX 4090 48GB (modified)"),
        ("GeForce GTX 108...", 11, None),
        ("Some Board 1", 11, None),
    ],
)
def test_a_drivers_name_leads_to_its_model(name, gib, found):
    model = find_model(name, gib)
    assert (model.name if model else None) == found


def test_every_model_has_a_name_of_its_own_and_is_found_by_its_aliases():
    from headway.machine.cards import parse_wanted

    names = [model.name for model in gpu_models()]
    assert len(names) == len(set(names)) > 90
    for model in gpu_models():
        assert model.memory_gib > 0
        assert {parse_wanted(alias)[1].vendor for alias in model.aliases} == {model.vendor}


@pytest.mark.parametrize(
    ("wish", "name", "devices"),
    [
        ("8xA100-80G", "A100 SXM4 80GB", 8),
        ("8xA100-40GB", "A100 SXM4 40GB", 8),
        ("8xH20-96G", "H20 96GB", 8),
        ("8xH20-141GB", "H20 141GB", 8),
        ("1x3060-12GB", "GeForce RTX 3060 12GB", 1),
        ("2x4090-24GB", "GeForce RTX 4090", 2),
        ("2x4090 48G", "GeForce RTX 4090 48GB (modified)", 2),
        ("v100-32g", "Tesla V100 SXM2 32GB", 1),
        ("4xMI250X", "Instinct MI250X", 8),
        ("8x910B", "Ascend 910B (64GB)", 8),
        ("8x910B3", "Ascend 910B (64GB)", 8),
        ("8xAscend 910B2-64GB", "Ascend 910B (64GB)", 8),
        ("8x910B4", "Ascend 910B4 (32GB)", 8),
        ("8xH200-141G", "H200 SXM 141GB", 8),
        ("1x4070 Ti Super", "GeForce RTX 4070 Ti SUPER 16GB", 1),
        ("8xMI300X-192GB", "Instinct MI300X", 8),
    ],
)
def test_a_wish_may_state_the_memory_of_the_card(wish, name, devices):
    from headway.machine.cards import parse_wanted

    count, model = parse_wanted(wish)
    assert (model.name, count * model.devices) == (name, devices)


@pytest.mark.parametrize("wish", ["8xH20-80GB", "1x4090-80G", "2xA100-24GB"])
def test_a_card_is_refused_with_a_memory_it_was_never_made_with(wish):
    from headway.machine.cards import parse_wanted

    with pytest.raises(UsageError) as refused:
        parse_wanted(wish)
    assert refused.value.code == "machine/on-size"


def test_memory_and_room_of_a_recorded_machine_take_the_place_of_ours():
    there = read_machine(FREE, "free.txt")
    assert (there.memory_bytes, there.memory_free_bytes) == (15 * GIB, 301 << 20)
    assert "machine/memory-low" in [one.code for one in there.findings]
    files = read_machine(INODES, "df.txt")
    assert files.shm_bytes is None
    assert [one.facts["place"] for one in files.findings if one.code == "machine/inodes-low"] == ["/"]


def test_a_bare_list_of_gpus_and_a_quoted_table_are_read():
    there = read_machine(LISTED, "list.txt")
    assert [(gpu.index, gpu.name) for gpu in there.gpus] == [(0, "NVIDIA H20"), (1, "NVIDIA H20")]
    quoted = "\n".join(f"# {line}" for line in samples.OLD.splitlines())
    assert read_dump(quoted).parts["nvidia_smi"] == read_dump(samples.OLD).parts["nvidia_smi"]


def test_mixed_gpus_are_answered_with_those_of_one_kind():
    there = make_machine("2xH100", machine())
    other = make_machine("1x4090", machine()).gpus[0]
    mixed = (replace(other, index=0), *(replace(gpu, index=gpu.index + 1) for gpu in there.gpus))
    assert list_alike(mixed) == "1,2"


@pytest.mark.parametrize("text", [samples.OLD, samples.ULIMIT, LISTED, P2P], ids=["table", "limits", "list", "p2p"])
def test_nothing_of_this_machine_stands_in_a_recorded_one(text, monkeypatch, tmp_path):
    monkeypatch.setenv("NCCL_DEBUG", "INFO")
    monkeypatch.setenv("RANK", "3")
    (tmp_path / "there.txt").write_text(text)
    report = find_machine(tmp_path, record=tmp_path / "there.txt")
    told = (report.host, report.os, report.kernel, report.python, report.cores, report.memory_bytes, report.shm_bytes)
    assert told == (None,) * 7 and report.environment == {} and report.out_writable is None
    assert report.framework.torch is None and report.framework.python_version is None
    assert not {one.code for one in report.findings} & {"machine/env-debug", "machine/env-left-over", "machine/no-swap"}


def test_a_plan_for_a_recorded_machine_counts_on_a_usual_host_and_not_on_this_one():
    report = read_machine(LISTED)
    assert (report.planned_cores, report.cores) == (16, None)
    told = read_machine("ann@host:~$ nproc\n4\n" + LISTED)
    assert (told.planned_cores, told.cores) == (4, 4)


@pytest.mark.parametrize(
    ("trouble", "code"),
    [
        ("Driver/library version mismatch", "machine/driver-mismatch"),
        ("Failed to initialize NVML: Unknown Error", "machine/container-lost"),
        ("nvidia-smi gave no answer within 15 s", "machine/gpu-driver-broken"),
    ],
)
def test_gpus_that_do_not_answer_stop_a_run_that_did_not_choose_the_cpu(trouble, code):
    silent = machine(gpu_trouble=trouble)
    assert {one.code: one.level for one in judge_machine(silent)}[code] == "stop"
    on_cpu = RunConfig(parallel=ParallelConfig(gpus=0))
    assert {one.code: one.level for one in judge_machine(silent, on_cpu)}[code] == "warn"


def test_a_machine_json_is_read_back_whole():
    report = read_machine(INODES + FREE + "Server Version: 24\n Runtimes: runc\n Default Runtime: runc\n")
    assert report.around.mounts and report.around.runtimes == ("runc",)
    assert MachineReport.from_json(json.loads(json.dumps(report.to_json()))) == report
