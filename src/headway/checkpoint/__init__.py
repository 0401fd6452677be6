"""Keep and restore: a run's state as verified files, found again after any fault.

In: tensors as pieces of global tensors, and what the loop says about the step. Out: `checkpoints/step-N/`, a manifest
and shards that were fsynced, renamed into place and read back. The half that needs torch is
`checkpoint/torch_state.py`.
"""

from headway.checkpoint.commit import mark_for
from headway.checkpoint.copy import copy_checkpoint
from headway.checkpoint.export import Export, export_folder, export_pt, export_safetensors, plan_export
from headway.checkpoint.export_ckpt import export_ckpt
from headway.checkpoint.export_upstream import export_upstream
from headway.checkpoint.manifest import Manifest
from headway.checkpoint.retention import best_there, find_leftovers, plan_prune, prune, sweep
from headway.checkpoint.search import (
    CheckpointInfo,
    Found,
    Patience,
    find_likely,
    find_resumable,
    list_checkpoints,
    read_latest,
    refuse_lost,
)
from headway.checkpoint.verify import read_manifest, verify_checkpoint

__all__ = [
    "CheckpointInfo",
    "Export",
    "Found",
    "Manifest",
    "Patience",
    "best_there",
    "copy_checkpoint",
    "export_ckpt",
    "export_folder",
    "export_pt",
    "export_safetensors",
    "export_upstream",
    "find_leftovers",
    "find_likely",
    "find_resumable",
    "list_checkpoints",
    "mark_for",
    "plan_export",
    "plan_prune",
    "prune",
    "read_latest",
    "read_manifest",
    "refuse_lost",
    "sweep",
    "verify_checkpoint",
]
