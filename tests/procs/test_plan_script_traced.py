"""Scripts as people write them, traced without a GPU: what they hold, what they never do, and why some cannot be."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from command import clean_env, processes_of, wait_until

from headway.errors import PlanError
from headway.machine import Gpu
from headway.planner import ScriptTrace, ask_script, trace_script
from headway.planner import script_trace as script_module
from headway.start.script_line import read_script

pytestmark = pytest.mark.slow

BENCH = Path(__file__).resolve().parents[2] / "bench"
GPU = Gpu(index=0, physical=0, name="NVIDIA GeForce RTX 4090", total_bytes=24 << 30, capability=(8, 9))


def follow(text: str, *, gpus: int = 1) -> ScriptTrace:
    return trace_script(read_script(text, num_gpus=gpus), [GPU] * gpus)


@pytest.fixture
def write(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def put(text: str) -> str:
        (tmp_path / "train.py").write_text(text)
        return "train.py"

    return put


@pytest.fixture
def tokens(tmp_path):
    place = tmp_path / "tokens.bin"
    place.write_bytes(bytes(byte % 4 if place % 2 else byte for place, byte in enumerate(os.urandom(40_000))))
    small = "--block 64 --layers 2 --width 128 --vocab 1024 --eval-batches 3 --batch 4"
    return f"{BENCH}/scripts/gpt.py --data {place} --out {tmp_path}/out {small}"


def test_only_what_is_on_the_gpu_counts():
    found = follow(f"{BENCH}/scripts/mlp.py --batch 32 --width 256")
    weights = 4 * (784 * 256 + 256 + 256 * 256 + 256 + 256 * 10 + 10)
    assert found.on_device
    assert found.parts["weights"] == found.weight_bytes == weights
    assert found.state_bytes - 2 * weights < 100  # and six counters, which live on the host
    assert found.peak_bytes < 3000 * 784 * 4  # the data set alone is larger
    assert (found.micro_batch, found.accumulation, found.optimizers) == (32, 1, ("Adam",))


def test_a_trainer_of_ranks_holds_buckets_gradients_and_half_arithmetic(tokens):
    found = follow(f"torchrun --nproc_per_node=2 {tokens} --dtype float16 --accumulate 4 --dropout 0.1", gpus=2)
    assert found.parts["buckets"] == found.parts["gradients"] == found.trained_bytes
    assert (found.micro_batch, found.accumulation) == (4, 2)
    assert found.half_share > 0.95
    assert found.parts["optimizer-state"] == pytest.approx(2 * found.trained_bytes, rel=0.01)


def test_many_micro_batches_are_told_from_the_first_two(tokens):
    many = follow(f"{tokens} --accumulate 9 --compile")
    few = follow(f"{tokens} --accumulate 2")
    assert (many.accumulation, few.accumulation) == (9, 2)
    assert many.peak_bytes == few.peak_bytes
    assert many.flops == few.flops
    assert many.left_out == ("compile",)


def test_a_convnet_with_cuda_written_into_it_and_its_moving_average():
    whole = follow(f"{BENCH}/scripts/convnet.py --batch 8 --size 32 --width 16")
    assert whole.parts["weights"] >= 2 * whole.trained_bytes
    halved = follow(f"{BENCH}/scripts/convnet.py --batch 8 --size 32 --width 16 --parallel", gpus=2)
    assert halved.parts["activations"] < 0.7 * whole.parts["activations"]


def test_the_traced_peak_is_the_allocators(tmp_path):
    done = subprocess.run(
        [sys.executable, str(BENCH / "plan_scripts.py"), "--only", "mlp"], capture_output=True, text=True, check=True
    )
    told = json.loads(done.stdout.splitlines()[-1])
    assert told["rows"] == 2
    assert told["worst_error"] < 0.01


LENGTHS = """
import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence, pad_sequence
from torch.utils.checkpoint import checkpoint

torch.set_default_device("cuda")
embed, rnn, head = nn.Embedding(50, 16), nn.LSTM(16, 32, batch_first=True), nn.Linear(32, 8)
params = [*embed.parameters(), *rnn.parameters(), *head.parameters()]
optimizer = torch.optim.AdamW(params, fused=True)
schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 1e-3, total_steps=100)
scaler = torch.cuda.amp.GradScaler()
for step in range(100):
    rows = [torch.randint(1, 50, (n,), device="cpu") for n in (9, 7, 4)]
    lengths = torch.tensor([len(row) for row in rows], device="cpu")
    ids = pad_sequence(rows, batch_first=True).cuda()
    mask = ids != 0
    assert int(mask.sum(1).max()) == 9 and int(mask.sum()) == 20
    with torch.cuda.amp.autocast():
        packed = pack_padded_sequence(embed(ids), lengths, batch_first=True, enforce_sorted=False)
        out, _ = pad_packed_sequence(rnn(packed)[0], batch_first=True)
        logits = checkpoint(head, out, use_reentrant=False)
        loss = nn.functional.cross_entropy(logits[mask], ids[mask] % 8)
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    norm = nn.utils.clip_grad_norm_(params, 1.0)
    assert torch.isfinite(norm) and norm.device.type == "cuda"
    scaler.step(optimizer)
    scaler.update()
    schedule.step()
    optimizer.zero_grad()
    print(f"{loss.item():.3f} {torch.cuda.max_memory_allocated()} {logits.argmax(-1).cpu().numpy().mean()}")
"""


def test_lengths_and_masks_that_decide_on_sizes_keep_their_values(write):
    found = follow(write(LENGTHS))
    assert (found.micro_batch, found.on_device) == (3, True)


TWO = """
import torch
from torch import nn
a, b = nn.Linear(8, 8).cuda(), nn.Linear(8, 1).cuda()
first, second = torch.optim.Adam(a.parameters()), torch.optim.SGD(b.parameters(), 0.1, momentum=0.9)
for step in range(100):
    for _ in range(3):
        b.zero_grad(); b(a(torch.randn(4, 8).cuda()).detach()).mean().backward(); second.step()
    a.zero_grad(); b(a(torch.randn(4, 8).cuda())).mean().backward(); first.step()
"""


def test_the_peak_waits_for_the_state_of_every_optimizer(write):
    found = follow(write(TWO))
    assert found.optimizers == ("Adam", "SGD")
    assert found.parts["optimizer-state"] == 4 * (2 * 72 + 9)


BY_HAND = """
import torch
model = torch.nn.Linear(8, 8).to(0)
loss = torch.tensor(1.0)
while loss.item() > 0.01:
    loss = model(torch.randn(4, 8).to(0)).pow(2).mean()
    model.zero_grad()
    loss.backward()
    for param in model.parameters():
        param.data.add_(param.grad, alpha=-0.1)
"""


def test_a_script_that_updates_its_weights_by_hand_and_names_gpus_by_number(write):
    found = follow(write(BY_HAND))
    assert (found.optimizers, found.trained, found.micro_batch, found.accumulation) == ((), 72, 4, 1)
    assert found.on_device


SPAWNS = """
import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch.nn.parallel import DistributedDataParallel
def work(rank, world_size):
    dist.init_process_group("nccl", rank=rank, world_size=world_size)
    model = DistributedDataParallel(torch.nn.Linear(8, 8).to(rank), device_ids=[rank])
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    for _ in range(9):
        loss = model(torch.randn(4, 8, device=rank)).mean()
        loss.backward()
        dist.all_reduce(loss)
        optimizer.step()
        optimizer.zero_grad()
if __name__ == "__main__":
    mp.spawn(work, args=(torch.cuda.device_count(),), nprocs=torch.cuda.device_count())
"""


def test_a_script_that_starts_its_ranks_itself_is_rank_0_of_them(write):
    found = follow(write(SPAWNS), gpus=2)
    assert (found.world_size, found.parts["buckets"]) == (2, 4 * 72)


ACCELERATE = """
import torch
from accelerate import Accelerator
from torch.utils.data import DataLoader, TensorDataset
accelerator = Accelerator(gradient_accumulation_steps=2)
model = torch.nn.Linear(64, 10)
optimizer = torch.optim.AdamW(model.parameters())
loader = DataLoader(TensorDataset(torch.randn(512, 64), torch.randint(0, 10, (512,))), batch_size=16, shuffle=True)
model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
for x, y in loader:
    with accelerator.accumulate(model):
        loss = torch.nn.functional.cross_entropy(model(x), y)
        accelerator.backward(loss)
        optimizer.step()
        optimizer.zero_grad()
    accelerator.print(accelerator.gather(loss).mean().item())
"""


def test_accelerate_prepares_what_it_would_on_gpus(write):
    pytest.importorskip("accelerate")
    found = follow(f"accelerate launch --num_processes 2 --mixed_precision bf16 {write(ACCELERATE)}", gpus=2)
    assert (found.micro_batch, found.accumulation, found.world_size) == (16, 2, 2)
    assert found.parts["buckets"] == found.trained_bytes
    assert found.half_share > 0.95


WRITES = """
import os, pathlib, shutil, torch
model = torch.nn.Linear(4, 4)
optimizer = torch.optim.SGD(model.parameters(), 0.1)
os.makedirs("out/deep", exist_ok=True)
pathlib.Path("log.txt").write_text("new")
with open("log.txt", "a") as log:
    log.write(" and more")
assert pathlib.Path("log.txt").read_text() == "new and more"
os.remove("model.pt")
os.replace("log.txt", "old.txt")
shutil.rmtree("data")
try:
    for step in range(100):
        model(torch.ones(2, 4)).sum().backward()
        optimizer.step()
        torch.save(model.state_dict(), "model.pt")
        with open(f"out/deep/step{step}.txt", "w") as file:
            file.write("x")
finally:
    os.mkdir("finished")
"""


def test_nothing_of_the_users_changes(write, tmp_path):
    name = write(WRITES)
    (tmp_path / "data").mkdir()
    for file in ("log.txt", "model.pt", "data/one.bin"):
        (tmp_path / file).write_text("mine")
    before = {place: place.read_bytes() for place in tmp_path.rglob("*") if place.is_file()}
    found = follow(name)
    assert not found.on_device  # all was counted, as nothing went to a GPU
    assert found.weight_bytes == 80
    assert {place: place.read_bytes() for place in tmp_path.rglob("*") if place.is_file()} == before
    assert sorted(place.name for place in tmp_path.iterdir() if place.is_dir()) == ["data"]


VALUES = """
import torch
model = torch.nn.Linear(8, 8).cuda()
optimizer = torch.optim.SGD(model.parameters(), 0.1)
for _ in range(5):
    out = model(torch.randn(4, 8, device="cuda"))
    loss = out[out > 0].sum()
    loss.backward()
    optimizer.step()
"""
SHARDS = """
import torch
from torch.distributed.fsdp import fully_shard
fully_shard(torch.nn.Linear(4, 4))
"""
FAILS = """
import torch
def build(width):
    return torch.nn.Linear(width, 4).cuda()(torch.ones(2, 3).cuda())
build(7)
"""


@pytest.mark.parametrize(
    ("text", "code", "where"),
    [
        (VALUES, "plan/script-values", "train.py:7"),
        (SHARDS, "plan/script-sharded", "train.py:4"),
        (FAILS, "plan/script-error", "train.py:4"),
        ("import torch\ndef broken(:\n", "plan/script-error", "train.py:2"),
        ("import torch\nprint('nothing to do')\n", "plan/script-no-step", "train.py"),
    ],
    ids=["values", "shards", "fails", "syntax", "no-step"],
)
def test_a_script_that_cannot_be_traced_is_refused_at_its_own_line(write, text, code, where):
    with pytest.raises(PlanError) as refused:
        follow(write(text))
    assert (refused.value.code, refused.value.facts["where"]) == (code, where)


def test_a_script_that_does_not_come_to_its_steps_is_ended(write, monkeypatch):
    monkeypatch.setattr(script_module, "TIMEOUT_S", 3.0)
    name = write("import time\ntime.sleep(600)\n")
    with pytest.raises(PlanError) as refused:
        ask_script(entry=name, kind="script", args=(), python=sys.executable)
    assert refused.value.code == "plan/script-slow"


def plan(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "headway", "plan", *words], capture_output=True, text=True, check=False, timeout=240
    )


def test_the_command_tells_the_verdict_and_the_next_command(tokens):
    done = plan("--script", f"torchrun --nproc_per_node=2 {tokens}", "--on", "2x4090")
    assert done.returncode == 0, done.stderr
    assert "fits" in done.stdout
    assert "DDP buckets" in done.stdout
    assert done.stdout.splitlines()[-1].startswith("next: headway run -- torchrun --nproc_per_node=2")


def test_the_command_refuses_what_does_not_fit_with_a_batch_that_would(tokens):
    done = plan(
        "--script", f"{tokens} --batch 32 --block 4096 --vocab 200000 --accumulate 1", "--on", "1x4090", "--json"
    )
    told = json.loads(done.stdout)
    assert done.returncode == 4
    assert (told["schema"], told["verdict"], told["micro_batch"]) == ("plan-script/1", "will-not-fit", 32)
    assert 0 < told["largest_micro_batch"] < 32
    assert "plan/script-does-not-fit" in done.stderr


def test_a_script_and_a_recipe_are_one_too_many():
    done = plan("nanochat", "--script", "train.py")
    assert done.returncode == 2
    assert "plan/script-and-source" in done.stderr


def test_a_killed_plan_takes_the_script_with_it(write, tmp_path):
    write("import time\ntime.sleep(600)\n")
    line = [sys.executable, "-m", "headway", "plan", "--script", "train.py"]
    asker = subprocess.Popen(line, cwd=tmp_path, env=clean_env(tmp_path))

    def is_traced() -> bool:
        return any("headway.trace.script" in one for one in processes_of(tmp_path))

    try:
        wait_until(is_traced)
    finally:
        asker.kill()
        asker.wait()
    wait_until(lambda: not is_traced())
