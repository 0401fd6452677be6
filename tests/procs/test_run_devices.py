"""`headway run --gpus`, `--cpus` and `--when-free`, with an nvidia-smi that tells of GPUs which are not here."""

from __future__ import annotations

import os

import pytest

from fakes.run_command import finished, running, script
from headway.machine import NvmlDriver

SMI = """#!/bin/sh
case "$1" in
  --query-gpu=*)
    echo "index, uuid, name, driver_version, memory.total [MiB], memory.free [MiB], compute_cap, utilization.gpu [%], \
temperature.gpu, pci.bus_id"
    for i in 0 1 2; do
      free=81000; if [ $i = 0 ]; then free=9000; fi
      echo "$i, GPU-0000000$i-1111-2222-3333-444444444444, NVIDIA A100, 550.54, 81920 MiB, $free MiB, 8.0, 0 %, \
30, 00000000:0$i:00.0"
    done;;
  --query-compute-apps=*) echo "gpu_uuid, pid, process_name, used_gpu_memory [MiB]";;
esac
"""
TELL = "import os; print('sees', os.environ.get('CUDA_VISIBLE_DEVICES'), os.environ.get('WORLD_SIZE'))"


@pytest.fixture
def path(tmp_path):
    if NvmlDriver().read() is not None:
        pytest.skip("NOT TESTED: this machine has a driver of its own, which answers before nvidia-smi")
    program = tmp_path / "bin" / "nvidia-smi"
    program.parent.mkdir()
    program.write_text(SMI)
    program.chmod(0o755)
    return {"PATH": f"{program.parent}:{os.environ['PATH']}"}


def test_a_number_of_gpus_gives_as_many_ranks_on_free_ones(tmp_path, path):
    ran = finished(tmp_path, "--gpus", "2", "torchrun", "--nproc_per_node=8", script(tmp_path, TELL), env=path)
    assert ran.process.returncode == 0, ran.err
    assert ran.run.stdout(0).read_text() == ran.run.stdout(1).read_text() == "sees 1,2 2\n"
    assert not list((tmp_path / "claims").iterdir())


def test_a_plain_line_is_one_process_with_all_named_gpus(tmp_path, path):
    name = "GPU-00000002-1111-2222-3333-444444444444"
    ran = finished(tmp_path, "--gpus", f"0,{name}", "python", script(tmp_path, TELL), env=path)
    assert ran.run.stdout(0).read_text() == f"sees 0,{name} None\n", ran.err


def test_cpus_hide_the_gpus_and_give_the_ranks(tmp_path, path):
    ran = finished(tmp_path, "--cpus", "2", "python", script(tmp_path, TELL), env=path)
    assert ran.run.stdout(1).read_text() == "sees  2\n", ran.err


def test_gpus_that_another_run_holds_are_not_taken_and_waiting_says_who(tmp_path, path):
    hold = script(tmp_path, "import time; print('holding', flush=True); time.sleep(1000)", "hold.py")
    with running(tmp_path, "--gpus", "2", "python", hold, env=path) as first:
        first.wait_line("holding")
        refused = finished(tmp_path, "--gpus", "1", "python", script(tmp_path, TELL), env=path)
        assert refused.process.returncode == 3
        assert f"pid {first.process.pid}" in refused.err
        first.process.kill()
        first.wait()
    assert not list((tmp_path / "claims").iterdir())
    ran = finished(tmp_path, "--when-free", "2", "python", script(tmp_path, TELL), env=path)
    assert ran.process.returncode == 0, ran.err
    assert "sees 1,2 None" in ran.out
