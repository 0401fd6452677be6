"""AMD's tools: the table and lists of amd-smi, and the forms of rocm-smi beside its usual table."""

from __future__ import annotations

from fakes.dumps import judge_text, machine_of
from headway.machine import read_dump


def codes(text: str) -> list[str]:
    return [finding.code for finding in judge_text(text)]


TABLE = """\
| AMD-SMI 26.0.2+39589fda      amdgpu version: 6.16.13  ROCm version: 7.0.2    |
| BDF                        GPU-Name | Mem-Uti   Temp   UEC       Power-Usage |
| GPU  HIP-ID  OAM-ID  Partition-Mode | GFX-Uti    Fan               Mem-Usage |
|=====================================+========================================|
| 0000:0d:00.0    AMD Instinct MI355X | N/A        N/A   0          N/A/1400 W |
|   0       1       7        SPX/NPS1 | N/A        N/A           283/294896 MB |
|-------------------------------------+----------------------------------------|
| 0000:26:00.0    AMD Instinct MI355X | 1 %      49 °C   2          144/1000 W |
|   1       3       5        SPX/NPS1 | 7 %     29.8 %         90000/294896 MB |
+-------------------------------------+----------------------------------------+
|  GPU        PID  Process Name          GTT_MEM  VRAM_MEM  MEM_USAGE     CU % |
|    1       4711  python3.12             2.0 MB   87.0 GB    87.1 GB    0.0 % |
"""


def test_the_table_of_amd_smi_is_read():
    first, second = read_dump(TABLE).parts["rocm_smi"]["gpus"]
    assert (first["name"], first["temp_c"], first["power_w"], first["power_cap_w"]) == (
        "AMD Instinct MI355X", None, None, 1400.0
    )  # fmt: skip
    assert (second["util_pct"], second["temp_c"], second["memory_used_mb"], second["uncorrected"]) == (
        7,
        49.0,
        90000,
        2,
    )
    assert second["processes"] == [{"pid": 4711, "name": "python3.12", "used_mib": 89088}]
    assert [gpu.total_bytes for gpu in machine_of(TABLE).gpus] == [294896 << 20] * 2
    assert sorted(codes(TABLE)) == ["machine/gpu-busy", "machine/gpu-uncorrected"]


def test_columns_of_the_monitor_are_found_by_name():
    text = (
        "GPU  POWER  GPU_TEMP  MEM_TEMP  GFX_UTIL  GFX_CLOCK  ENC_UTIL  VRAM_USED  VRAM_TOTAL   PCIE_BW\n"
        "  0  199 W    103 °C     84 °C      99 %   1920 MHz       N/A    1235 MB    16335 MB  N/A Mb/s\n"
    )
    (gpu,) = read_dump(text).parts["rocm_smi"]["gpus"]
    assert gpu == {
        "index": 0, "power_w": 199.0, "temp_c": 103.0, "util_pct": 99, "memory_used_mb": 1235, "memory_total_mb": 16335
    }  # fmt: skip
    assert sorted(codes(text)) == ["machine/gpu-busy", "machine/gpu-hot"]


def test_sections_of_metric_and_static_are_read():
    text = "GPU: 0\n    ASIC:\n        MARKET_NAME: MI300A\n    TEMPERATURE:\n        HOTSPOT: 44 °C\n"
    text += "    MEM_USAGE:\n        TOTAL_VRAM: 24560 MB\n        USED_VRAM: 1200 MB\n\nGPU: 1\n    ASIC:\n"
    first, second = read_dump(text).parts["rocm_smi"]["gpus"]
    assert (first["name"], first["temp_c"], first["memory_total_mb"]) == ("MI300A", 44.0, 24560)
    assert second == {"index": 1}


def test_json_and_csv_of_rocm_smi_have_the_same_keys():
    as_json = '{"card0": {"GPU use (%)": "0", "VRAM Total Memory (B)": "21458059264", "Card Series": "RX 7900 XT"}}'
    as_csv = "device,GPU use (%),VRAM Total Memory (B),Card Series\ncard0,0,21458059264,RX 7900 XT\n"
    wanted = [{"index": 0, "util_pct": 0, "memory_total_bytes": 21458059264, "name": "RX 7900 XT"}]
    assert [read_dump(text).parts["rocm_smi"]["gpus"] for text in (as_json, as_csv)] == [wanted, wanted]


def test_a_share_of_the_memory_tells_who_is_busy():
    text = "GPU  Temp (DieEdge)  AvgPwr  SCLK  MCLK   Fan  Perf  PwrCap  VRAM%  GPU%\n"
    row = "{}    51.0c           4.0W    0Mhz  96Mhz  0%   auto  100.0W   {}%   0%\n"
    text = "= ROCm System Management Interface =\n" + text + row.format(0, 3) + row.format(1, 61)
    (finding,) = judge_text(text)
    assert (finding.code, finding.facts["gpu"], finding.facts["used"]) == ("machine/gpu-busy", "1", "61%")


def test_boards_without_names_differ_by_their_numbers():
    row = "{}  1  {},  34495  43.0°C  6.0W  N/A, N/A, 0  0Mhz  96Mhz  0%  auto  150.0W  3%  0%\n"
    text = "= ROCm System Management Interface =\n" + row.format(0, "0x73bf") + row.format(1, "0x73a3")
    assert codes(text) == ["machine/gpus-differ"]


def test_the_list_of_hardware_and_the_oldest_table_are_read():
    text = (
        "= ROCm System Management Interface =\n"
        "GPU  NODE  DID     GUID   GFX VER  GFX RAS  SDMA RAS  UMC RAS   VBIOS  BUS           PARTITION ID\n"
        "0    4     0x74a0  3877   gfx942   ENABLED  ENABLED   DISABLED  N/A    0000:01:00.0  0\n"
    )
    (gpu,) = read_dump(text).parts["rocm_smi"]["gpus"]
    assert (gpu["gfx"], gpu["bus_id"], gpu["ids"]) == ("gfx942", "0000:01:00.0", "4 0x74a0 3877")
    old = "= ROCm System Management Interface =\n GPU  Temp    AvgPwr   SCLK\n  0   50.0c   8.0W     852Mhz   500Mhz\n"
    assert read_dump(old).parts["rocm_smi"]["gpus"] == [{"index": 0, "temp_c": 50.0, "power_w": 8.0}]


def test_no_gpu_and_no_driver_are_told():
    assert codes("WARNING: No AMD GPUs specified\n=== End of ROCm SMI Log ===\n") == ["machine/no-devices"]
    assert codes("ERROR:root:Driver not initialized (amdgpu not found in modules)\n") == ["machine/gpu-driver-broken"]


def test_a_text_about_the_tool_is_not_its_output():
    assert read_dump("Install amd-smi with the ROCm System Management Interface library.\n").parts == {}
