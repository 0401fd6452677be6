"""Recorded outputs of commands: each layout that exists, and what is found in it."""

from __future__ import annotations

from headway.machine import read_dump

WINDOWS = """\
   +---------------------------------------------------------------------------------------+
   | NVIDIA-SMI 537.34                 Driver Version: 537.34       CUDA Version: 12.2     |
   |-----------------------------------------+----------------------+----------------------+
   | GPU  Name                     TCC/WDDM  | Bus-Id        Disp.A | Volatile Uncorr. ECC |
   | Fan  Temp   Perf          Pwr:Usage/Cap |         Memory-Usage | GPU-Util  Compute M. |
   |                                         |                      |               MIG M. |
   |=========================================+======================+======================|
   |   0  NVIDIA GeForce RTX 3060 Ti   WDDM  | 00000000:01:00.0  On |                  N/A |
   |  0%   51C    P8              12W / 200W |   1489MiB /  8192MiB |      5%      Default |
   |                                         |                      |                  N/A |
   +-----------------------------------------+----------------------+----------------------+
"""
OLD = """\
+-----------------------------------------------------------------------------+
| NVIDIA-SMI 375.66                 Driver Version: 375.66                    |
|-------------------------------+----------------------+----------------------+
| GPU  Name        Persistence-M| Bus-Id        Disp.A | Volatile Uncorr. ECC |
| Fan  Temp  Perf  Pwr:Usage/Cap|         Memory-Usage | GPU-Util  Compute M. |
|===============================+======================+======================|
|   0  Tesla P100-PCIE...  Off  | 0000:02:00.0     Off |                    0 |
| N/A   37C    P0    28W / 250W |      0MiB / 16276MiB |      0%      Default |
+-------------------------------+----------------------+----------------------+
"""
NEW = """\
+-----------------------------------------------------------------------------------------+
| NVIDIA-SMI 610.57.04              KMD Version: 610.57.04     CUDA UMD Version: 13.3     |
+-----------------------------------------+------------------------+----------------------+
| GPU  Name                 Persistence-M | Bus-Id          Disp.A | Volatile Uncorr. ECC |
| Fan  Temp   Perf          Pwr:Usage/Cap |           Memory-Usage | GPU-Util  Compute M. |
|                                         |                        |               MIG M. |
|=========================================+========================+======================|
|   0  NVIDIA H100 80GB HBM3          On  |   00000000:0C:00.0 Off |                   On |
|ERR!   33C    P8             N/A /  700W |     211MiB /  81559MiB |     N/A   E. Process |
|                                         |                        |              Enabled |
+-----------------------------------------+------------------------+----------------------+
| MIG devices:                                                                            |
+------------------+--------------------------------+-----------+-------------------------+
|  0    1   0   0  |              25MiB / 11968MiB  | 28      0 |  2   0    2    0    0   |
+------------------+--------------------------------+-----------+-------------------------+
| Processes:                                                                              |
|  GPU   GI   CI              PID   Type   Process name                        GPU Memory |
|=========================================================================================|
|    0    1    0            1720      C   /opt/my tools/train one                 173MiB |
|    0   N/A  N/A            4556    C+G   Insufficient Permissions                   N/A |
+-----------------------------------------------------------------------------------------+
"""


def test_windows_prints_the_driver_model_where_linux_has_persistence():
    (gpu,) = read_dump(WINDOWS).parts["nvidia_smi"]["gpus"]
    assert (gpu["driver_model"], gpu["name"], gpu["display_active"]) == ("WDDM", "NVIDIA GeForce RTX 3060 Ti", "On")
    assert "persistence" not in gpu


def test_the_oldest_table_has_no_cuda_no_mig_and_a_short_address():
    facts = read_dump(OLD).parts["nvidia_smi"]
    (gpu,) = facts["gpus"]
    assert (facts["driver"], facts["cuda"], facts["process_list"]) == ("375.66", None, "absent")
    assert (gpu["bus_id"], gpu["power_cap_w"], gpu["memory_total_mib"]) == ("0000:02:00.0", 250, 16276)
    assert "mig_mode" not in gpu


def test_the_newest_table_with_mig_errors_and_hidden_processes():
    facts = read_dump(NEW).parts["nvidia_smi"]
    (gpu,) = facts["gpus"]
    assert (facts["driver"], facts["cuda"]) == ("610.57.04", "13.3")
    assert (gpu["fan_pct"], gpu["power_w"], gpu["util_pct"]) == ("ERR!", None, None)
    assert (gpu["compute_mode"], gpu["mig_mode"], gpu["ecc_mode"]) == ("E. Process", "Enabled", "On")
    assert facts["mig_devices"] == [
        {"gpu": 0, "gi": 1, "ci": 0, "mig_dev": 0, "memory_used_mib": 25, "memory_total_mib": 11968}
    ]
    first, second = facts["processes"]
    assert (first["name"], first["used_mib"], first["gi"]) == ("/opt/my tools/train one", 173, 1)
    assert (second["name"], second["used_mib"], second["type"]) == ("Insufficient Permissions", None, "C+G")


def test_one_file_may_hold_several_outputs():
    text = f"{OLD}\n$ nvcc -V\nCuda compilation tools, release 12.5, V12.5.40\n$ ulimit -a\n" + ULIMIT
    assert read_dump(text).kinds == ("nvidia_smi", "nvcc", "ulimit")


ULIMIT = """\
max locked memory           (kbytes, -l) unlimited
open files                          (-n) 1048576
max user processes                  (-u) 500
stack size                  (kbytes, -s) 8192
"""


def test_limits_without_a_number_stay_words():
    facts = read_dump(ULIMIT).parts["ulimit"]
    assert (facts["max_locked_memory_kb"], facts["open_files"], facts["max_user_processes"]) == (
        "unlimited",
        1048576,
        500,
    )


LONG = """\
==============NVSMI LOG==============
Driver Version                            : 470.57.02
CUDA Version                              : 11.4
Attached GPUs                             : 1
GPU 00000000:0B:00.0
    Product Name                          : Tesla V100-SXM2-32GB
    Persistence Mode                      : Disabled
    MIG Mode
        Current                           : N/A
    Clocks Throttle Reasons
        Idle                              : Not Active
        HW Slowdown                       : Active
            HW Thermal Slowdown           : Active
        SW Power Cap                      : Not Active
    FB Memory Usage
        Total                             : 32510 MiB
        Used                              : 10 MiB
    BAR1 Memory Usage
        Total                             : 1 MiB
        Used                              : 1 MiB
    ECC Errors
        Volatile
            Double Bit
                Device Memory             : 2
                Total                     : 2
        Aggregate
            Double Bit
                Device Memory             : 7
                Total                     : 7
    Retired Pages
        Single Bit ECC                    : 3
        Double Bit ECC                    : 1
        Pending Page Blacklist            : Yes
    Remapped Rows                         : N/A
    Temperature
        GPU Current Temp                  : 88 C
    Power Readings
        Power Draw                        : 43.89 W
        Power Limit                       : 300.00 W
    Processes
        GPU instance ID                   : N/A
        Process ID                        : 4242
            Type                          : C
            Name                          : python
            Used GPU Memory               : 5 MiB
"""


def test_the_long_form_of_an_old_gpu():
    facts = read_dump(LONG).parts["nvidia_smi_q"]
    (gpu,) = facts["gpus"]
    assert (facts["driver"], facts["attached_gpus"], gpu["memory_used_mib"]) == ("470.57.02", 1, 10)
    assert gpu["clock_reasons_active"] == ["HW Slowdown", "HW Thermal Slowdown"]
    assert gpu["ecc_nonzero"]["volatile.double_bit.device_memory"] == 2
    assert gpu["retired_pages"] == {"single_bit": 3, "double_bit": 1, "pending": "Yes"}
    assert gpu["remapped_rows"] is None
    assert gpu["processes"] == [{"pid": 4242, "type": "C", "name": "python", "used_mib": 5}]


def test_csv_columns_are_found_by_name_and_absent_readings_are_none():
    text = (
        "utilization.gpu [%], name, memory.total [MiB], power.draw [W]\n"
        "[N/A], NVIDIA A100-SXM4-80GB, 81920 MiB, [Not Supported]\n"
        "12 %, NVIDIA A100-SXM4-80GB, 81920 MiB, 61.25 W\n"
    )
    first, second = read_dump(text).parts["nvidia_smi_query_csv"]["gpus"]
    assert (first["util_pct"], first["power_w"], first["index"]) == (None, None, 0)
    assert (second["util_pct"], second["power_w"], second["memory_total_mib"]) == (12, 61.25, 81920)


ASCEND = """\
+------------------------------------------------------------------------------------------------+
| npu-smi 24.1.rc3.3               Version: 24.1.rc3.3                                           |
+---------------------------+---------------+----------------------------------------------------+
| NPU   Name                | Health        | Power(W)    Temp(C)           Hugepages-Usage(page)|
| Chip  Phy-ID              | Bus-Id        | AICore(%)   Memory-Usage(MB)  HBM-Usage(MB)        |
+===========================+===============+====================================================+
| 0     910C1               | OK            | 198.7       43                0    / 0             |
| 0     0                   | 0000:9D:00.0  | 0           0    / 0          56844/ 65536         |
+------------------------------------------------------------------------------------------------+
| 0     910C1               | Alarm         | -           43                0    / 0             |
| 1     1                   | 0000:9F:00.0  | 7           0    / 0          3000 / 65536         |
+===========================+===============+====================================================+
| NPU     Chip              | Process id    | Process name             | Process memory(MB)      |
+===========================+===============+====================================================+
| 0       0                 | 3190927       | python                   | 53000                   |
"""


def test_two_chips_on_one_ascend_board():
    facts = read_dump(ASCEND).parts["npu_smi"]
    first, second = facts["npus"]
    assert (first["power_w"], first["hbm_used_mb"], first["health"]) == (198.7, 56844, "OK")
    assert (second["power_w"], second["chip"], second["aicore_pct"], second["health"]) == (None, 1, 7, "Alarm")
    assert facts["processes"] == [{"npu": 0, "pid": 3190927, "name": "python", "used_mb": 53000}]


def test_the_links_of_ascend_boards_have_no_numa_column():
    text = (
        "\t   NPU0       NPU1       CPU Affinity\n"
        "NPU0       X          HCCS       144-167\nNPU1       HCCS       X          96-119\n"
    )
    dump = read_dump(text)
    assert dump.kinds[0] == "npu_smi"
    assert dump.parts["topology"]["pair_counts"] == {"HCCS": 1}
    assert dump.parts["topology"]["cpu_affinity"] == {"NPU0": "144-167", "NPU1": "96-119"}


def test_older_rocm_tables_have_other_columns():
    text = (
        "======= ROCm System Management Interface =======\n"
        "GPU  Temp   AvgPwr  SCLK    MCLK    Fan    Perf  PwrCap  VRAM%  GPU%\n"
        "0    49.0c  25.0W   860Mhz  350Mhz  9.41%  auto  190.0W    2%   0%\n"
    )
    (gpu,) = read_dump(text).parts["rocm_smi"]["gpus"]
    assert (gpu["temp_c"], gpu["power_cap_w"], gpu["vram_pct"]) == (49.0, 190.0, 2)


def test_a_log_tells_xids_with_and_without_a_process():
    text = (
        "kernel: NVRM: Xid (PCI:0000:01:00): 79, pid=1122, GPU has fallen off the bus.\n"
        "kernel: NVRM: GPU 0000:01:00.0: GPU has fallen off the bus.\n"
        "NVRM: Xid (PCI:0000:23:00): 31, pid=7, name=python, Ch 0000000a, MMU Fault\n" * 2
    )
    facts = read_dump(text).parts["dmesg_xid"]
    assert facts["xids"] == [
        {"pci": "0000:01:00", "xid": 79, "pid": 1122, "name": None, "count": 2},
        {"pci": "0000:23:00", "xid": 31, "pid": 7, "name": "python", "count": 2},
    ]


def test_a_container_at_its_limit_is_told_from_a_full_machine():
    line = "[89942.4] Memory cgroup out of memory: Killed process 11433 (java) total-vm:25004420kB, anon-rss:91796kB, x"
    facts = read_dump(line).parts["dmesg_oom"]
    assert (facts["scope"], facts["killed"]) == ("cgroup", [{"pid": 11433, "name": "java", "anon_rss_kb": 91796}])


def test_chinese_locales_are_read():
    text = (
        "              总计        已用        空闲      共享    缓冲/缓存    可用\n"
        "内存：        15Gi       2.1Gi       9.8Gi       100Mi       3.5Gi        13Gi\n"
        "交换：          0B          0B          0B\n"
        "文件系统        容量  已用  可用 已用% 挂载点\n/dev/sda5       682G  576G   72G   89% /home\n"
        "架构：           aarch64\nCPU:             64\n型号名称：       Kunpeng-920\nNUMA 节点：      4\n"
    )
    parts = read_dump(text).parts
    assert (parts["free"]["total"], parts["free"]["available"], parts["free"]["swap_total"]) == ("15Gi", "13Gi", "0B")
    assert parts["df"]["filesystems"][0] == {
        "fs": "/dev/sda5", "size": "682G", "used": "576G", "avail": "72G", "use_pct": 89, "mount": "/home",
    }  # fmt: skip
    assert (parts["lscpu"]["cpus"], parts["lscpu"]["model"], parts["lscpu"]["numa_nodes"]) == (64, "Kunpeng-920", 4)


def test_failures_are_sorted_by_cause():
    causes = {
        "Failed to initialize NVML: Unknown Error": "nvml_unknown_error",
        "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.": "driver_not_loaded",
        "bash: nvidia-smi: command not found": "command_not_found",
        "Unable to determine the device handle for GPU0000:82:00.0: Unknown Error": "device_handle_unknown_error",
        "No devices were found": "no_devices",
    }
    for text, name in causes.items():
        assert read_dump(text).parts["nvidia_smi_error"]["error_class"] == name


def test_text_of_no_known_command_has_no_parts():
    for text in ("", "hello", "\0\x1b[4m", "{}", "|" * 1000, "GPU0 GPU1\n" * 10):
        assert read_dump(text).kinds == ()


def test_outputs_of_two_makers_in_one_file_do_not_mix():
    parts = read_dump(WINDOWS + ASCEND).parts
    assert [npu["name"] for npu in parts["npu_smi"]["npus"]] == ["910C1", "910C1"]
    assert [gpu["name"] for gpu in parts["nvidia_smi"]["gpus"]] == ["NVIDIA GeForce RTX 3060 Ti"]


def test_a_number_without_end_is_no_reason_to_fail():
    assert read_dump(OLD.replace("16276", "9" * 6000)).parts["nvidia_smi"]["gpus"][0]["memory_total_mib"] == int(
        "9" * 18
    )


def test_an_excerpt_without_a_gpu_is_read_for_what_it_has():
    text = (
        "    Clocks Throttle Reasons\n        HW Slowdown   : Active\n            HW Power Brake Slowdown  : Active\n"
    )
    assert read_dump(text).parts["nvidia_smi_q"]["clock_reasons_active"] == ["HW Slowdown", "HW Power Brake Slowdown"]
