"""GPU readings: nvidia-smi's text, CUDA_VISIBLE_DEVICES, sources in turn, recorded machines."""

from __future__ import annotations

import json

import pytest

from fakes.machines import FakeGpuDriver, eight_h100, four_4090, lost, machine, reading
from headway.adopt.launchers.parts import count_devices
from headway.machine import FirstOf, GpuReading, RecordedDriver, inspect_machine, parse_smi
from headway.machine.devices import apply_visible, list_visible

GPU_CSV = """\
index, uuid, name, driver_version, memory.total [MiB], memory.free [MiB], compute_cap, utilization.gpu [%], \
temperature.gpu
0, GPU-aaaa, NVIDIA A100-SXM4-80GB, 550.54.15, 81920 MiB, 81000 MiB, 8.0, 3 %, 41
1, GPU-bbbb, NVIDIA A100-SXM4-80GB, 550.54.15, 81920 MiB, 1000 MiB, 8.0, [N/A], 66
"""
APP_CSV = """\
gpu_uuid, pid, process_name, used_gpu_memory [MiB]
GPU-bbbb, 999999999, /usr/bin/python3, 79000 MiB
"""


def test_smi_text_gives_every_reading_and_na_is_none():
    found = parse_smi(GPU_CSV, APP_CSV)
    first, second = found.gpus
    assert (found.driver, first.name, first.capability) == ("550.54.15", "NVIDIA A100-SXM4-80GB", (8, 0))
    assert (first.total_bytes, first.free_bytes, first.utilisation) == (81920 << 20, 81000 << 20, 3)
    assert second.utilisation is None
    assert [(one.pid, one.user, one.held_bytes) for one in second.processes] == [(999999999, None, 79000 << 20)]
    assert first.processes == ()


def test_smi_columns_are_found_by_name_in_any_order():
    found = parse_smi("name, index, memory.total [MiB]\nTesla T4, 3, 15360 MiB\n")
    assert [(gpu.physical, gpu.name, gpu.total_bytes) for gpu in found.gpus] == [(3, "Tesla T4", 15360 << 20)]


def test_smi_keeps_a_lost_gpu_in_the_list():
    text = "Unable to determine the device handle for GPU 0000:05:00.0: GPU is lost.  Reboot the system\n" + GPU_CSV
    found = parse_smi(text)
    assert [(gpu.physical, gpu.lost) for gpu in found.gpus] == [(0, False), (1, False), (2, True)]
    assert found.trouble is None


@pytest.mark.parametrize(
    "said", ["Failed to initialize NVML: Driver/library version mismatch\nNVML library version: 550.90", "garbage"]
)
def test_smi_failure_is_told_in_its_own_words(said):
    found = parse_smi(said)
    assert found.gpus == ()
    assert found.trouble == " ".join(said.split())


def test_smi_without_devices_is_an_answer_and_no_trouble():
    assert parse_smi("No devices were found\n") == GpuReading(source="nvidia-smi")


@pytest.mark.parametrize("text", ["", ",", "name,,\n,,,", "index, name\n0", "a, pid\n1, x", "\x00, name\n" * 3])
def test_smi_parser_survives_broken_text(text):
    assert isinstance(parse_smi(text, text), GpuReading)


@pytest.mark.parametrize(
    ("value", "physical"),
    [
        (None, [0, 1, 2, 3]),
        ("2,0", [2, 0]),
        (" 1 , 3", [1, 3]),
        ("", []),
        ("-1", []),
        ("0,-1,1", [0]),
        ("0,9,1", [0]),
        ("1,1", []),
        ("GPU-00000002", [2]),
        ("GPU-00000003-0000-4000-8000-000000000003,0", [3, 0]),
        ("GPU-0", []),
        ("NoDevFiles", []),
    ],
)
def test_visible_devices_are_read_as_cuda_reads_them(value, physical):
    seen = apply_visible(four_4090(), value)
    assert [gpu.physical for gpu in seen] == physical
    assert [gpu.index for gpu in seen] == list(range(len(physical)))


def test_sources_are_asked_in_turn_and_trouble_is_kept_only_when_nobody_answers():
    absent, broken = FakeGpuDriver(None), FakeGpuDriver(GpuReading(source="nvml", trouble="mismatch"))
    whole = FakeGpuDriver(reading(eight_h100()))
    assert FirstOf((absent, broken, whole)).read() == whole.reading
    assert FirstOf((absent, broken)).read() == broken.reading
    assert FirstOf((absent,)).read() is None


def test_recorded_machine_stands_in_for_a_driver(tmp_path):
    path = tmp_path / "machine.json"
    path.write_text(json.dumps(machine((*four_4090(), lost(4))).to_json()))
    report = inspect_machine(tmp_path, driver=RecordedDriver(path), environ={})
    assert report.gpus == (*four_4090(), lost(4))
    assert (report.gpu_source, report.gpu_driver) == ("recorded", "570.211.01")


@pytest.mark.parametrize(
    ("value", "num"),
    [("0,-1,1", 1), ("0,,1", 1), ("0, 1", 2), ("", 0), ("-1", 0), ("GPU-a,1", 2), ("MIG-a,MIG-b,0", 2), ("1,1", 0)],
)
def test_everybody_counts_devices_as_cuda_does(value, num):
    assert len(list_visible(value)) == num
    assert (count_devices(tuple(value.split(","))) or 0) == num
