"""CTC made of plain operations, for devices: torch's own reads the lengths of every clip back to the host.

L outputs, B clips, V words and the blank (0), S labels, E = 2 S + 1 labels with a blank around each.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

_NEVER = -1e30
"""In place of minus infinity, whose differences are not numbers."""
_IMPOSSIBLE = 1e29


def ctc_nats(log_probs_LBV: Tensor, labels_BS: Tensor, lengths_B: Tensor, label_lengths_B: Tensor) -> Tensor:
    """Return the nats of every sentence; one that cannot be read from its frames counts 0, and so does its gradient.

    Forward through time as Graves et al. (2006) have it; autograd goes back. It is deterministic where gather is.
    """
    steps, rows = log_probs_LBV.shape[:2]
    places_BE = torch.zeros(rows, 2 * labels_BS.shape[1] + 1, dtype=torch.int64, device=labels_BS.device)
    places_BE[:, 1::2] = labels_BS
    said_LBE = log_probs_LBV.gather(2, places_BE.expand(steps, -1, -1))
    # A blank may not be left out between two labels that are the same, and never is left out itself.
    same_BE = places_BE == F.pad(places_BE, (2, 0))[:, :-2]
    skip_BE = torch.where(same_BE | (places_BE == 0), _NEVER, 0.0)
    begin = torch.arange(places_BE.shape[1], device=places_BE.device) < 2
    alpha_BE = torch.where(begin, said_LBE[0], _NEVER)
    for step in range(1, steps):
        after_one = F.pad(alpha_BE, (1, 0), value=_NEVER)[:, :-1]
        after_two = F.pad(alpha_BE, (2, 0), value=_NEVER)[:, :-2] + skip_BE
        reached = torch.stack((alpha_BE, after_one, after_two)).logsumexp(0) + said_LBE[step]
        alpha_BE = torch.where((step < lengths_B)[:, None], reached, alpha_BE)
    last_B1 = 2 * label_lengths_B[:, None]
    before = torch.where(last_B1 > 0, alpha_BE.gather(1, (last_B1 - 1).clamp(min=0)), _NEVER)
    nats_B = -torch.logaddexp(alpha_BE.gather(1, last_B1), before)[:, 0]
    return torch.where(nats_B < _IMPOSSIBLE, nats_B, 0.0)
