"""What happened: events, metrics and heartbeats go into the run directory; the state of the run comes out of it.

In: steps of ranks, events of the supervisor. Out: `RunState`, `RunRow`, columns of metrics; all from files alone.
"""

from headway.telemetry.events import Event, EventLog, follow_events, read_events
from headway.telemetry.find import find_run, is_run, list_closed, list_runs
from headway.telemetry.heartbeat import PHASES, Beat, HeartbeatWriter, parse_beat, read_beat
from headway.telemetry.index import INDEX_NAME, RunRow, list_rows
from headway.telemetry.lease import (
    LOCK_NAME,
    is_locked,
)
from headway.telemetry.lines import number, plain, read_log_tail, read_objects, read_tail
from headway.telemetry.metrics import (
    COLUMNS,
    PARTS,
    Columns,
    MetricsWriter,
    columns_of,
    encode_rows,
    own_step_s,
    read_metrics,
    tail_metrics,
)
from headway.telemetry.reading import (
    open_beneath,
    open_regular,
    read_json,
    read_part,
    read_record,
    refuse_links,
    require_record,
    section,
    whole,
    words,
)
from headway.telemetry.rundir import RunDir, new_run_dir, write_json
from headway.telemetry.state import (
    ENDED,
    STARTS,
    Measure,
    RankState,
    RunState,
    Saved,
    State,
    best_measure,
    is_supervised,
    last_end,
    run_state,
)

__all__ = [
    "COLUMNS",
    "ENDED",
    "INDEX_NAME",
    "LOCK_NAME",
    "PARTS",
    "PHASES",
    "STARTS",
    "Beat",
    "Columns",
    "Event",
    "EventLog",
    "HeartbeatWriter",
    "Measure",
    "MetricsWriter",
    "RankState",
    "RunDir",
    "RunRow",
    "RunState",
    "Saved",
    "State",
    "best_measure",
    "columns_of",
    "encode_rows",
    "find_run",
    "follow_events",
    "is_locked",
    "is_run",
    "is_supervised",
    "last_end",
    "list_closed",
    "list_rows",
    "list_runs",
    "new_run_dir",
    "number",
    "open_beneath",
    "open_regular",
    "own_step_s",
    "parse_beat",
    "plain",
    "read_beat",
    "read_events",
    "read_json",
    "read_log_tail",
    "read_metrics",
    "read_objects",
    "read_part",
    "read_record",
    "read_tail",
    "refuse_links",
    "require_record",
    "run_state",
    "section",
    "tail_metrics",
    "whole",
    "words",
    "write_json",
]
