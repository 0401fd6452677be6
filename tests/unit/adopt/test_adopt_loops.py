"""Loops that count, aliases, and what Slurm tells an inner shell."""

from __future__ import annotations

import pytest

from headway.adopt import understand


@pytest.mark.parametrize(
    ("head", "values"),
    [
        ("for i in $(seq 0 2); do", "012"),
        ("for i in $(seq 3); do", "123"),
        ("for i in `seq 4 -2 2`; do", "42"),
        ("N=2; for i in $(seq 1 $N); do", "12"),
        ("A=(a b); for ((i=0; i<${#A[@]}; i++)); do", "01"),
        ("N=3; for ((i=1; i<=N; i++)); do", "123"),
    ],
)
def test_a_loop_whose_bounds_are_known_is_followed(head, values):
    launches = understand(f"{head} python t.py $i; done").launches
    assert [launch.args[0] for launch in launches] == list(values)


def test_a_loop_whose_bound_is_not_known_is_read_once_and_left_open():
    meaning = understand("for i in $(seq 0 $N); do python t.py $i; done")
    assert [launch.args for launch in meaning.launches] == [("$i",)]
    assert meaning.unresolved == ["i"]


def test_a_default_counts_inside_a_sum_too():
    assert understand("accelerate launch --num_processes $(( ${N:-2} * ${G:-4} )) t.py").launch.world_size == 8


def test_an_alias_stands_for_its_words():
    launch = understand('P=gpu\nalias s1="srun -p $P -N 1 -n 4"\ns1 --async python3 t.py a').launch
    assert (launch.launcher, launch.nproc_per_node, launch.line) == ("slurm", 4, 3)
    assert (launch.entry.name, launch.args) == ("t.py", ("a",))


def test_srun_tells_its_inner_shell_how_many_nodes_there_are():
    launch = understand("srun -N 2 --ntasks-per-node 1 bash -c 'torchrun --nnodes $SLURM_NNODES t.py'").launch
    assert (launch.nnodes, launch.wrappers) == (2, ("srun", "bash -c"))


def test_tasks_and_tasks_a_node_give_the_nodes():
    launch = understand("srun --ntasks=16 --ntasks-per-node=8 python t.py").launch
    assert (launch.nnodes, launch.nproc_per_node, launch.world_size) == (2, 8, 16)


def test_a_program_with_a_verb_has_the_same_name_behind_srun():
    here, there = understand("xtuner train c.py").launch, understand("srun -n 8 xtuner train c.py").launch
    assert here.entry == there.entry and here.args == there.args == ("c.py",)
    assert understand("srun tune run --nproc_per_node 2 r --config c").launch.wrappers == ("srun",)


def test_flags_that_are_not_known_may_stand_before_the_program_of_srun():
    launch = understand("srun \"$@\" sh -c 'torchrun --nproc-per-node gpu t.py'").launch
    assert (launch.launcher, launch.nproc_per_node, launch.wrappers) == ("torchrun", "gpu", ("srun", "sh -c"))


def test_what_is_not_known_stays_open_behind_mpirun():
    text = 'HEAD=$(( hostname ) | head -1)\nmpirun -np 2 -x $VARS bash -c "torchrun --rdzv-endpoint=$HEAD t.py"'
    meaning = understand(text)
    assert (meaning.launch.master_addr, meaning.unresolved) == (None, ["HEAD", "VARS"])
    assert meaning.launch.wrappers == ("mpirun", "bash -c")
