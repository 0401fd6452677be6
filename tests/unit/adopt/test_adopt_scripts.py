# ruff: noqa: E501 - tables of lines read best unbroken
"""What scripts do round a launch: tests, choices, heredocs, counters, functions, arrays."""

from __future__ import annotations

import pytest

from headway.adopt import understand

CASES = [
    # a heredoc is a value
    ("read -r -d '' ARGS <<EOF\ntrain.py \\\n  --lr 1 \\\n  --name $N\nEOF\ntorchrun --nproc_per_node 2 $ARGS", [("torchrun", 2, "train.py", ("--lr", "1", "--name", "$N"))], ["N"]),
    ("C=$(cat <<'EOF'\ndeepspeed --num_gpus 4 t.py --tag $T\nEOF\n)\neval $C", [("deepspeed", 4, "t.py", ("--tag", "$T"))], ["T"]),
    ("cat > job.sh <<EOF\n#!/bin/bash\ntorchrun --nproc_per_node 8 t.py\nEOF\nsbatch job.sh", [("torchrun", 8, "t.py", ())], []),
    # a value with a command in it is still a part of the line
    ('L="python -m torch.distributed.run --nproc_per_node 4 --role `hostname`:"\nC=" `pwd`/t.py --a 1"\nsrun bash -c "$L $C"', [("torchrun", 4, "`pwd`/t.py", ("--a", "1"))], ["`hostname`", "`pwd`"]),
    ("D=$(date)\ntorchrun t.py --out run-$D", [("torchrun", None, "t.py", ("--out", "run-$D"))], ["D"]),
    # tests joined by && and ||
    ('[ -z "$G" ] && G=4\ntorchrun --nproc_per_node $G t.py', [("torchrun", 4, "t.py", ())], []),
    ('G=1; [[ $G -gt 1 ]] && L="torchrun --nproc_per_node $G" || L=python\n$L t.py', [("python", None, "t.py", ())], []),
    ("A=true; X=''; [ $A = true ] && X+=' --amp'; [ $A = false ] && X+=' --no'; python t.py $X", [("python", None, "t.py", ("--amp",))], []),
    ("N=4; if [[ $N -gt 1 ]] && [[ $N -lt 8 ]]; then P=2; else P=3; fi; torchrun --nproc_per_node $P t.py", [("torchrun", 2, "t.py", ())], []),
    ("[ -f a ] && N=2; torchrun --nproc_per_node $N t.py", [("torchrun", None, "t.py", ())], ["N"]),
    ("O='x --resume y'; [[ $O != *--resume* ]] && O+=' --fresh'; python t.py $O", [("python", None, "t.py", ("x", "--resume", "y"))], []),
    # a command that a branch chooses is each of its choices
    ('if [ "$D" = 1 ]; then C="python -m pdb"; else C="torchrun --nproc_per_node 8"; fi\n$C t.py', [("python", None, "pdb", ("t.py",)), ("torchrun", 8, "t.py", ())], []),
    ("case $M in one) C='python';; many) C='torchrun --nproc_per_node 2';; esac\ntimeout 9 $C t.py", [("python", None, "t.py", ()), ("torchrun", 2, "t.py", ())], []),
    ("M=b; case $M in a|b) N=2;; *) N=3;; esac; torchrun --nproc_per_node $N t.py", [("torchrun", 2, "t.py", ())], []),
    ("E=''; if [ -d /x ]; then E='--auto=1'; fi\nsrun $E -l torchrun --nproc_per_node 8 t.py", [("torchrun", 8, "t.py", ())], ["E"]),
    ("if [ $# -eq 0 ]; then torchrun --nproc_per_node 2 t.py; exit 0; fi", [("torchrun", 2, "t.py", ())], []),
    # what was not handed over is not there
    ('O=$1\nif [ "$O" == "" ]; then O=out; fi\npython t.py $O', [("python", None, "t.py", ("out",))], []),
    ('A="--master_port=11000"\nif [ $# -ge 1 ]; then A="$1"; fi\ndeepspeed $A t.py', [("deepspeed", None, "t.py", ())], []),
    ("if [ -z \"$2\" ]; then echo usage; exit 1; fi\ntorchrun --nproc_per_node $2 t.py", [("torchrun", None, "t.py", ())], ["2"]),
    (": ${G:=4}\ntorchrun --nproc_per_node $G t.py", [("torchrun", 4, "t.py", ())], []),
    # counters and counted loops
    ("P=5\nfor i in a b; do torchrun t.py $((P++)); done", [("torchrun", None, "t.py", ("5",)), ("torchrun", None, "t.py", ("6",))], []),
    ("P=5\nfor i in a b; do torchrun t.py $P; ((P+=2)); done", [("torchrun", None, "t.py", ("5",)), ("torchrun", None, "t.py", ("7",))], []),
    ("for ((i=0; i<2; i++)); do python t.py $i; done", [("python", None, "t.py", ("0",)), ("python", None, "t.py", ("1",))], []),
    ("for ((i=0; i<$K; i++)); do python t.py $i; done", [("python", None, "t.py", ("$i",))], ["i"]),
    ("N=2; torchrun --nproc_per_node $((N > 1 ? N * $((N+1)) : 1)) t.py", [("torchrun", 6, "t.py", ())], []),
    ("N=2; if ((N > 1)); then torchrun --nproc_per_node $N t.py; else python t.py; fi", [("torchrun", 2, "t.py", ())], []),
    # arrays
    ('P=(); A=(--x "--y z"); "${P[@]}" torchrun t.py ${A[@]}', [("torchrun", None, "t.py", ("--x", "--y", "z"))], []),
    ("if [ $U -eq 16 ]; then W=(1 16); else W=(1 8); fi; for n in ${W[@]}; do torchrun --nproc_per_node $n t.py; done", [("torchrun", None, "t.py", ())], ["n"]),
    ('C=(torchrun --nproc_per_node=2); [ "$M" = no ] && C+=(--no_membind); "${C[@]}" t.py', [("torchrun", 2, "t.py", ())], ["C"]),
    # functions that nobody calls, and what runs inside $( )
    ("mkdir out\nf_1.2() {\n  torchrun --nproc_per_node 2 t.py\n}", [("torchrun", 2, "t.py", ())], []),
    ("LOG=$(mpirun -np 4 -H localhost:4 python t.py | tail -1)", [("mpirun", 4, "t.py", ())], []),
]  # fmt: skip


@pytest.mark.parametrize(("text", "launches", "unresolved"), CASES)
def test_a_script_is_followed_as_the_shell_would(text, launches, unresolved):
    meaning = understand(text)
    found = [(one.launcher, one.nproc_per_node, one.entry.name, one.args) for one in meaning.launches]
    assert found == launches
    assert meaning.unresolved == unresolved


@pytest.mark.parametrize(
    ("text", "launcher", "entry", "wrappers"),
    [
        ("srun -l /opt/trace-exec torchrun --nproc_per_node 2 t.py", "torchrun", "t.py", ("srun", "trace-exec")),
        ("srun -N 1 bash -c 'pip install x && ray job submit -- python3 -m rl.main'", "ray", "rl.main", ("srun", "bash -c")),
        ("mpirun -np 2 -npernode 1 bash -c 'source v && torchrun --nproc_per_node 8 t.py'", "torchrun", "t.py", ("mpirun", "bash -c")),
        ("mpiexec --allow-run-as-root ${BIND} -np 8 python3 t.py", "mpirun", "t.py", ()),
        ("nvidia-docker exec -it box python t.py", "python", "t.py", ("nvidia-docker exec",)),
        ("stdbuf -oL -eL torchrun --nproc_per_node=2 t.py |& tee log", "torchrun", "t.py", ("stdbuf",)),
        ('tmux send-keys -t x "torchrun --nproc_per_node 2 t.py" C-m', "torchrun", "t.py", ("tmux send-keys",)),
        ("uvx --from accelerate accelerate launch t.py", "accelerate", "t.py", ("uvx",)),
        ("%%bash\n%env A=1\n%run t.py --lr 1", "python", "t.py", ()),
        ('docker exec "${E[@]}" box ${R} torchrun --nproc_per_node 2 t.py', "torchrun", "t.py", ("docker exec",)),
        ("python -m paddle.distributed.launch --gpus 0,1 python -u t.py", "paddle", "t.py", ()),
        ("mpirun -np 8 ... python t.py", "mpirun", "t.py", ()),
        ("ts -G 1 torchrun --nproc_per_node 2 t.py", "torchrun", "t.py", ("ts",)),
        ("mkdir out\nfairseq-train data --arch x", "other", "fairseq-train", ()),
        ("root@box:/app# horovodrun -np 4 -H localhost:4 python t.py", "horovod", "t.py", ()),
        ("torchrun \\\\\n  --nproc_per_node 2 \\\\\n  t.py", "torchrun", "t.py", ()),
    ],
)  # fmt: skip
def test_the_program_behind_others_is_found(text, launcher, entry, wrappers):
    launch = understand(text).launch
    assert (launch.launcher, launch.entry.name, launch.wrappers) == (launcher, entry, wrappers)


def test_the_older_form_of_mpi_variables_is_read():
    launch = understand("mpirun -n 16 -ppn 8 -env A=1 -genv B 2 python t.py").launch
    assert (launch.env, launch.nproc_per_node, launch.nnodes) == ({"A": "1", "B": "2"}, 8, 2)


def test_the_launch_that_trains_counts_where_a_program_has_several_verbs():
    entry = understand("srun axolotl preprocess c.yaml\nsrun axolotl train c.yaml").launch.entry
    assert entry is not None and entry.name == "axolotl train"


def test_variables_given_to_a_container_are_taken_apart():
    launch = understand("singularity exec --nv --env A=1,B=2 img python t.py").launch
    assert launch.env == {"A": "1", "B": "2"}


def test_a_placeholder_keeps_its_blanks():
    launch = understand("accelerate launch t.py --a=<path to the model> --b=<ID | DIR > --c <out dir>").launch
    assert launch.args == ("--a=<path to the model>", "--b=<ID | DIR >", "--c", "<out dir>")


def test_xtuner_takes_its_layout_from_variables():
    launch = understand("NPROC_PER_NODE=8 NNODES=2 PORT=29600 ADDR=n0 NODE_RANK=1 xtuner train c.py").launch
    assert (launch.nproc_per_node, launch.nnodes, launch.node_rank) == (8, 2, 1)
    assert (launch.master_addr, launch.master_port) == ("n0", 29600)


@pytest.mark.parametrize(
    "text",
    ["horovodrun --check-build", "torchrun --help", "srun nvidia-smi", "mpirun -np 2 hostname", "python -c 'print(1)'",
     "python -m pip install torch", "set -euxo pipefail", "If you are on a cluster use srun", "Python 3.10.x and Git",
     "srun -N 1 ray start --head --block", "Built on https://example.org/train.sh"],
)  # fmt: skip
def test_what_trains_nothing_is_no_launch(text):
    assert understand(text).launch is None


@pytest.mark.parametrize("link", ["[ $a ] && ", "[[ $a == b ]] || ", "((x++)) && "])
def test_a_chain_of_any_length_is_followed(link):
    assert understand(link * 3000 + "python t.py").launch.entry.name == "t.py"
