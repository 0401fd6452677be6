"""Files for other tools. In: a run directory. Out: CSV, JSON or TensorBoard event files."""

from headway.ui.export.files import FORMATS, Format, export_run, list_targets
from headway.ui.export.tensorboard import write_events

__all__ = ["FORMATS", "Format", "export_run", "list_targets", "write_events"]
