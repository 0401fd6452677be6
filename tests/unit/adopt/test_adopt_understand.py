# ruff: noqa: E501 - tables of lines read best unbroken
"""Launch lines of every launcher, in forms that the reference data does not have."""

from __future__ import annotations

import pytest

from headway.adopt import LAUNCHERS, understand
from headway.errors import UsageError


def read(text: str, *keys: str):
    record = understand(text).launch.to_json()
    return tuple(record.get(key) for key in keys)


LAYOUT = ("launcher", "nproc_per_node", "nnodes", "node_rank", "master_addr", "master_port", "world_size")
CASES = [
    ("torchrun --nproc-per-node=auto --nnodes 2 --node-rank 1 --rdzv-endpoint=h:1234 t.py", ("torchrun", "auto", 2, 1, "h", 1234, None)),
    ("torchrun --nnode 1 --nproc_per 4 t.py", ("torchrun", 4, 1, None, None, None, None)),
    ("torchrun --nnodes=1:4 --nproc_per_node=gpu --rdzv_endpoint=$H:29400 t.py", ("torchrun", "gpu", "1:4", None, None, 29400, None)),
    ("PET_NPROC_PER_NODE=2 torchrun t.py", ("torchrun", 2, None, None, None, None, None)),
    ("/opt/bin/python3.10 -u -m torch.distributed.launch --nproc_per_node 2 t.py", ("torch.distributed.launch", 2, None, None, None, None, None)),
    ("accelerate launch --num_processes 16 --num_machines 2 --machine_rank 1 --main_process_ip a --main_process_port 9 t.py", ("accelerate", 8, 2, 1, "a", 9, 16)),
    ("accelerate launch --num_processes=16 --num_machines=$N t.py", ("accelerate", None, None, None, None, None, 16)),
    ("python -m accelerate.commands.launch --num_processes 2 t.py", ("accelerate", 2, None, None, None, None, 2)),
    ("deepspeed --include=a:0,1@b:0,1 --master_addr a t.py", ("deepspeed", 2, 2, None, "a", None, None)),
    ("deepspeed --include localhost:$G t.py", ("deepspeed", None, None, None, None, None, None)),
    ("CUDA_VISIBLE_DEVICES=3,4 deepspeed --num_gpus=1 t.py", ("deepspeed", 1, None, None, None, None, None)),
    ("mpirun -n 16 --map-by ppr:8:node python t.py", ("mpirun", 8, 2, None, None, None, 16)),
    ("mpiexec -np 8 -ppn 4 python t.py", ("mpirun", 4, 2, None, None, None, 8)),
    ("horovodrun -np 4 -H a:4,b:4 python t.py", ("horovod", 4, 1, None, None, None, 4)),
    ("horovodrun -np 8 --hostfile h python t.py", ("horovod", None, None, None, None, None, 8)),
    ("msrun --worker_num=16 --local_worker_num=8 --node_rank=1 --master_addr=a t.py", ("msrun", 8, 2, 1, "a", None, 16)),
    ('bash scripts/msrun_launcher.sh "run.py --a b" 4', ("msrun", 4, 1, None, None, None, None)),
    ("composer -n 8 --world_size 16 --node_rank 0 t.py", ("composer", 8, 2, 0, None, None, 16)),
    ("colossalai run --nproc_per_node 4 --host a,b --master_addr a --master_port 2 t.py", ("colossalai", 4, 2, None, "a", 2, None)),
    ("python -m paddle.distributed.launch --devices 0,1 --master a:8000 --nnodes 2 --rank 1 t.py", ("paddle", 2, 2, 1, "a", 8000, None)),
    ("NNODES=2 NODE_RANK=1 NPROC_PER_NODE=4 MASTER_PORT=7 swift sft --model m", ("swift", 4, 2, 1, None, 7, None)),
    ("CUDA_VISIBLE_DEVICES=0,1 llamafactory-cli train a.yaml", ("llamafactory", 2, None, None, None, None, None)),
    ("NNODES=2 NODE_RANK=0 MASTER_ADDR=a PORT=5 bash ./tools/dist_train.sh configs/a.py 8", ("mm_dist_train", 8, 2, 0, "a", 5, None)),
    ("GPUS=16 GPUS_PER_NODE=8 sh tools/slurm_train.sh p j configs/a.py", ("mm_slurm_train", 8, 2, None, None, None, 16)),
    ("srun -N 2 --ntasks-per-node 4 python t.py", ("slurm", 4, 2, None, None, None, None)),
    ("srun -n 16 -N2 python t.py", ("slurm", 8, 2, None, None, None, 16)),
    ("srun torchrun --nproc_per_node 4 t.py", ("torchrun", 4, None, None, None, None, None)),
    ("python t.py", ("python", None, None, None, None, None, None)),
]  # fmt: skip


@pytest.mark.parametrize(("text", "layout"), CASES, ids=[text[:50] for text, _ in CASES])
def test_the_layout_is_what_the_launcher_would_make(text, layout):
    assert read(text, *LAYOUT) == layout
    assert layout[0] in LAUNCHERS


@pytest.mark.parametrize(
    ("text", "entry", "args"),
    [
        ("torchrun --nproc_per_node 2 -m a.b -- --x 1", ("module", "a.b"), ["--x", "1"]),
        ("torchrun --no-python cmd --x", ("command", "cmd"), ["--x"]),
        ("torchrun t.py --a -- b", ("script", "t.py"), ["--a", "--", "b"]),
        ("python -W ignore -u t.py --a", ("script", "t.py"), ["--a"]),
        ("accelerate launch -m a.b c", ("module", "a.b"), ["c"]),
        ("accelerate launch t.py --mixed_precision fp16", ("script", "t.py"), ["--mixed_precision", "fp16"]),
        ("deepspeed --module a.b --x", ("module", "a.b"), ["--x"]),
        ("horovodrun -np 2 numactl -m 0 bash -c 'python t.py --x'", ("script", "t.py"), ["--x"]),
        ("ray job submit --runtime-env r.yaml -- python -m a.b c=1", ("module", "a.b"), ["c=1"]),
        ("tune run --nproc_per_node 2 recipe --config c", ("command", "recipe"), ["--config", "c"]),
        ("torchrun --nproc_per_node 8\n    t.py --x", ("script", "t.py"), ["--x"]),
        ("bash run.sh a", ("script", "run.sh"), ["a"]),
        ("torchrun --nproc_per_node 2 python t.py --x", ("script", "t.py"), ["--x"]),
        ("$BIN torchrun t.py", ("script", "t.py"), []),
        ("torchrun --standalone ...", (None, None), ["..."]),
        ("python3 $(which torchrun) --nproc_per_node 2 t.py", ("script", "t.py"), []),
    ],
)
def test_the_entry_is_found_behind_the_flags(text, entry, args):
    launch = understand(text).launch
    assert ((launch.entry.kind, launch.entry.name) if launch.entry else (None, None)) == entry
    assert list(launch.args) == args


@pytest.mark.parametrize(
    ("text", "wrappers"),
    [
        ("nohup torchrun t.py > log 2>&1 &", ("nohup",)),
        ("nohup CUDA_VISIBLE_DEVICES=0 python t.py &", ("nohup",)),
        ("time A=1 python t.py", ("time",)),
        ("uv run --extra gpu torchrun t.py", ("uv run",)),
        ("docker run --gpus all --rm -v /a:/b -e A=1 img bash -lc 'cd /b && torchrun t.py'", ("docker run", "bash -c")),
        ("conda run -n e python t.py", ("conda run",)),
        ("srun --mpi=pmix singularity exec --nv i.sif torchrun t.py", ("srun", "singularity exec")),
        ("srun singularity exec i.sif python t.py", ("singularity exec",)),
        ("sbatch -N 2 job.sh", ("sbatch",)),
        ("sbatch --wrap 'python t.py'", ("sbatch",)),
        ("ssh host 'cd x; torchrun t.py'", ("ssh",)),
        ("tmux new -d -s a 'A=0 torchrun t.py'", ("tmux new",)),
        ("screen -dmS a bash -c 'torchrun t.py'", ("screen", "bash -c")),
    ],
)
def test_wrappers_are_taken_off_outermost_first(text, wrappers):
    assert understand(text).launch.wrappers == wrappers


BATCH = """#!/bin/bash
#SBATCH --job-name=big   # a name
#SBATCH -N 2
#SBATCH --ntasks-per-node=4 --exclusive

HEAD=$(scontrol show hostnames $SLURM_JOB_NODELIST | head -n 1)
export MASTER_PORT=12340
"""


def test_a_batch_header_gives_nodes_and_ranks_to_srun():
    launch = understand(f"{BATCH}srun python main.py").launch
    assert (launch.launcher, launch.nproc_per_node, launch.nnodes, launch.master_port) == ("slurm", 4, 2, 12340)
    assert launch.sbatch == {"job-name": "big", "nodes": "2", "ntasks-per-node": "4", "exclusive": True}


def test_a_batch_script_without_srun_runs_its_command_once():
    launch = understand(f"{BATCH}python main.py --n $SLURM_NNODES").launch
    assert (launch.launcher, launch.nproc_per_node, launch.args) == ("python", None, ("--n", "2"))


def test_what_a_command_would_print_stays_open_under_its_variable():
    meaning = understand(f"{BATCH}srun torchrun --nnodes $SLURM_NNODES --rdzv_endpoint $HEAD:29500 t.py --h $HEAD")
    assert (meaning.launch.nnodes, meaning.launch.master_addr, meaning.launch.master_port) == (2, None, 29500)
    assert meaning.launch.args == ("--h", "$HEAD")
    assert meaning.unresolved == ["HEAD"]


def test_flags_kept_in_a_variable_are_split_and_those_in_an_array_are_not():
    text = 'N=2\nD="--nproc_per_node $N \\\n --nnodes 1"\nA=(--name "x y")\ntorchrun $D t.py "${A[@]}"'
    launch = understand(text).launch
    assert (launch.nproc_per_node, launch.nnodes, launch.args) == (2, 1, ("--name", "x y"))


def test_the_training_counts_where_the_others_prepare_or_serve():
    meaning = understand("python prepare_data.py\npython -m x.api_server &\ntorchrun t.py\npython eval.py")
    assert meaning.launch.entry.name == "t.py"
    assert [one.entry.name for one in meaning.more] == ["prepare_data.py", "x.api_server", "eval.py"]


def test_installing_and_looking_are_no_launches():
    text = "pip install x\npython setup.py install\npython -c 'print(1)'\npython -m pip list\nnvidia-smi\nls"
    assert understand(text).launches == ()


def test_another_projects_dist_train_is_a_script_of_its_own():
    assert read("bash scripts/dist_train.sh 8 --cfg_file a.yaml", "launcher", "nproc_per_node") == ("other", None)
    assert read("bash tools/dist_train.sh a.py work 8", "launcher", "nproc_per_node") == ("other", None)


@pytest.mark.parametrize(
    ("value", "devices"),
    [
        ("0,1", [0, 1]),
        ("", []),
        ("-1", [-1]),
        ("GPU-1a2b,MIG-3c", ["GPU-1a2b", "MIG-3c"]),
        ("$G", None),
        ("<ids>", None),
    ],
)
def test_devices_are_a_list_where_they_are_known(value, devices):
    assert read(f"CUDA_VISIBLE_DEVICES={value} python t.py", "cuda_visible_devices") == (devices,)


def test_mpirun_x_reaches_the_environment_and_an_empty_one_stays_open():
    meaning = understand("mpirun -np 2 -x A=1 -x B -mca btl ^openib python t.py")
    assert meaning.launch.env == {"A": "1"}
    assert meaning.unresolved == ["B"]


@pytest.mark.parametrize(
    "text", ["$ torchrun t.py", "(env) me@box:~/x$ torchrun t.py", "!torchrun t.py", "```bash\ntorchrun t.py\n```"]
)
def test_prompts_fences_and_notebook_marks_are_taken_off(text):
    assert read(text, "launcher") == ("torchrun",)


def test_windows_line_ends_and_long_dashes_are_read_as_meant():
    meaning = understand("torchrun –nproc_per_node=2 \\\r\n t.py \\\r\n --x\r\n")
    assert (meaning.launch.nproc_per_node, meaning.launch.args) == (2, ("--x",))
    assert [code for code, _ in meaning.slips] == ["adopt/slip-crlf"]


def test_a_text_that_is_far_too_long_is_refused():
    with pytest.raises(UsageError) as refused:
        understand("x" * 300_000)
    assert refused.value.code == "adopt/too-large"


@pytest.mark.parametrize(
    "command",
    [
        "command:\n    - torchrun\n    - --nproc_per_node=2\n    - t.py  # the script\n    - --x\n    - 'a b'\n  numNodes: 2",
        'command: ["torchrun", "--nproc_per_node=2"]\n  args: ["t.py", "--x", "a b"]',
        "command:\n  - torchrun --nproc_per_node=2 t.py --x 'a b'",
    ],
)
def test_the_command_of_a_manifest_is_read(command):
    launch = understand(f"kind: TrainJob\nspec:\n  image: x\n  {command}\n").launch
    assert (launch.launcher, launch.nproc_per_node, launch.args) == ("torchrun", 2, ("--x", "a b"))
