"""Recorded outputs of the commands that describe a machine: a text comes in, the facts it printed go out."""

from headway.machine.dumps.disk import room_of
from headway.machine.dumps.host import memory_of
from headway.machine.dumps.kernel import parse_oom, parse_xids
from headway.machine.dumps.links import parse_topology
from headway.machine.dumps.npu import parse_npu
from headway.machine.dumps.read import KINDS, Dump, read_dump
from headway.machine.dumps.values import Facts, bytes_of

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
