"""The exception a program printed before it ended."""

from __future__ import annotations

from headway.diagnosis import find_last_words

TRACE = b"""step 3
[rank1]: Traceback (most recent call last):
[rank1]:   File "/x/train.py", line 10, in <module>
[rank1]:     main()
[rank1]: my.errors.BadBatch: sample 7 is empty
[rank1]: in shard 3

wandb: done
"""


def test_the_type_the_text_and_the_traceback_are_found_behind_torchs_prefix():
    told = find_last_words(TRACE)
    assert (told["type"], told["text"]) == ("BadBatch", "sample 7 is empty\nin shard 3")
    assert told["traceback"].splitlines()[1] == '  File "/x/train.py", line 10, in <module>'


def test_of_several_the_last_counts():
    first = b"Traceback (most recent call last):\n  File \"a\", line 1\nKeyError: 'a'\n\nDuring handling of it\n\n"
    assert find_last_words(first + TRACE)["type"] == "BadBatch"


def test_output_without_a_traceback_has_no_last_words():
    assert find_last_words(b"all went well\nerror: not really\n") is None
    assert find_last_words(b"Traceback (most recent call last):\n  File") is None
