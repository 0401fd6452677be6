"""Markdown as GitHub reads it: which commands of a guide are there, under which heading and on which line."""

from headway.adopt import is_guide, read_guide
from headway.adopt.markdown.blocks import read_blocks, read_tables


def launches(text):
    return [(one.line, one.entry.name) for one in read_guide(text).meaning.launches if one.entry is not None]


def test_a_fence_in_a_block_quote_is_read_without_the_quote_marks():
    text = "# Train\n\n> Run this:\n>\n> ```bash\n> torchrun --nproc_per_node 2 train.py\n> ```\n"
    assert launches(text) == [(6, "train.py")]


def test_commands_in_a_comment_are_nobodys_to_type():
    text = "# Train\n\n<!--\n```bash\ntorchrun old.py\n```\n-->\n\n```bash\ntorchrun new.py\n```\n"
    assert launches(text) == [(10, "new.py")]
    assert read_guide("# A\n\n<!-- export NCCL_DEBUG=INFO\n-->\ntext\n").findings == ()


def test_an_unclosed_last_fence_ends_with_the_text():
    assert launches("# Train\n\n```bash\ntorchrun train.py") == [(4, "train.py")]


def test_underlined_headings_are_headings():
    text = "Guide\n=====\n\nTrain\n-----\n\n```bash\ntorchrun train.py\n```\n"
    (block,) = read_blocks(text)
    assert (block.heading, block.first_line) == ("Guide / Train", 8)
    assert is_guide(text)


def test_an_escaped_bar_stays_in_its_cell():
    (table,) = read_tables("| key | values |\n|---|---|\n| mode | a \\| b |\n| **x** | 2 |\n")
    assert table.header == ("key", "values")
    assert table.rows == ((3, ("mode", "a | b")), (4, ("x", "2")))


def test_a_shell_fence_is_found_where_people_put_it():
    deep = "# A\n\ntext\n\n        ```bash\n        torchrun deep.py\n        ```\n"
    assert launches(deep) == [(6, "deep.py")]
    folded = "# A\n\n<details><summary>more</summary>\n```bash\ntorchrun folded.py\n```\n</details>\n"
    assert launches(folded) == [(5, "folded.py")]
    listed = "# A\n\n1. step\n   ```bash\n   torchrun listed.py\n   ```\n"
    assert launches(listed) == [(5, "listed.py")]


def test_a_fence_ends_with_its_own_mark_only():
    (block,) = read_blocks("````md\n```bash\nx\n```\n````\n")
    assert block.text == "```bash\nx\n```\n"
