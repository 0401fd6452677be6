"""Plans of several nodes: `--on 2x8xH20`, and the network between them."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from fakes.machines import machine
from headway.cli.plan import plan
from headway.errors import UsageError
from headway.machine import make_machine
from headway.machine.cards import make_gpus, parse_wanted
from headway.planner.forecast import find_card, place_card
from headway.planner.roofline import link_rate, network_rate


@pytest.fixture(autouse=True)
def no_kept_traces(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))


def ask(*words: str) -> dict:
    told = CliRunner().invoke(plan, [*words, "--json"])
    assert told.exit_code == 0, told.output
    return json.loads(told.stdout)


def rows(told: dict) -> dict[str, str]:
    return {row["key"]: row["value"] for row in told["rows"]}


def test_a_wish_of_two_nodes_is_one_of_them_and_says_how_many():
    found = make_machine("2x8xH20", machine())
    assert (found.nodes, len(found.gpus), found.stands_in) == (2, 8, "2 × 8 × H20 96GB")
    assert make_machine("8xH20", machine()).nodes == 1
    with pytest.raises(UsageError) as refused:
        make_machine("0x8xH20", machine())
    assert "--on 2x8xH20" in refused.value.hint("en")


def test_ranks_are_counted_over_all_nodes_and_threads_on_one():
    told = ask("nanochat", "--on", "2x8xH20", "task.depth=2")
    assert (told["world_size"], len(told["gpus"]), told["batch_samples"]) == (16, 8, 128)
    assert told["threads"] == 8 and rows(told)["threads"] == "8"
    assert rows(told)["network"] == "3,200 Gb/s per node, one way"


def test_a_slow_network_makes_the_step_slower_and_the_plan_says_what_waits():
    words = ["nanochat", "--on", "2x8xH100", "task.depth=12"]
    usual, slow, alone = ask(*words), ask(*words, "--network", "1"), ask("nanochat", "--on", "8xH100", words[-1])
    times = [one["forecast"]["step_s"] for one in (alone, usual, slow)]
    assert times[0] < times[1] < times[2] and slow["forecast"]["exposed_s"] > usual["forecast"]["exposed_s"]
    assert slow["forecast"]["network_gb_s"] == 0.125 and rows(slow)["network"].startswith("1 Gb/s")
    assert alone["forecast"]["network_gb_s"] is None and "network" not in rows(alone)


def test_a_public_model_and_its_table_know_of_the_network():
    words = ["--model", "gpt2", "batch=8", "seq=1024", "--on", "2x1x4090", "--network", "10"]
    shown = CliRunner().invoke(plan, words)
    assert "10 Gb/s per node" in shown.stdout and ask(*words)["ranks"] == 2


def test_half_a_machine_has_half_the_adapters_and_never_less_than_one():
    for wanted, local, rate in (("8xH100", 8, 400.0), ("4xH100", 4, 200.0), ("1xV100", 1, 12.5), ("4x4090", 4, 12.5)):
        gpus = make_gpus(*parse_wanted(wanted))
        card = place_card(find_card(gpus[0]), machine(gpus), ranks=2 * local, local=local)
        assert card is not None and network_rate(card) == rate
        assert link_rate(card, 2 * local) <= link_rate(card, local)


def test_a_network_without_nodes_is_refused():
    told = CliRunner().invoke(plan, ["nanochat", "--on", "8xH20", "--network", "100"])
    assert isinstance(told.exception, UsageError) and told.exception.code == "plan/network-alone"


def test_a_line_whose_ranks_are_on_one_node_is_no_plan_of_two(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").write_text("import torch\n")
    told = CliRunner().invoke(plan, ["--script", "torchrun --nproc-per-node 8 train.py", "--on", "2x8xH20"])
    assert isinstance(told.exception, UsageError) and "--nnodes=2" in told.exception.hint("en")


def test_one_rank_on_each_of_two_nodes_cannot_be_strategy_single():
    told = CliRunner().invoke(plan, ["nanochat", "--on", "2x1xH20", "parallel.strategy=single"])
    assert getattr(told.exception, "code", "") == "plan/single-nodes"
