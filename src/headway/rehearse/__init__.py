"""A rehearsal: faults are really raised on a run of its own, and what followed is measured.

In: where to run, and the words of a config. Out: a `Rehearsal` with one `Survival` for each fault, and a `Storage` that
says what the disk guarantees.
"""

from headway.rehearse.faults import FAULTS
from headway.rehearse.record import Rehearsal, Storage, Survival
from headway.rehearse.run import raise_faults
from headway.rehearse.storage import look_at_storage

__all__ = ["FAULTS", "Rehearsal", "Storage", "Survival", "look_at_storage", "raise_faults"]
