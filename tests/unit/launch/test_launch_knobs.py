"""A user's own words for a smaller batch, found in the line and turned."""

from __future__ import annotations

import pytest

from headway.errors import UsageError
from headway.launch.foreign.knobs import Knob, read_knobs, refuse_unknown_knobs, turn


def test_a_list_of_names_and_factors_is_read():
    assert read_knobs("per_device_train_batch_size/2, --grad-accum*2,train.batch/4") == (
        Knob("per_device_train_batch_size", True, 2),
        Knob("--grad-accum", False, 2),
        Knob("train.batch", True, 4),
    )


@pytest.mark.parametrize(
    "text", ["", "batch", "batch/", "batch/1", "batch*0", "batch-2", "batch/2,", "a/2;b*2", "batch/2.5"]
)
def test_what_cannot_be_read_is_refused(text):
    with pytest.raises(UsageError) as refused:
        read_knobs(text)
    assert refused.value.code == "run/oom-knob"


@pytest.mark.parametrize(
    ("line", "after"),
    [
        ("t.py --batch-size 8 --accum 1", "t.py --batch-size 4 --accum 2"),
        ("t.py --batch_size=8 --accum=3", "t.py --batch_size=4 --accum=6"),
        ("t.py batch_size=8 +accum=1", "t.py batch_size=4 +accum=2"),
        ("t.py --batch-size 16 --accum 1 --batch-size 8", "t.py --batch-size 16 --accum 2 --batch-size 4"),
        ("t.py --batch-size 8 --accum 1 --other 8", "t.py --batch-size 4 --accum 2 --other 8"),
        ("t.py --batch-size 7 --accum 1", None),
        ("t.py --batch-size 1 --accum 8", None),
    ],
)
def test_the_last_word_of_a_name_is_turned_and_nothing_else(line, after):
    found = turn(read_knobs("batch_size/2,accum*2"), line.split(), {})
    assert (None if found is None else " ".join(found.argv)) == after


def test_a_variable_is_turned_where_the_line_has_no_such_word():
    found = turn(read_knobs("BATCH/2,accum*2"), ["bash", "t.sh", "--accum", "1"], {"BATCH": "8", "OTHER": "8"})
    assert found.argv == ("bash", "t.sh", "--accum", "2") and found.env == {"BATCH": "4"}
    assert found.changes == (("BATCH", 8, 4), ("accum", 1, 2))


def test_a_number_that_is_nowhere_is_refused_before_anything_starts():
    with pytest.raises(UsageError) as refused:
        refuse_unknown_knobs("batch/2,accum*2", ["t.py", "--batch", "8"], {})
    assert refused.value.code == "run/oom-knob-missing" and "accum" in refused.value.text()
    with pytest.raises(UsageError):
        refuse_unknown_knobs("batch/2", ["t.py", "--batch", "auto"], {"batch": "auto"})
    refuse_unknown_knobs("batch/2", ["t.py"], {"batch": "8"})
