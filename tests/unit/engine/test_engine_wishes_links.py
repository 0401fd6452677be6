from __future__ import annotations

import pytest

from headway.engine.wishes import listen_for_stacks


def test_the_target_of_a_link_named_stacks_is_not_emptied(tmp_path):
    (tmp_path / "victim").write_text("precious")
    (tmp_path / "0").mkdir()
    (tmp_path / "0" / "stacks").symlink_to(tmp_path / "victim")
    with pytest.raises(OSError, match="stacks"):
        listen_for_stacks(tmp_path / "0")
    assert (tmp_path / "victim").read_text() == "precious"
