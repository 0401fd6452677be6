"""What a hint tells to type can be pasted: the user's own words are kept around what changes."""

from __future__ import annotations

import shlex

import pytest

from headway.cli.main import main
from headway.ui import retype as module
from headway.ui.retype import paste_ready, remember_words, retype


@pytest.fixture(autouse=True)
def _own_words(monkeypatch):
    monkeypatch.setattr(module, "find_program", lambda: "headway")
    yield
    remember_words(())


def pasted(given: str, hint: str) -> str:
    remember_words(shlex.split(given))
    return paste_ready(hint)


@pytest.mark.parametrize(
    ("given", "hint", "line"),
    [
        ("train nanochat depth=4", "  gpus=2", "  headway train nanochat depth=4 gpus=2"),
        ("train nanochat depth=4 out=a", "  depth=6  # even", "  headway train nanochat depth=6 out=a  # even"),
        ("train nanochat --depth=4 out=a", "  depth=6", "  headway train nanochat depth=6 out=a"),
        ("train 'my run.yaml' name='a b'", "  gpus=1", "  headway train 'my run.yaml' 'name=a b' gpus=1"),
        ("tune nanochat --budget 1s", "  --budget 10m", "  headway tune nanochat --budget 10m"),
        ("adopt a.sh --to b", "  --to ~/b.yaml", "  headway adopt a.sh --to ~/b.yaml"),
        ("adopt a.sh --to b", "  --yes", "  headway adopt a.sh --to b --yes"),
        ("run torchrun a.py --gpus 3", "  --gpus 2", "  headway run torchrun a.py --gpus 2"),
        ("run python a.py", "  --no-training", "  headway run --no-training python a.py"),
        ("resume", "  headway runs --out x", "  headway runs --out x"),
        ("resume", "headway runs is read", "headway runs is read"),
        ("resume", "  CUDA_VISIBLE_DEVICES=0 ls", "  CUDA_VISIBLE_DEVICES=0 ls"),
        ("guide nanochat x", "  depth=4", "  depth=4"),
        ("", "  depth=4", "  depth=4"),
    ],
)
def test_a_typed_line_becomes_the_whole_command(given, hint, line):
    assert pasted(given, f"read this:\n{hint}") == f"read this:\n{line}"


def test_words_are_replaced_and_left_out():
    remember_words(["train", "nanochat", "--depth", "6", "--zz", "gpus=1"])
    assert retype(swap={"--depth 6": "depth=6"}, drop=["--zz"]) == "headway train nanochat depth=6 gpus=1"


@pytest.mark.parametrize(
    ("words", "hint", "line"),
    [
        (["--device_batch_size=16"], "  --device_batch_size=12 --total_batch_size=49152",
         "  ./train.sh --device_batch_size=12 --total_batch_size=49152"),
        ([], "  --data.batch_size=10", "  ./train.sh --data.batch_size=10"),
        (["--mode", "train"], "  headway config explain lr", "  headway config explain lr"),
    ],
)  # fmt: skip
def test_behind_a_script_of_a_guide_its_own_command_is_typed_again(words, hint, line):
    remember_words(words, program="./train.sh")
    assert paste_ready(hint) == line


@pytest.mark.parametrize("typed", [["--iteration=3"], ["--iteration", "3"], ["iteration=3"]])
def test_a_wrong_word_is_put_right_however_a_script_takes_it(typed):
    remember_words(["x.py", *typed], program="./train.sh")
    wanted = "iterations=3" if typed == ["iteration=3"] else "--iterations=3"
    assert retype(swap={"iteration=3": "iterations=3"}) == f"./train.sh x.py {wanted}"


def test_a_command_behind_a_script_is_told_the_line_that_was_typed(capsys):
    with pytest.raises(SystemExit):
        main(["--typed-as='python train.py' data.batch_siz=16", "plan", "layoutmaster", "data.batch_siz=16"])
    assert "python train.py data.batch_size=16" in capsys.readouterr().err


def test_a_secret_is_not_shown_again():
    remember_words(["train", "nanochat", "--wandb_api_key=0123456789abcdef0123456789abcdef01234567"])
    assert "0123456789abcdef" not in retype(["depth=4"])


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["--depht=4", "out=x y"], "headway train nanochat depth=4 'out=x y'"),
        (["--depth", "6", "gpus=0"], "headway train nanochat depth=6 gpus=0"),
        (["train.precision=bf61", "depht=4"], "headway train nanochat train.precision=bf16 depth=4"),
        (["--set", "depht=4"], "headway train nanochat --set depth=4"),
    ],
)
def test_wrong_settings_are_put_right_in_the_whole_command(capsys, words, line):
    with pytest.raises(SystemExit):
        main(["train", "nanochat", *words])
    assert capsys.readouterr().err.splitlines()[-1] == f"  {line}"


def test_where_one_setting_has_no_right_spelling_no_half_mended_command_is_offered(capsys):
    with pytest.raises(SystemExit):
        main(["train", "nanochat", "depht=4", "depth=x"])
    assert "headway train" not in capsys.readouterr().err
