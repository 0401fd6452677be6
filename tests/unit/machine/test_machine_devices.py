"""Which GPUs a run takes, and what a refusal says."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fakes.machines import GIB, busy, eight_h100, four_4090, gpu, lost, machine, mixed
from headway.errors import CheckError
from headway.machine import Framework, GpuProcess, is_free, pick_devices


def test_auto_takes_every_free_gpu():
    one, two, *_ = eight_h100()
    assert pick_devices(machine((one, busy(two), lost(2), gpu(3))), "auto") == (0, 3)


def test_auto_without_gpus_is_cpu_and_zero_is_cpu_everywhere():
    assert pick_devices(machine(), "auto") == ()
    assert pick_devices(machine(eight_h100()), 0) == ()
    assert pick_devices(machine(eight_h100()), ()) == ()


def test_auto_never_falls_back_to_cpu_when_all_gpus_are_busy():
    with pytest.raises(CheckError) as refused:
        pick_devices(machine((busy(gpu(0), user="bob"),)), "auto")
    assert refused.value.code == "machine/no-free-gpu"
    assert "bob pid 4242 python 60.0 GiB" in refused.value.text("en")
    assert refused.value.exit_code == 3


def test_a_number_takes_equal_gpus_first():
    assert pick_devices(machine(mixed()), 2) == (1, 2)
    assert pick_devices(machine(mixed()), 1) == (0,)
    assert pick_devices(machine(mixed()), 3) == (0, 1, 2)


def test_more_gpus_than_there_are_names_what_is_there():
    with pytest.raises(CheckError) as refused:
        pick_devices(machine(four_4090()), 8)
    assert refused.value.code == "machine/too-few-gpus"
    assert "3 NVIDIA GeForce RTX 4090" in refused.value.text("en")


def test_more_gpus_than_are_free_names_who_holds_them():
    with pytest.raises(CheckError) as refused:
        pick_devices(machine((gpu(0), busy(gpu(1), user="bob"))), 2)
    assert refused.value.code == "machine/gpus-taken"
    assert "1: bob pid 4242" in refused.value.text("zh")


def test_named_gpus_are_taken_even_when_busy():
    assert pick_devices(machine((gpu(0), busy(gpu(1)))), (1,)) == (1,)


@pytest.mark.parametrize(
    ("wanted", "code"), [((0, 7), "machine/no-such-gpu"), ((2,), "machine/gpu-lost"), ((0, 0), "machine/gpu-twice")]
)
def test_named_gpus_that_cannot_be_used_are_refused(wanted, code):
    with pytest.raises(CheckError) as refused:
        pick_devices(machine((gpu(0), gpu(1), lost(2))), wanted)
    assert refused.value.code == code


def test_torch_without_cuda_means_cpu_and_refuses_an_explicit_wish():
    plain = Framework(python="python", python_version="3.12.4", torch="2.13.0+cpu")
    report = machine(eight_h100(), framework=plain)
    assert pick_devices(report, "auto") == ()
    with pytest.raises(CheckError) as refused:
        pick_devices(report, 2)
    assert refused.value.code == "machine/torch-cannot-gpu"


@pytest.mark.parametrize(
    ("change", "free"),
    [
        ({}, True),
        ({"processes": (GpuProcess(pid=1, held_bytes=200 << 20),)}, True),
        ({"processes": (GpuProcess(pid=1, held_bytes=600 << 20),)}, False),
        ({"processes": (GpuProcess(pid=1),)}, True),
        ({"processes": (GpuProcess(pid=1),), "free_bytes": 40 * GIB}, False),
        ({"free_bytes": 70 * GIB}, False),
        ({"utilisation": 90}, False),
        ({"utilisation": None, "free_bytes": None}, True),
    ],
)
def test_a_gpu_is_free_when_nobody_works_on_it(change, free):
    assert is_free(replace(gpu(0), **change)) is free
