"""What the recipes' tests share."""

import pytest
import torch


@pytest.fixture(autouse=True)
def one_thread():
    """Two threads on busy cores wait for each other most of the time."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)
