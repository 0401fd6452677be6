"""Recorded outputs of the commands that describe a machine: a text comes in, the facts it printed go out."""

from headway.machine.ascend.npu_smi import parse_npu
from headway.machine.nvidia.links import parse_topology
from headway.machine.nvidia.xid import parse_oom, parse_xids
from headway.machine.text.disk import room_of
from headway.machine.text.host import memory_of
from headway.machine.text.read import KINDS, Dump, read_dump
from headway.machine.text.values import Facts, bytes_of

__all__ = [
    "KINDS",
    "Dump",
    "Facts",
    "bytes_of",
    "memory_of",
    "parse_npu",
    "parse_oom",
    "parse_topology",
    "parse_xids",
    "read_dump",
    "room_of",
]
