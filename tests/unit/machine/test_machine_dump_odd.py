"""NVIDIA's tools in odd clothes: logs around tables, several machines, boards without PCIe, newest and oldest words."""

from __future__ import annotations

import pytest

from fakes.dumps import judge_text
from headway.machine import judge_machine, read_dump, report_from

TABLE = """\
+-----------------------------------------------------------------------------+
| NVIDIA-SMI 535.82.01    Driver Version: 535.82.01    CUDA Version: 12.2     |
|-------------------------------+----------------------+----------------------+
|   0  Tesla T4            On   | 00000000:00:1E.0 Off |                    0 |
| N/A   31C    P8     9W /  70W |   1203MiB / 15109MiB |      0%      Default |
|                               |                      |                  N/A |
+-------------------------------+----------------------+----------------------+
| Processes:                                                                  |
|    0   N/A  N/A      1234      C   python                           1200MiB |
+-----------------------------------------------------------------------------+
"""


def codes(text: str) -> list[str]:
    return [finding.code for finding in judge_text(text)]


@pytest.mark.parametrize("before", ["2025-03-01T10:00:00Z ", "node01: ", "trainer-1  | ", "0: ", "> ", "    # "])
def test_what_a_log_puts_before_each_line_is_passed_over(before):
    text = "".join(before + line + "\n" for line in TABLE.splitlines())
    assert read_dump(text).parts["nvidia_smi"] == read_dump(TABLE).parts["nvidia_smi"]


def test_a_machine_watched_is_one_machine_as_it_is_now():
    text = TABLE.replace("31C", "30C") + TABLE
    facts = read_dump(text).parts["nvidia_smi"]
    assert [gpu["temp_c"] for gpu in facts["gpus"]] == [31]
    assert len(facts["processes"]) == 1


def test_several_machines_in_one_paste_are_all_judged():
    other = TABLE.replace("00:1E.0", "81:00.0").replace("31C", "91C")
    facts = read_dump(TABLE + other).parts["nvidia_smi"]
    assert (len(facts["gpus"]), len(facts["more"])) == (1, 1)
    assert "machine/gpu-hot" in codes(TABLE + other)


def test_a_board_without_pcie_is_a_gpu():
    text = TABLE.replace(
        "Tesla T4            On   | 00000000:00:1E.0 Off", "Orin (nvgpu)       N/A   | N/A              N/A"
    )
    text = text.replace("1203MiB / 15109MiB", "Not Supported     ")
    (gpu,) = read_dump(text).parts["nvidia_smi"]["gpus"]
    assert (gpu["name"], gpu["bus_id"], gpu["memory_total_mib"]) == ("Orin (nvgpu)", None, None)


def test_a_gpu_that_has_gone_is_told_once_by_its_number():
    text = TABLE.replace("N/A   31C    P8     9W /  70W", "ERR!  ERR! ERR!   ERR! / ERR!").replace(
        "1203MiB / 15109MiB", "GPU is lost       "
    )
    dump = read_dump(text.replace("0%      Default", "ERR!       ERR!"))
    assert "nvidia_smi_error" not in dump.parts
    assert "machine/gpu-lost" in [one.code for one in judge_machine(report_from(dump))]


def test_versions_of_the_long_form_come_without_what_is_said_about_them():
    text = (
        "Driver Version       : 610.57.04 [Deprecated; will be removed in CUDA 14.0. Use KMD Version instead]\n"
        "CUDA Version         : 13.3 [Deprecated; will be removed in CUDA 14.0. Use CUDA UMD Version instead]\n"
        "Attached GPUs        : 1\nGPU 00000000:0C:00.0\n    Product Name     : NVIDIA L40S\n"
        "    GPU Power Readings\n        Average Power Draw     : N/A\n        Instantaneous Power Draw : 38.89 W\n"
        "        GPU Ceiling Power Limit\n            Current Power Limit  : 250.00 W\n"
    )
    facts = read_dump(text).parts["nvidia_smi_q"]
    assert (facts["driver"], facts["cuda"]) == ("610.57.04", "13.3")
    assert (facts["gpus"][0]["power_w"], facts["gpus"][0]["power_cap_w"]) == (38.89, 250.0)


def test_the_long_form_of_a_vgpu_host_serves_no_cuda():
    text = "Driver Version : 510.85.03\nCUDA Version : Not Found\nAttached GPUs : 1\nGPU 00000000:82:00.0\n"
    assert codes(text + "    Product Name : NVIDIA A40\n") == ["machine/driver-no-cuda"]


def test_csv_without_a_head_takes_its_columns_from_the_command():
    text = (
        "$ nvidia-smi --query-gpu=index,name,memory.total,memory.used --format=csv,noheader\n"
        "0, NVIDIA L40S, 46068 MiB, 0 MiB\n1, NVIDIA L40S, 46068 MiB, 40000 MiB\n"
    )
    gpus = read_dump(text).parts["nvidia_smi_query_csv"]["gpus"]
    assert [(gpu["name"], gpu["memory_used_mib"]) for gpu in gpus] == [("NVIDIA L40S", 0), ("NVIDIA L40S", 40000)]
    assert codes(text) == ["machine/gpu-busy"]


def test_processes_below_the_gpus_find_theirs_by_its_name_for_life():
    text = (
        "index, uuid, name, memory.total [MiB], memory.used [MiB]\n"
        "0, GPU-a, NVIDIA L40S, 46068 MiB, 0 MiB\n1, GPU-b, NVIDIA L40S, 46068 MiB, 1300 MiB\n"
        "gpu_uuid, pid, process_name, used_gpu_memory [MiB]\nGPU-b, 77, python, 1200 MiB\n"
    )
    facts = read_dump(text).parts["nvidia_smi_query_csv"]
    assert (len(facts["gpus"]), facts["processes"][0]["gpu"]) == (2, 1)
    assert [one.facts["gpu"] for one in judge_text(text)] == ["1"]


def test_code_with_a_pid_in_it_is_no_list_of_processes():
    assert read_dump("def event(name, pid, tid, args):\n    return {'a': 1, 'b': 2, 'c': 3, 'd': 4}\n").parts == {}


def test_the_matrix_of_p2p_is_known_without_its_legend():
    assert codes("        GPU0    GPU1\n GPU0   X       CNS\n GPU1   CNS     X\n") == ["machine/p2p-closed"]


@pytest.mark.parametrize(
    ("said", "name"),
    [
        ("NVIDIA-SMI has failed because it couldn‘t communicate with the NVIDIA driver.", "driver_not_loaded"),
        ("Unable to detect the device handle for GPU0000:B1:00.0: Unknown Error", "device_handle_unknown_error"),
        ("WARNING: infoROM is corrupted at gpu 0000:81:00.0", "inforom_corrupted"),
        ("dcmi module initialize failed. ret is -8005", "npu_driver_not_loaded"),
        ('could not select device driver "" with capabilities: [[gpu]].', "container_without_gpus"),
    ],
)
def test_more_ways_to_fail_are_told_apart(said, name):
    assert read_dump(said + "\n").parts["nvidia_smi_error"]["error_class"] == name
    assert len(codes(said)) == 1


def test_yes_and_no_of_an_older_torch_are_understood():
    text = (
        "PyTorch version: 1.4.0\nIs debug build: Yes\nCUDA used to build PyTorch: 10.1\n\n"
        "Is CUDA available: No\nCUDA runtime version: Could not collect\nNvidia driver version: 390.77\n"
    )
    assert {"machine/torch-debug", "machine/cuda-unavailable"} <= set(codes(text))


def test_what_is_old_but_works_is_a_note():
    text = (
        "PyTorch version: 1.5.0\nIs debug build: No\nCUDA used to build PyTorch: 10.2\nIs CUDA available: Yes\n"
        "CUDA runtime version: 10.2.89\nNvidia driver version: 440.82\n"
    )
    found = judge_text(text)
    assert {(one.code, one.level) for one in found} == {("machine/toolkit-old", "note"), ("machine/driver-old", "note")}


@pytest.mark.parametrize(
    ("torch", "vision", "fits"),
    [
        ("1.0.0", "(0.2.1)", True),
        ("1.3.1", "0.4.2", True),
        ("2.1.0a0+fe05266", "0.15.0a0", True),
        ("2.1.0", "0.15.0", False),
    ],
)
def test_pairs_of_torch_and_torchvision_of_every_age(torch, vision, fits):
    text = f"PyTorch version: {torch}\nCUDA used to build PyTorch: 12.1\n[pip3] torchvision {vision}\n"
    assert ("machine/vision-pair" not in codes(text)) is fits


def test_an_npu_under_accelerate_is_no_missing_gpu():
    text = "- `Accelerate` version: 0.22.0\n- PyTorch version (GPU?): 2.0.1 (False)\n- PyTorch NPU available: True\n"
    assert codes(text) == []
    assert codes(text.replace("NPU available: True", "NPU available: False")) == ["machine/cuda-unavailable"]


def test_the_kernels_word_is_not_cudas():
    assert read_dump("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2 GiB\n").parts == {}


def test_a_process_the_reaper_names_was_killed():
    text = "cc1plus invoked oom-killer: order=0\nTask in /a killed as a result of limit of /a\n"
    assert codes(text) == ["machine/oom-unnamed"]
    reaped = text + "oom_reaper: reaped process 45119 ((resolved)), now anon-rss:0kB\n"
    assert read_dump(reaped).parts["dmesg_oom"]["killed"] == [{"pid": 45119, "name": "(resolved)", "anon_rss_kb": None}]
    assert codes(reaped) == ["machine/oom-group"]


def test_a_driver_that_found_its_gpus_taken_has_none():
    text = "NVRM: The NVIDIA probe routine was not called for 3 device(s).\nNVRM: No NVIDIA graphics adapter probed!\n"
    assert codes(text) == ["machine/no-devices"]


def test_environments_with_aligned_colons_are_read():
    text = (
        "OS                           : Ubuntu 22.04\nPyTorch version              : 2.7.0+cu126\n"
        "Is debug build               : False\nCUDA used to build PyTorch   : 12.6\n"
        "Python version               : 3.12.10 (main)\nIs CUDA available            : True\n"
        "GPU models and configuration : GPU 0: NVIDIA H20\nGPU 1: NVIDIA H20\n\n"
        "Nvidia driver version        : 550.127.05\n"
    )
    facts = read_dump(text).parts["collect_env"]
    assert (facts["torch"], facts["torch_cuda"], facts["python"]) == ("2.7.0+cu126", "12.6", "3.12.10")
    assert [gpu["name"] for gpu in facts["gpus"]] == ["NVIDIA H20", "NVIDIA H20"]
    assert facts["driver"] == "550.127.05"


def test_the_one_name_of_a_rocm_environment_is_a_gpu():
    text = (
        "PyTorch version: 2.6.0+rocm6.2.4\nCUDA used to build PyTorch: N/A\nROCM used to build PyTorch: 6.2.41134\n"
        "Is CUDA available: True\nGPU models and configuration: AMD Instinct MI300X (gfx942:sramecc+:xnack-)\n"
    )
    assert read_dump(text).parts["collect_env"]["gpus"][0]["name"].startswith("AMD Instinct MI300X")
    assert codes(text) == []
    assert read_dump(text.replace("AMD Instinct MI300X", "Could not collect")).parts["collect_env"]["gpus"] == []


def test_a_gpu_without_room_in_the_address_space_did_not_start():
    text = (
        "NVRM: This PCI I/O region assigned to your NVIDIA device is invalid:\n"
        "NVRM: BAR1 is 0M @ 0x0 (PCI:0000:0a:00.0)\n"
    )
    assert read_dump(text).parts["dmesg_xid"]["init_failed"] == ["0000:0a:00.0"]
    assert codes(text) == ["machine/gpu-init-failed"]


def matrix(rows: list[list[str]], nics: int = 0) -> str:
    names = [f"GPU{one}" for one in range(len(rows))]
    body = [
        f"{name}\t" + "\t".join(row) + "\tSYS" * nics + "\t0-55\t0\t\tN/A"
        for name, row in zip(names, rows, strict=True)
    ]
    return "\n".join(["\t" + "\t".join([*names, *(f"NIC{one}" for one in range(nics))]), *body])


def test_a_gpu_left_out_of_the_mesh_has_lost_its_links():
    rows = [["X" if a == b else "SYS" if 2 in (a, b) else "NV18" for b in range(4)] for a in range(4)]
    text = matrix(rows).replace("GPU3\n", "GPU3\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\n", 1)
    facts = read_dump(text).parts["topology"]
    assert (facts["pair_counts"], facts["left_out"]) == ({"NV18": 3, "SYS": 3}, ["GPU2"])
    (finding,) = [one for one in judge_text(text) if one.level == "warn"]
    assert (finding.code, finding.facts["gpu"]) == ("machine/nvlink-down", "2")


def test_names_that_lost_the_tab_between_them_are_parted():
    text = matrix([["X", "NV18"], ["NV18", "X"]], nics=12).replace(
        "NIC10\tNIC11\n", "NIC10NIC11CPU Affinity\tNUMA Affinity\n"
    )
    facts = read_dump(text).parts["topology"]
    assert (facts["devices"], facts["nics"], facts["cpu_affinity"]) == (2, 12, {"GPU0": "0-55", "GPU1": "0-55"})


def test_an_ascend_table_without_its_title_is_known_by_its_columns():
    text = (
        "| NPU   Name                | Health        | Power(W)    Temp(C)           Hugepages-Usage(page)|\n"
        "| Chip                      | Bus-Id        | AICore(%)   Memory-Usage(MB)  HBM-Usage(MB)        |\n"
        "| 0     910B4               | Warning       | 88.2        30                0    / 0             |\n"
        "| 0                         | 0000:C1:00.0  | 0           0    / 0          2838 / 32768         |\n"
    )
    facts = read_dump(text).parts["npu_smi"]
    assert (facts["npu_smi"], facts["npus"][0]["hbm_total_mb"]) == (None, 32768)
    assert codes(text) == ["machine/npu-unwell"]


def test_lists_of_links_other_than_their_state_say_nothing_is_down():
    gpu = "GPU 0: NVIDIA H100 80GB HBM3 (UUID: GPU-aa)\n"
    far = (
        gpu + "\t Link 0: Remote Device 00000000:07:00.0: Link 46\n\t Link 1: Remote Device 00000000:07:00.0: Link 47\n"
    )
    assert read_dump(far).parts["nvlink"]["gpus"][0]["links"] == 2
    assert codes(far) == []
    assert codes(gpu + "\t Link 0: Replay Errors: 0\n\t Link 0: Recovery Errors: 0\n") == []
    assert codes(gpu + "\t Link 0: 25.781 GB/s\n\t Link 1: <inactive>\n") == ["machine/nvlink-down"]


XML = """\
<?xml version="1.0" ?>
<!DOCTYPE nvidia_smi_log SYSTEM "nvsmi_device_v12.dtd">
<nvidia_smi_log>
  <driver_version>550.54.15</driver_version><cuda_version>12.4</cuda_version><attached_gpus>1</attached_gpus>
  <gpu id="00000000:01:00.0">
    <product_name>NVIDIA A100-SXM4-80GB</product_name><persistence_mode>Enabled</persistence_mode>
    <mig_mode><current_mig>Disabled</current_mig><pending_mig>Disabled</pending_mig></mig_mode>
    <pci><pci_gpu_link_info><link_widths>
      <max_link_width>16x</max_link_width><current_link_width>8x</current_link_width>
    </link_widths></pci_gpu_link_info></pci>
    <clocks_event_reasons>
      <clocks_event_reason_hw_thermal_slowdown>Active</clocks_event_reason_hw_thermal_slowdown>
    </clocks_event_reasons>
    <fb_memory_usage><total>81920 MiB</total><used>1205 MiB</used></fb_memory_usage>
    <ecc_errors><volatile><dram_uncorrectable>3</dram_uncorrectable></volatile></ecc_errors>
    <retired_pages>
      <double_bit_retirement><retired_count>1</retired_count></double_bit_retirement>
      <pending_blacklist>No</pending_blacklist>
    </retired_pages>
    <remapped_rows><remapped_row_unc>4</remapped_row_unc><remapped_row_pending>Yes</remapped_row_pending></remapped_rows>
    <temperature><gpu_temp>42 C</gpu_temp></temperature>
    <gpu_power_readings>
      <power_draw>71.5 W</power_draw><current_power_limit>400.00 W</current_power_limit>
    </gpu_power_readings>
    <clocks><sm_clock>210 MHz</sm_clock></clocks><max_clocks><sm_clock>1410 MHz</sm_clock></max_clocks>
    <processes><process_info>
      <pid>77</pid><type>C</type><process_name>python</process_name><used_memory>1200 MiB</used_memory>
    </process_info></processes>
  </gpu>
</nvidia_smi_log>
"""


def test_the_log_in_xml_is_read_as_the_long_form():
    facts = read_dump(XML).parts["nvidia_smi_q"]
    (gpu,) = facts["gpus"]
    assert (facts["driver"], facts["cuda"], facts["attached_gpus"]) == ("550.54.15", "12.4", 1)
    assert (gpu["memory_total_mib"], gpu["temp_c"], gpu["power_w"], gpu["power_cap_w"]) == (81920, 42, 71.5, 400.0)
    assert (gpu["pcie_width"], gpu["pcie_width_max"], gpu["sm_clock_mhz"], gpu["max_sm_clock_mhz"]) == (
        8,
        16,
        210,
        1410,
    )
    assert (gpu["clock_reasons_active"], gpu["ecc_nonzero"]) == (
        ["HW Thermal Slowdown"],
        {"volatile.dram_uncorrectable": 3},
    )
    assert (gpu["remapped_rows"]["uncorrectable"], gpu["retired_pages"]["double_bit"]) == (4, 1)
    assert gpu["processes"] == [{"pid": 77, "type": "C", "name": "python", "used_mib": 1200}]


def test_a_log_in_xml_may_be_cut_anywhere():
    for place in range(0, len(XML), 37):
        read_dump(XML[:place])
    assert read_dump(XML[: XML.index("<clocks>")]).parts["nvidia_smi_q"]["gpus"][0]["power_w"] == 71.5


def test_a_reading_that_is_absent_for_a_reason_is_absent():
    text = '{"card0": {"Average Graphics Package Power (W)": "N/A (Secondary die)", "GPU use (%)": "0"}}'
    assert read_dump(text).parts["rocm_smi"]["gpus"] == [{"index": 0, "power_w": None, "util_pct": 0}]
