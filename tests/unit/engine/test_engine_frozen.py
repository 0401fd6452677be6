from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch

from headway.engine.snapshot import refuse_other_frozen
from headway.errors import TrainError
from headway.task import hash_frozen


def test_trained_weights_are_not_put_beside_other_frozen_ones():
    model = torch.nn.Linear(2, 2).requires_grad_(False)
    manifest = SimpleNamespace(meta={"frozen_id": hash_frozen(model)})
    refuse_other_frozen(manifest, hash_frozen(model))
    torch.nn.init.ones_(model.weight)
    with pytest.raises(TrainError) as refused:
        refuse_other_frozen(manifest, hash_frozen(model))
    assert refused.value.code == "engine/frozen-changed"
