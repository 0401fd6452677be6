"""MLflow: the server is the user's own (`MLFLOW_TRACKING_URI`); without one, files beside the runs."""

from __future__ import annotations

import os
from collections.abc import Sequence

from mlflow.entities import Metric, Param
from mlflow.tracking import MlflowClient

from headway.bridges.track import About, Point, Tracker

_MOST = 1000
"""Metrics of one request; MLflow refuses more."""
_LONGEST = 500
_ENDS = {"done": "FINISHED", "stopped": "KILLED", "interrupted": "KILLED"}


class MlFlow:
    """A run of MLflow."""

    def __init__(self, about: About) -> None:
        place = about.run.root.parent.absolute() / "mlflow.db"
        self._client = MlflowClient(os.environ.get("MLFLOW_TRACKING_URI") or f"sqlite:///{place}")
        if about.id:
            self.id = about.id
            self._client.update_run(self.id, status="RUNNING")
            return
        found = self._client.get_experiment_by_name(about.project)
        experiment = found.experiment_id if found else self._client.create_experiment(about.project)
        self.id = self._client.create_run(experiment, run_name=about.name).info.run_id
        params = [Param(key, str(value)[:_LONGEST]) for key, value in about.config.items()]
        for begin in range(0, len(params), 100):
            self._client.log_batch(self.id, params=params[begin : begin + 100])

    def send(self, points: Sequence[Point]) -> None:
        """Log each step once."""
        metrics = [
            Metric(name, value, int(t * 1000), step) for step, t, values in points for name, value in values.items()
        ]
        for begin in range(0, len(metrics), _MOST):
            self._client.log_batch(self.id, metrics=metrics[begin : begin + _MOST])

    def finish(self, state: str) -> None:
        """Say how it ended."""
        self._client.set_terminated(self.id, _ENDS.get(state, "FAILED"))


def start(about: About) -> Tracker:
    """Begin or continue a run."""
    return MlFlow(about)
