"""Ranks meet at a port of this machine that every local user can reach: without the key nobody changes anything."""

from __future__ import annotations

import socket
from datetime import timedelta

import pytest
import torch
import torch.distributed as dist

from headway.engine.parallel import _open_store, join
from headway.engine.rank import prepare
from headway.errors import UsageError


def test_who_does_not_know_the_key_neither_sees_nor_changes_what_the_ranks_say(monkeypatch):
    met = {}
    monkeypatch.setattr(dist, "init_process_group", lambda backend, **given: met.update(given))
    listener = socket.create_server(("127.0.0.1", 0))
    port = listener.getsockname()[1]
    job = {"rank": 0, "local_rank": 0, "world_size": 2, "master_port": port, "store_key": "0123456789abcdef" * 2}
    join({**job, "listen_fd": listener.detach()}, device=torch.device("cpu"), backend="gloo", timeout_s=77)
    ours = met["store"]
    assert met["timeout"] == timedelta(seconds=77)
    stranger = dist.TCPStore("127.0.0.1", port, None, is_master=False, timeout=timedelta(seconds=10))
    ours.set("address", "of rank 0")
    stranger.set("address", "of an attacker")
    stranger.set("default_pg/address", "of an attacker")
    assert ours.get("address") == b"of rank 0"
    assert stranger.get("address") == b"of an attacker"
    assert not ours.check(["default_pg/address"])


def test_a_rank_whose_run_directory_is_gone_says_so_in_our_own_words(tmp_path):
    with pytest.raises(UsageError) as refused:
        prepare({"run_dir": str(tmp_path / "gone"), "rank": 0}, None)
    assert refused.value.code == "telemetry/record-missing"


def test_a_pytorch_built_without_libuv_gets_the_older_store(monkeypatch):
    own = dist.TCPStore

    def without_libuv(*args, use_libuv=True, **options):
        if use_libuv:
            raise RuntimeError("use_libuv was requested but PyTorch was built without libuv support")
        return own(*args, use_libuv=False, **options)

    monkeypatch.setattr(dist, "TCPStore", without_libuv)
    listener = socket.create_server(("127.0.0.1", 0))
    job = {"rank": 0, "world_size": 2, "master_port": listener.getsockname()[1]}
    first = _open_store({**job, "listen_fd": listener.detach()})
    _open_store({**job, "rank": 1, "listen_fd": None}).set("met", "yes")
    assert first.get("met") == b"yes"
