"""Disks, quotas, limits, cores, ports and nodes as commands around the GPUs print them."""

from __future__ import annotations

import pytest

from fakes.dumps import judge_text
from headway.machine import read_dump, report_from


def codes(text: str, **options: int) -> list[str]:
    return [finding.code for finding in judge_text(text, **options)]


def test_df_without_letters_counts_blocks_of_a_kibibyte():
    text = (
        "Filesystem     1K-blocks      Used Available Use% Mounted on\n"
        "/dev/sda2      961302560 101302560 811000000  12% /\n"
        "tmpfs           65864948         0  65864948   0% /dev/shm\n"
    )
    dump = read_dump(text)
    assert dump.parts["df"]["filesystems"][0]["size"] == "961302560"
    assert report_from(dump).shm_bytes == 65864948 << 10
    assert codes(text) == []


@pytest.mark.parametrize(
    ("column", "room"), [("512-blocks", 1 << 20), ("1024-blocks", 1 << 21), ("1M-blocks", 1 << 31)]
)
def test_df_tells_the_size_of_its_blocks(column, room):
    dump = read_dump(f"Filesystem {column} Used Available Capacity Mounted on\n/dev/sda1 2048 0 2048 0% /\n")
    assert report_from(dump).disk_bytes == room


def test_df_names_with_blanks_are_kept_whole():
    text = (
        "Filesystem      Size  Used Avail Use% Mounted on\n"
        "...\n"
        "C:/Program Files/Git 931G  871G   60G  94% /\n"
        "//nas/my share  3.5T  1.1T  2.4T  32% /mnt/my share\n"
    )
    rows = read_dump(text).parts["df"]["filesystems"]
    assert [(row["fs"], row["mount"]) for row in rows] == [
        ("C:/Program Files/Git", "/"),
        ("//nas/my share", "/mnt/my share"),
    ]


def test_inodes_below_a_table_of_room_are_judged_too():
    text = (
        "Filesystem      Size  Used Avail Use% Mounted on\n/dev/sdb1       1.8T  200G  1.6T  12% /data\n"
        "Filesystem     Inodes IUsed IFree IUse% Mounted on\n/dev/sdb1        122M  122M  1.9K  100% /data\n"
    )
    facts = read_dump(text).parts["df"]
    assert [row["size"] for row in facts["filesystems"]] == ["1.8T"]
    assert codes(text) == ["machine/inodes-low"]


def test_small_file_systems_of_the_machine_itself_are_no_disks():
    text = (
        "Filesystem Size Used Avail Use% iused ifree %iused Mounted on\nmap auto_home 0Bi 0Bi 0Bi 100% 0 0 - /home\n"
        "Filesystem Size Used Avail Use% Mounted on\n"
        "devfs 1.0K 1.0K 0 100% /compat/linux/dev\n/dev/sr0 4.0M 4.0M 0 100% /mnt/seed\n"
        "/dev/sda1 900G 100G 800G 12% /\n"
    )
    assert codes(text) == []


QUOTAS = {
    "quota": (
        "Disk quotas for user ann (uid 1000):\n"
        "     Filesystem  blocks   quota   limit   grace   files   quota   limit   grace\n"
        "nas:/export/home\n"
        "               20971520* 20000000 21000000   6days   98321       0       0\n"
    ),
    "lfs quota": (
        "Disk quotas for usr ann (uid 1000):\n"
        "     Filesystem    used   quota   limit   grace   files   quota   limit   grace\n"
        "       /lustre   1.999T      0k      2T       -     512       0 1000000       -\n"
    ),
    "repquota": (
        "*** Report for user quotas on device /dev/sdb1\nBlock grace time: 7days; Inode grace time: 7days\n"
        "User            used    soft    hard  grace    used  soft  hard  grace\n"
        "root      --     20       0       0              2     0     0\n"
        "ann       +- 10300000 10000000 12000000  6days       3     0     0\n"
    ),
    "xfs_quota": (
        "User quota on /home (/dev/sdb1)\n                        Blocks\n"
        "User ID      Used   Soft   Hard Warn/Grace\n---------- ---------------------------------\n"
        "ann         49.8G    50G    60G  00 [------]\n"
    ),
    "mmlsquota": (
        "                         Block Limits            |     File Limits\n"
        "Filesystem type blocks quota limit in_doubt grace | files quota limit in_doubt grace Remarks\n"
        "gpfs0      USR  199.5G  200G  210G        0  none |  1200 50000 60000        0  none\n"
    ),
}


@pytest.mark.parametrize("command", QUOTAS)
def test_a_quota_with_no_room_for_a_checkpoint_is_told(command):
    assert codes(QUOTAS[command], checkpoint_bytes=2 << 30) == ["machine/quota-low"]


def test_a_quota_is_measured_by_what_this_run_writes():
    text = QUOTAS["xfs_quota"].replace("49.8G", "40.0G")
    assert codes(text, checkpoint_bytes=4 << 30) == []
    assert codes(text, checkpoint_bytes=40 << 30) == ["machine/quota-low"]


def test_a_quota_of_files_is_told():
    text = QUOTAS["lfs quota"].replace("1.999T", "1.000T").replace("     512 ", "  999990 ")
    assert codes(text) == ["machine/inodes-low"]


def test_no_quota_is_no_limit():
    assert codes("Disk quotas for user ann (uid 1000): none\n") == []


LIMITS = {
    "dash": "time(seconds) unlimited\nstack(kbytes) 8192\nlocked memory(kbytes) 64\nprocess 515123\nnofiles 1024\n",
    "zsh": "-t: cpu time (seconds)   unlimited\n-s: stack size (kbytes)   8192\n-u: processes    515123\n"
    "-n: file descriptors     1024\n-l: locked-in-memory size (kbytes)  64\n",
    "proc": "Max stack size            8388608              unlimited            bytes\n"
    "Max processes             515123               515123               processes\n"
    "Max open files            1024                 1048576              files\n"
    "Max locked memory         65536                65536                bytes\n",
    "prlimit": "RESOURCE   DESCRIPTION                             SOFT      HARD UNITS\n"
    "MEMLOCK    max locked-in-memory address space     65536     65536 bytes\n"
    "NOFILE     max number of open files                1024   1048576 files\n"
    "NPROC      max number of processes               515123    515123 processes\n"
    "STACK      max stack size                       8388608 unlimited bytes\n",
}


@pytest.mark.parametrize("shell", LIMITS)
def test_limits_of_every_shell_are_read_alike(shell):
    facts = read_dump(LIMITS[shell]).parts["ulimit"]
    named = ("open_files", "max_locked_memory_kb", "max_user_processes", "stack_kb")
    assert [facts[name] for name in named] == [1024, 64, 515123, 8192]


def test_the_unit_of_free_is_the_one_its_command_asks_for():
    text = "$ free -k\n              total        used        free\nMem:         492560      290200       24268\n"
    assert read_dump(text).parts["free"]["unit"] == "KiB"
    assert read_dump(text.replace("-k", "-m")).parts["free"]["unit"] == "MiB"


def test_memory_that_is_used_up_is_told():
    text = "               total        used        free      shared  buff/cache   available\n"
    text += (
        "Mem:            62Gi        61Gi       212Mi       1.0Gi       700Mi       310Mi\nSwap: 8.0Gi 1.0Gi 7.0Gi\n"
    )
    assert codes(text) == ["machine/memory-low"]


def test_meminfo_with_remarks_is_read():
    assert read_dump("MemTotal:   1048576 kB     # 1GB\nMemFree: 5 kB\n").parts["free"]["total"] == 1048576


def test_few_cores_are_told_by_nproc_and_numactl():
    assert codes("ann@host:~$ nproc\n4\n") == ["machine/few-cores"]
    nodes = (
        "available: 2 nodes (0-1)\nnode 0 cpus: 0 1\nnode 0 size: 32093 MB\nnode 0 free: 30201 MB\nnode 1 cpus: 2 3\n"
    )
    facts = read_dump(nodes).parts["numactl"]
    assert (facts["numa_nodes"], facts["cpus"], facts["nodes"][0]["size_mb"]) == (2, 4, 32093)
    assert codes(nodes) == ["machine/few-cores"]


def port(name: str, state: str, physical: str) -> str:
    return f"CA '{name}'\n\tPort 1:\n\t\tState: {state}\n\t\tPhysical state: {physical}\n\t\tRate: 400\n"


def test_ports_that_are_down_are_told_and_weigh_more_when_a_cable_is_there():
    text = port("mlx5_0", "Active", "LinkUp") + port("mlx5_1", "Down", "Disabled")
    assert [one["state"] for one in read_dump(text).parts["infiniband"]["ports"]] == ["Active", "Down"]
    assert [(one.code, one.level) for one in judge_text(text)] == [("machine/ib-down", "note")]
    (finding,) = judge_text(text.replace("Disabled", "Polling"))
    assert finding.level == "warn"
    assert codes(port("mlx5_0", "Active", "LinkUp")) == []


def test_ibv_devinfo_and_ibstatus_use_other_words_for_the_same():
    verbs = "hca_id: mlx5_0\n\ttransport:  InfiniBand (0)\n\t\tport:   1\n\t\t\tstate:   PORT_DOWN (1)\n"
    status = "Infiniband device 'mlx5_0' port 1 status:\n\tstate:\t\t 4: ACTIVE\n\tphys state:\t 5: LinkUp\n"
    assert read_dump(verbs).parts["infiniband"]["ports"][0]["state"] == "Down"
    assert read_dump(status).parts["infiniband"]["ports"][0]["state"] == "Active"


def test_nodes_that_take_no_jobs_are_told():
    table = (
        "PARTITION AVAIL  TIMELIMIT  NODES  STATE NODELIST\n"
        "gpu*         up   infinite      1  drain node-0\ngpu*         up   infinite      3   idle node-[1-3]\n"
    )
    assert codes(table) == ["machine/node-unwell"]
    node = "NodeName=n7 Arch=x86_64\n   Gres=gpu:8\n   State=DOWN+DRAIN ThreadsPerCore=2\n   Reason=GPU lost [root]\n"
    (finding,) = judge_text(node)
    assert (finding.facts["node"], finding.facts["why"]) == ("n7", "GPU lost [root]")


def test_gpu_instances_alone_tell_of_mig():
    text = (
        "| GPU instances:                                        |\n"
        "| GPU   Name             Profile  Instance   Placement  |\n"
        "|   0  MIG 1g.10gb         19        9          2:1     |\n"
        "|   0  MIG 3g.40gb          9        2          4:4     |\n"
    )
    facts = read_dump(text).parts["nvidia_smi_mig"]
    assert facts["instances"][1] == {"gpu": 0, "profile": "3g.40gb", "profile_id": 9, "gi": 2, "placement": "4:4"}
    assert codes(text) == ["machine/mig-on"]


def test_gpus_given_by_cdi_need_no_runtime():
    text = " Server Version: 28.3.2\n Discovered Devices:\n  cdi: nvidia.com/gpu=0\n Runtimes: runc\n"
    assert codes(text) == ["machine/docker-default"]
