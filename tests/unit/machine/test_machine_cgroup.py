"""Limits of a container, cgroup v1 and v2, from files as the kernel writes them."""

from __future__ import annotations

import pytest

from headway.machine.cgroup import GroupLimits, read_group_limits
from headway.machine.host import count_cores, read_disk, read_memory, read_swap


@pytest.fixture
def tree(tmp_path):
    def write(files: dict[str, str]):
        for name, text in files.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        return tmp_path

    return write


def test_v2_takes_the_tightest_limit_on_the_way_up(tree):
    group = "sys/fs/cgroup"
    root = tree(
        {
            "proc/self/cgroup": "0::/kube/pod\n",
            f"{group}/cgroup.controllers": "cpu memory\n",
            f"{group}/kube/cpu.max": "400000 100000\n",
            f"{group}/kube/memory.max": "8000\n",
            f"{group}/kube/memory.current": "1000\n",
            f"{group}/kube/pod/cpu.max": "max 100000\n",
            f"{group}/kube/pod/memory.max": "9000\n",
            f"{group}/kube/pod/memory.current": "5000\n",
            f"{group}/kube/pod/memory.stat": "anon 1\ninactive_file 1500\n",
        }
    )
    assert read_group_limits(root) == GroupLimits(cores=4.0, memory_bytes=8000, memory_free_bytes=5500)


def test_v1_reads_quota_and_memory_of_shared_controllers(tree):
    group = "sys/fs/cgroup"
    root = tree(
        {
            "proc/self/cgroup": "4:memory:/docker/ab\n3:cpu,cpuacct:/docker/ab\n1:name=systemd:/docker/ab\n",
            f"{group}/cpu,cpuacct/cpu.cfs_quota_us": "150000\n",
            f"{group}/cpu,cpuacct/cpu.cfs_period_us": "100000\n",
            f"{group}/memory/memory.limit_in_bytes": "4096\n",
            f"{group}/memory/memory.usage_in_bytes": "1024\n",
        }
    )
    assert read_group_limits(root) == GroupLimits(cores=1.5, memory_bytes=4096, memory_free_bytes=3072)


def test_no_limit_is_none_in_both_versions(tree):
    group = "sys/fs/cgroup"
    root = tree(
        {
            "proc/self/cgroup": "4:memory:/\n3:cpu:/\n",
            f"{group}/cpu/cpu.cfs_quota_us": "-1\n",
            f"{group}/cpu/cpu.cfs_period_us": "100000\n",
            f"{group}/memory/memory.limit_in_bytes": "9223372036854771712\n",
        }
    )
    assert read_group_limits(root) == GroupLimits()
    assert read_group_limits(root / "nowhere") == GroupLimits()


def test_a_quota_cuts_the_cores_and_never_below_one():
    assert count_cores(GroupLimits(cores=0.5)) == 1
    assert count_cores(GroupLimits(cores=1.9)) == 1


def test_a_memory_limit_below_the_machines_decides():
    limits = GroupLimits(memory_bytes=1 << 20, memory_free_bytes=1 << 19)
    assert read_memory(limits) == (1 << 20, 1 << 19)
    assert read_memory(GroupLimits(memory_bytes=1 << 60))[0] < 1 << 60


def test_disk_is_read_at_the_nearest_folder_that_exists(tmp_path):
    disk = read_disk(tmp_path / "not" / "yet" / "there")
    assert disk.place == tmp_path
    assert disk.writable
    assert disk.free_bytes is not None and disk.free_bytes > 0


def test_a_file_in_the_way_of_the_output_is_not_writable(tmp_path):
    (tmp_path / "runs").write_text("")
    assert not read_disk(tmp_path / "runs" / "deep").writable


def test_memory_is_known_where_there_is_no_proc(monkeypatch):
    def no_proc():
        raise FileNotFoundError(2, "no such file", "/proc/meminfo")

    monkeypatch.setattr("psutil.virtual_memory", no_proc)
    monkeypatch.setattr("psutil.swap_memory", no_proc)
    total, free = read_memory(GroupLimits())
    assert 0 < free <= total
    assert read_swap() is None
