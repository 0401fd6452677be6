"""Faults that are really raised here, one by one, each followed by what clears it. Run as a program; needs torch."""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import resource
import signal
import socket
import subprocess
import sys
import tempfile
import traceback
from datetime import timedelta
from pathlib import Path

import numpy
import torch
import torch.distributed as dist
from safetensors.torch import load_file, save_file
from torch import nn
from torch.utils.data import DataLoader, Dataset

PLACE = Path(tempfile.mkdtemp())


class Held:
    """A class that a checkpoint may hold."""


class Samples(Dataset):
    def __init__(self, fault=""):
        self.fault = fault

    def __len__(self):
        return 4

    def __getitem__(self, index):
        if self.fault == "exit":
            os._exit(1)
        if self.fault == "killed":
            os.kill(os.getpid(), signal.SIGKILL)
        if self.fault == "raised":
            raise ValueError(f"sample {index} has no label")
        return torch.ones(2)


def taken_port(is_cleared):
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        held.listen()
        port = 0 if is_cleared else held.getsockname()[1]
        dist.TCPStore("127.0.0.1", port, 1, is_master=True)


def full_disk(is_cleared):
    with open(PLACE / "out" if is_cleared else "/dev/full", "wb", buffering=0) as file:
        file.write(b"x" * 100)


def missing_data(is_cleared):
    path = PLACE / "train.bin"
    path.write_bytes(b"1") if is_cleared else path.unlink(missing_ok=True)
    open(path, "rb").close()


def corrupt_checkpoint(is_cleared):
    path = PLACE / "a.pt"
    torch.save({"w": torch.ones(1000)}, path)
    if not is_cleared:
        os.truncate(path, 1000)
    torch.load(path)


def corrupt_safetensors(is_cleared):
    path = PLACE / "a.safetensors"
    save_file({"w": torch.ones(10)}, path)
    if not is_cleared:
        path.write_bytes(b"version https://git-lfs.github.com/spec/v1\n")
    load_file(path)


def refused_pickle(is_cleared):
    torch.save({"made": Held()}, PLACE / "b.pt")
    torch.load(PLACE / "b.pt", weights_only=not is_cleared)


def wrong_keys(is_cleared):
    nn.Linear(2, 3).load_state_dict(nn.Linear(2, 3 if is_cleared else 4).state_dict())


def mixed_dtypes(is_cleared):
    nn.Linear(2, 2)(torch.ones(1, 2, dtype=torch.float if is_cleared else torch.bfloat16))


def wrong_label(is_cleared):
    nn.functional.cross_entropy(torch.ones(1, 3), torch.tensor([2 if is_cleared else 9]))


def wrong_token(is_cleared):
    input_ids = torch.tensor([3 if is_cleared else 99])
    nn.Embedding(10, 4)(input_ids)


def wrong_shape(is_cleared):
    torch.ones(2, 3) @ torch.ones(3 if is_cleared else 4, 2)


def changed_in_place(is_cleared):
    x = torch.ones(2, requires_grad=True)
    y = x.exp()
    z = y.sum() if is_cleared else y.mul_(2).exp().sum() + (y * y).sum()
    y = y + 1 if is_cleared else y.add_(1)
    z.backward()


def unused_parameters(is_cleared):
    class Two(nn.Module):
        def __init__(self):
            super().__init__()
            self.used, self.unused = nn.Linear(2, 2), nn.Linear(2, 2)

        def forward(self, x):
            return self.used(x)

    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    try:
        model = nn.parallel.DistributedDataParallel(Two(), find_unused_parameters=is_cleared)
        for _ in range(2):
            model(torch.ones(1, 2)).sum().backward()
    finally:
        dist.destroy_process_group()


def no_rank_variables(is_cleared):
    names = {"RANK": "0", "WORLD_SIZE": "1", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "0"}
    os.environ.update(names) if is_cleared else [os.environ.pop(name, None) for name in names]
    dist.init_process_group("gloo")
    dist.destroy_process_group()


def no_gpu(is_cleared):
    torch.ones(1).to("cpu" if is_cleared else "cuda")


def dead_worker(is_cleared):
    list(DataLoader(Samples("" if is_cleared else "exit"), num_workers=1))


def killed_worker(is_cleared):
    list(DataLoader(Samples("" if is_cleared else "killed"), num_workers=1))


def raising_worker(is_cleared):
    list(DataLoader(Samples("" if is_cleared else "raised"), num_workers=1))


def open_files(is_cleared):
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (limits[1] if is_cleared else 60, limits[1]))
    try:
        with contextlib.ExitStack() as held:
            for _ in range(80):
                held.enter_context(open(os.devnull, "rb"))
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)


def host_memory(is_cleared):
    torch.empty(1 if is_cleared else 1 << 52, dtype=torch.uint8)


def missing_module(is_cleared):
    __import__("json" if is_cleared else "not_there_at_all")


def not_divisible(is_cleared):
    nn.MultiheadAttention(embed_dim=12 if is_cleared else 10, num_heads=3)


def unknown_argument(is_cleared):
    parser = argparse.ArgumentParser("train.py")
    parser.add_argument("--batch-size", type=int)
    with contextlib.suppress(SystemExit):
        parser.parse_args(["--batch-size" if is_cleared else "--batch", "8" if is_cleared else "x"])


def missing_setting(is_cleared):
    config = {"lr": 0.1, **({"optimizer": "adamw"} if is_cleared else {})}
    config["optimizer"].upper()


def damaged_settings(is_cleared):
    json.loads('{"lr": 0.1}' if is_cleared else '{"lr": 0.1,')


def no_gradient(is_cleared):
    (torch.ones(2, requires_grad=is_cleared) * 2).sum().backward()


def absent_rank(is_cleared):
    size = 1 if is_cleared else 2
    dist.TCPStore("127.0.0.1", 0, size, is_master=True, timeout=timedelta(seconds=1), wait_for_workers=True)


def later_attribute(is_cleared):
    print(numpy.inf if is_cleared else numpy.Inf)


def nan_loss(is_cleared):
    x = torch.tensor(1.0 if is_cleared else -1.0)
    for step in range(3):
        print(f"step {step} loss {x.log().item()}")
    if not is_cleared:
        raise FloatingPointError("loss is nan at step 3, stopping training")


def segfault(is_cleared):
    code = "0" if is_cleared else "import ctypes; ctypes.string_at(0)"
    done = subprocess.run([sys.executable, "-X", "faulthandler", "-c", code], stderr=subprocess.PIPE, text=True)
    print(done.stderr)
    if done.returncode:
        raise subprocess.CalledProcessError(done.returncode, "train.py")


def interrupt(is_cleared):
    if not is_cleared:
        # A shell's job in the background is started with the signal ignored.
        signal.signal(signal.SIGINT, signal.default_int_handler)
        os.kill(os.getpid(), signal.SIGINT)


FAULTS = {
    "port-in-use": [taken_port],
    "disk-full": [full_disk],
    "dataset-missing": [missing_data],
    "ckpt-corrupt": [corrupt_checkpoint, corrupt_safetensors],
    "weights-only-load": [refused_pickle],
    "ckpt-key-mismatch": [wrong_keys],
    "dtype-mismatch": [mixed_dtypes],
    "device-side-assert": [wrong_label],
    "tokenizer-vocab": [wrong_token],
    "python-user-bug": [wrong_shape, changed_in_place, no_gradient],
    "unused-parameters": [unused_parameters],
    "rendezvous-failure": [no_rank_variables, absent_rank],
    "driver-or-arch": [no_gpu],
    "dataloader-worker-crash": [dead_worker, raising_worker],
    "host-oom-killed": [killed_worker, host_memory],
    "too-many-open-files": [open_files],
    "import-or-abi": [missing_module, later_attribute],
    "batch-or-config": [not_divisible, unknown_argument, missing_setting, damaged_settings],
    "nan-loss": [nan_loss],
    "native-crash": [segfault],
    "keyboard-interrupt": [interrupt],
}


def main():
    os.dup2(1, 2)
    for category, raisers in FAULTS.items():
        for raiser in raisers:
            for is_cleared in (False, True):
                print(f"=== {category} {raiser.__name__} {is_cleared}", flush=True)
                try:
                    raiser(is_cleared)
                except (Exception, KeyboardInterrupt):
                    sys.stdout.flush()
                    traceback.print_exc()
                sys.stdout.flush()


if __name__ == "__main__":
    main()
