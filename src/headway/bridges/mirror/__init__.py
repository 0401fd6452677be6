"""Copies of a run's checkpoints in another place: a committed checkpoint comes in, a verified copy goes out, and back.

`store` (what a place can do), `folder`, `ssh`, `s3` (the places), `copy` (a run in a place), `serve` (the process
beside a run that copies while it trains).
"""

from headway.bridges.mirror.copy import Fetched, Mirrored, fetch_run, list_runs, plan_fetch
from headway.bridges.mirror.open import open_store
from headway.bridges.mirror.refuse import refuse_mirror
from headway.bridges.mirror.store import Store

__all__ = ["Fetched", "Mirrored", "Store", "fetch_run", "list_runs", "open_store", "plan_fetch", "refuse_mirror"]
