"""The memory forecast of any point, so that no probe is spent on what cannot fit."""

from __future__ import annotations

from dataclasses import dataclass, field

from headway.config import LoadedConfig, RunConfig
from headway.errors import PlanError
from headway.machine import MachineReport
from headway.planner import Forecast, Model, Plan, foresee, study_model
from headway.tune.record import Settings, Skip, apply_settings
from headway.units import size


@dataclass(slots=True, kw_only=True)
class Foresight:
    """Forecasts by point; a model is traced once for each arithmetic."""

    loaded: LoadedConfig
    machine: MachineReport
    plan: Plan
    _models: dict[tuple[str, bool], Model | None] = field(default_factory=dict)

    def forecast(self, settings: Settings) -> Forecast | None:
        """Return the forecast of a point, or nothing where the model can be neither traced nor described."""
        if self.loaded.framework != "torch":  # a trace is PyTorch's
            return None
        plan, config = apply_settings(settings, self.plan, self.loaded.config)
        kind = (settings.precision, settings.activation_checkpoint)
        if kind not in self._models:
            self._models[kind] = self._study(plan, config)
        model = self._models[kind]
        return foresee(plan, config, self.machine, model) if model is not None else None

    def _study(self, plan: Plan, config: RunConfig) -> Model | None:
        try:
            # A shape answers at once; only where there is none is a trace worth its seconds.
            is_shapeless = self.loaded.recipe.shape is None
            return study_model(plan, config, self.machine, self.loaded.recipe, trace=is_shapeless)
        except PlanError:  # what cannot be traced is measured; that is what probes are for
            return study_model(plan, config, self.machine, self.loaded.recipe, trace=False)

    def rule_out(self, settings: Settings) -> Skip | None:
        """Return why a point cannot fit. A compiled step holds less than its trace, so it is not ruled out."""
        found = self.forecast(settings)
        if found is None or found.verdict != "will-not-fit" or settings.compile:
            return None
        facts = {"used": size(found.used_bytes), "have": size(found.device_bytes)}
        return Skip(axis="micro_batch", value=settings.micro_batch, code="tune/skip-too-large", facts=facts)
