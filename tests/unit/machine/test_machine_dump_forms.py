"""Forms of known commands that the recorded machines do not have: other languages, versions and cuts."""

from __future__ import annotations

import pytest

from fakes.dumps import judge_text
from headway.machine import read_dump


def codes(text: str) -> list[str]:
    return [finding.code for finding in judge_text(text)]


def test_a_cuda_version_that_cannot_be_read_is_kept_as_printed():
    text = "| NVIDIA-SMI 545.46      Driver Version: 546.80       CUDA Version: ERR!     |\n"
    assert read_dump(text).parts["nvidia_smi"]["cuda"] == "ERR!"


@pytest.mark.parametrize("bus", ["000:BA:80.0", "0000:20:00.0", "00000000:9D:00.0"])
def test_the_lost_gpu_is_named_however_its_address_is_printed(bus):
    text = f"Unable to determine the device handle for GPU {bus}: Unknown Error"
    facts = read_dump(text).parts["nvidia_smi_error"]
    assert (facts["error_class"], facts["bus_id"]) == ("device_handle_unknown_error", bus)


def test_the_line_of_the_choice_alone_names_who_was_killed():
    text = (
        "[99.1] oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=a,mems_allowed=0,"
        "oom_memcg=/x,task_memcg=/x/y,task=pt_main_thread,pid=461754,uid=0\n"
    )
    facts = read_dump(text).parts["dmesg_oom"]
    assert facts["killed"] == [{"pid": 461754, "name": "pt_main_thread", "anon_rss_kb": None}]
    assert facts["scope"] == "cgroup"
    assert codes(text) == ["machine/oom-group"]


def test_processes_of_an_ascend_table_with_container_numbers_are_read():
    text = (
        "| npu-smi 26.0.rc2        Version: 26.0.rc2      |\n"
        "| 0     Ascend910   | OK            | -       34      0    / 0     |\n"
        "| 1     1           | 0000:9F:00.0  | 0       0    / 0    57784/ 65536 |\n"
        "+===+===+===+\n"
        "| NPU     Chip      | Process id    | Process name   | Process memory(MB)  | Process id in container |\n"
        "| 0       1         | 692318        | python3        | 12417               | NA                      |\n"
    )
    facts = read_dump(text).parts["npu_smi"]
    assert facts["processes"] == [{"npu": 0, "pid": 692318, "name": "python3", "used_mb": 12417}]
    assert (facts["npus"][0]["power_w"], facts["npus"][0]["temp_c"]) == (None, 34)


def test_a_list_of_gpus_tells_the_mig_devices_below_them():
    text = (
        "GPU 0: NVIDIA H100 80GB HBM3 (UUID: GPU-aaaa)\n"
        "  MIG 3g.40gb     Device  0: (UUID: MIG-bbbb)\n"
        "  MIG 1g.10gb     Device  1: (UUID: MIG-cccc)\n"
        "GPU 1: NVIDIA H100 80GB HBM3 (UUID: GPU-dddd)\n"
    )
    facts = read_dump(text).parts["nvidia_smi_list"]
    assert [one["profile"] for one in facts["mig_devices"]] == ["3g.40gb", "1g.10gb"]
    assert [one.get("mig_mode") for one in facts["gpus"]] == ["Enabled", None]
    assert "machine/mig-on" in codes(text)


def test_meminfo_is_read_as_free_is():
    text = (
        "MemTotal:       65746092 kB\nMemFree:  1234567 kB\nMemAvailable: 3456789 kB\nSwapTotal: 0 kB\nSwapFree: 0 kB\n"
    )
    facts = read_dump(text).parts["free"]
    assert (facts["total"], facts["available"], facts["swap_total"], facts["unit"]) == (65746092, 3456789, 0, "KiB")


def test_df_in_another_language_is_read_by_its_order():
    text = (
        "Dateisystem     Größe Benutzt Verf. Verw% Eingehängt auf\n"
        "/dev/sda2        916G    870G     0  100% /\n"
        "tmpfs             32G     11M   32G    1% /dev/shm\n"
    )
    facts = read_dump(text).parts["df"]
    assert facts["dev_shm"] == "32G"
    assert facts["filesystems"][0] == {
        "fs": "/dev/sda2", "size": "916G", "used": "870G", "avail": "0", "use_pct": 100, "mount": "/"
    }  # fmt: skip


def test_free_in_another_language_is_read_by_its_order():
    text = (
        "              gesamt       benutzt     frei      gemns.  Puffer/Cache verfügbar\n"
        "Speicher:       62Gi        58Gi       512Mi       1,0Gi       3,5Gi       2,9Gi\n"
        "Swap:             0B          0B          0B\n"
    )
    facts = read_dump(text).parts["free"]
    assert (facts["total"], facts["used"], facts["available"], facts["swap_total"]) == ("62Gi", "58Gi", "2,9Gi", "0B")


def test_a_gpu_that_was_asked_twice_is_one_gpu_as_it_is_now():
    one = "==============NVSMI LOG==============\nDriver Version : 590.48.01\nAttached GPUs : 1\nGPU 00000000:01:00.0\n"
    text = "".join(f"{one}    Product Name : NVIDIA L40S\n    Fan Speed : {fan} %\n\n" for fan in (10, 60))
    facts = read_dump(text).parts["nvidia_smi_q"]
    assert [gpu["fan_pct"] for gpu in facts["gpus"]] == [60]


def test_a_list_printed_twice_has_its_gpus_once():
    text = "GPU 0: NVIDIA L40S (UUID: GPU-aa)\nGPU 1: NVIDIA L40S (UUID: GPU-bb)\n" * 2
    assert [gpu["index"] for gpu in read_dump(text).parts["nvidia_smi_list"]["gpus"]] == [0, 1]
