# ruff: noqa: E501 - tables of lines read best unbroken
"""Kept, no effect, harmful, contradictory: one verdict a line."""

from __future__ import annotations

import pytest

from headway.adopt import check, hide_secrets, parse_version, understand, write_clean
from headway.adopt.secrets import find_exposed
from headway.messages import find_text


def verdicts(text: str, torch: str = "2.13") -> dict[str, tuple[str, str]]:
    """Return verdict and code by subject."""
    found = check(understand(text), torch=parse_version(torch))
    return {one.subject.partition("=")[0]: (one.verdict, one.code.removeprefix("adopt/")) for one in found}


@pytest.mark.parametrize(
    ("line", "torch", "verdict", "code"),
    [
        ("USE_LIBUV=0", "2.13", "no_effect", "env-libuv"),
        ("TORCHELASTIC_USE_AGENT_STORE=0", "2.13", "no_effect", "env-agent-store"),
        ("PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True,max_split_size_mb:512", "2.13", "no_effect", "env-allocator-mixed"),
        ("PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True", "2.8", "kept", "env-kept"),
        ("PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True", "2.9", "kept", "env-renamed"),
        ("PYTORCH_ALLOC_CONF=expandable_segmets:True", "2.13", "no_effect", "env-allocator-key"),
        ("NCCL_BLOCKING_WAIT=1", "2.13", "kept", "env-renamed"),
        ("TORCH_NCCL_AVOID_RECORD_STREAMS=1", "2.14", "kept", "env-going"),
        ("TORCH_NCCL_AVOID_RECORD_STREAMS=1", "2.15", "no_effect", "env-gone"),
        ("TORCH_NCCL_TRACE_BUFFER_SIZE=0", "2.13", "harmful", "env-no-recorder"),
        ("TORCH_DIST_USE_NCCL2=1", "2.13", "no_effect", "env-too-new"),
        ("TORCH_DIST_USE_NCCL2=1", "2.14", "kept", "env-nccl-engine"),
        ("TORCH_DIST_USE_NCCL2=1", "2.15", "no_effect", "env-default"),
        ("TORCH_COMPILE=0", "2.13", "no_effect", "env-not-torch"),
        ("OMP_NUM_THREADS=1", "2.13", "no_effect", "env-one-thread"),
        ("OMP_NUM_THREADS=8", "2.13", "kept", "env-threads"),
        ("NCCL_P2P_DISABLE=1", "2.13", "kept", "env-transport"),
        ("CUDA_LAUNCH_BLOCKING=1", "2.13", "harmful", "env-blocking"),
        ("CUDA_LAUNCH_BLOCKING=0", "2.13", "kept", "env-kept"),
        ("CUDA_HOME=/usr/local/cuda", "2.13", "no_effect", "env-cuda-home"),
        ("MASTER_ADDR=localhost", "2.13", "no_effect", "env-overwritten"),
        ("WORLD_SIZE=2", "2.13", "no_effect", "env-overwritten"),
        ("WORLD_SIZE=4", "2.13", "contradictory", "env-world-size-lost"),
        ("RANK=0", "2.13", "no_effect", "env-overwritten"),
        ("CUDA_VISIBLE_DEVICES=0", "2.13", "contradictory", "env-too-few-devices"),
        ("CUDA_VISIBLE_DEVICES=0,1,2", "2.13", "no_effect", "env-spare-devices"),
        ("CUDA_VISIBLE_DEVICES=0,1", "2.13", "kept", "env-kept"),
        ("DATA=/home/me/data", "2.13", "harmful", "env-personal-path"),
        ("HF_TOKEN=abc123", "2.13", "harmful", "secret-in-text"),
        ("FOO=1", "2.13", "kept", "env-kept"),
    ],
)  # fmt: skip
def test_a_variable_before_torchrun_is_judged(line, torch, verdict, code):
    found = verdicts(f"export {line}\ntorchrun --nproc_per_node=2 t.py", torch)
    assert found[line.partition("=")[0]] == (verdict, code)


def test_two_allocator_variables_contradict_each_other():
    found = verdicts("export PYTORCH_ALLOC_CONF=a\nexport PYTORCH_CUDA_ALLOC_CONF=b\ntorchrun t.py")
    assert found["PYTORCH_ALLOC_CONF"] == found["PYTORCH_CUDA_ALLOC_CONF"] == ("contradictory", "env-two-allocators")


def test_one_rank_for_several_processes_cannot_work():
    found = verdicts("export RANK=0 WORLD_SIZE=2 LOCAL_RANK=0\npython t.py &\npython t.py &")
    assert found["RANK"] == ("harmful", "env-one-rank-for-all")
    assert "WORLD_SIZE" not in {name for name, (verdict, _) in found.items() if verdict == "contradictory"}


def test_a_rank_of_its_own_for_each_process_is_kept():
    text = "export WORLD_SIZE=2 MASTER_ADDR=localhost\nRANK=0 python t.py &\nRANK=1 python t.py &"
    assert verdicts(text)["RANK"] == ("kept", "env-kept")


def test_rank_is_not_what_llamafactory_reads():
    assert verdicts("RANK=1 NNODES=2 llamafactory-cli train a.yaml")["RANK"] == ("no_effect", "env-rank-not-node-rank")


@pytest.mark.parametrize(
    ("line", "verdict", "code"),
    [
        ("torchrun --nproc_per_node=2 t.py", "kept", "launch-kept"),
        ("torchrun --master_port=29500 t.py", "harmful", "fixed-port"),
        ("torchrun --master_port=1 t.py", "harmful", "port-reserved"),
        ("torchrun --nnodes=2 --node_rank=0 --master_addr=a --master_port=29500 t.py", "kept", "launch-kept"),
        ("torchrun --nnodes=2 t.py", "harmful", "no-rendezvous"),
        ("torchrun --standalone --nnodes=2 --rdzv_endpoint a:1 t.py", "contradictory", "standalone-nodes"),
        ("torchrun --max-restarts 3 t.py", "harmful", "launch-restarts"),
        ("nohup torchrun t.py &", "harmful", "launch-nohup"),
        ("accelerate launch --cpu --num_processes 2 t.py", "no_effect", "launch-accelerate-cpu"),
        ("python -m torch.distributed.launch t.py", "kept", "launch-deprecated"),
        ("torchrun t.py --x $Y", "kept", "launch-open"),
    ],
)
def test_a_launch_is_judged(line, verdict, code):
    found = check(understand(line))
    assert (verdict, f"adopt/{code}") in {(one.verdict, one.code) for one in found}
    if verdict != "kept":
        assert "adopt/launch-kept" not in {one.code for one in found}


def test_a_broken_continuation_is_harmful_and_has_its_line():
    found = [
        one
        for one in check(understand("torchrun \\\n  --nproc_per_node 2 \\  # two\n  t.py"))
        if one.verdict == "harmful"
    ]
    assert [(one.code, one.line) for one in found] == [("adopt/slip-after-backslash", 2)]


@pytest.mark.parametrize(
    "line", ["t.py --hub_token abcdef", "t.py --hub_token=abcdef", "t.py hf_abcdefghijklmnopqrstuvwx"]
)
def test_a_secret_is_found_and_never_shown_again(line):
    meaning = understand(f"WANDB_API_KEY=0123456789 torchrun {line}")
    findings = check(meaning)
    assert {"adopt/secret-in-args", "adopt/secret-in-text"} <= {one.code for one in findings}
    shown = (
        write_clean(meaning.launch, findings)
        + str(hide_secrets(meaning.launch))
        + str([one.to_json() for one in findings])
    )
    assert "abcdef" not in shown and "0123456789" not in shown


def test_a_reference_to_a_variable_is_no_secret():
    assert "adopt/secret-in-args" not in {one.code for one in check(understand("torchrun t.py --hub_token $HF_TOKEN"))}


def test_the_clean_file_keeps_what_counts_and_names_what_it_left_out():
    text = "export USE_LIBUV=0\nexport FOO='a: b'\nCUDA_VISIBLE_DEVICES=0,1 torchrun --nproc_per_node=2 --master_port=29500 t.py --x '#1'"
    meaning = understand(text)
    clean = write_clean(meaning.launch, check(meaning))
    assert 'FOO: "a: b"' in clean and '- "#1"' in clean and "cuda_visible_devices: [0, 1]" in clean
    assert "master_port" not in clean.split("#", maxsplit=1)[0]
    assert "# removed: USE_LIBUV" in clean


def test_a_line_that_is_one_of_several_keeps_where_its_ranks_meet():
    """Nobody else gives plain Python a port, a rank or a number of ranks."""
    meaning = understand("MASTER_ADDR=10.0.0.1 MASTER_PORT=29500 RANK=1 WORLD_SIZE=4 python t.py")
    clean = write_clean(meaning.launch, check(meaning))
    for kept in ('MASTER_ADDR: "10.0.0.1"', 'MASTER_PORT: "29500"', 'RANK: "1"', 'WORLD_SIZE: "4"'):
        assert kept in clean
    alone = understand("WORLD_SIZE=4 python t.py")
    assert "# removed: WORLD_SIZE" in write_clean(alone.launch, check(alone))


def test_the_clean_file_is_yaml_that_says_the_same():
    from ruamel.yaml import YAML

    launch = understand("A='x\"y\\z' torchrun --nproc_per_node=2 t.py --x 'é: #' '' \"$Y\" 'line\nbreak'").launch
    read = YAML(typ="safe", pure=True).load(write_clean(launch, ()))
    assert read["args"] == list(launch.args)
    assert read["env"] == dict(launch.env)
    assert (read["nproc_per_node"], read["entry"], read["unresolved"]) == (2, {"kind": "script", "name": "t.py"}, ["Y"])


def test_every_finding_has_words_in_both_languages():
    for one in check(understand("export RANK=0\nnohup torchrun --nnodes 2 --max_restarts 2 t.py --token abc")):
        assert find_text(one.code).zh and one.text()


def test_a_long_key_on_the_command_line_is_a_secret_and_a_column_is_not():
    key = "0123456789abcdef0123456789abcdef01234567"
    (found,) = find_exposed(["--wandb_key", key, "--sort_key", "time", "--image-key=jpg"])
    assert (found.name, found.variable) == ("--wandb_key", "WANDB_API_KEY")
    assert [one.variable for one in find_exposed([f"--swanlab-api-key={key}"])] == ["SWANLAB_API_KEY"]


@pytest.mark.parametrize(
    "args",
    [
        "--mm_use_im_patch_token False",
        "--num_vectors_per_token=4",
        "--placeholder_token '<cat>' --initializer_token toy",
        "--token_string=mychar",
        "--hub_token your-sdk-token",
        "--password {password}",
    ],
)
def test_a_word_of_a_vocabulary_and_a_stand_in_are_no_secrets(args):
    meaning = understand(f"torchrun t.py {args}")
    assert "adopt/secret-in-args" not in {one.code for one in check(meaning)}
    assert hide_secrets(meaning.launch).args == meaning.launch.args


@pytest.mark.parametrize(
    "text",
    [
        "export MASTER_ADDR=10.0.0.1\nmpirun -n 2 python t.py",
        "RANK=$SLURM_PROCID WORLD_SIZE=4 srun -n 4 python t.py",
        "export WORLD_SIZE=16 NODE_RANK=1 MASTER_ADDR=n0\ncomposer -n 8 t.py",
        "export MASTER_ADDR=n0\ntorchrun --nnodes 2 --rdzv_endpoint $MASTER_ADDR:29500 t.py",
        "export WORLD_SIZE=8\ntorchrun --nproc_per_node=$WORLD_SIZE t.py",
        'export RANK=3\nARGS="--machine_rank $RANK"\naccelerate launch $ARGS t.py',
        "OMP_NUM_THREADS=1 mpirun -n 4 python t.py",
        "OMP_NUM_THREADS=1 torchrun t.py",
        "OMP_NUM_THREADS=1 deepspeed --num_gpus 4 t.py",
        "CUDA_VISIBLE_DEVICES=0,1 torchrun --nproc_per_node 1 t.py",
    ],
)
def test_a_variable_that_the_launcher_leaves_alone_has_its_effect(text):
    assert [one.code for one in check(understand(text)) if one.verdict in ("no_effect", "contradictory")] == []


def test_nothing_is_said_of_an_address_where_flags_were_left_out():
    codes = {
        one.code for text in ("torchrun --nnodes 2 ... t.py", "torchrun --nnodes 2") for one in check(understand(text))
    }
    assert "adopt/no-rendezvous" not in codes
