"""What a foreign process carries for us: a folder that is put first on its PYTHONPATH, and the page it writes.

Out: `ranks/R/heartbeat` (the page), `ranks/R/error-A.json` (the last exception), `ranks/R/stacks` and
`ranks/R/flight-A.json` (torch's flight recorder), both on request.
The folder `site` is read by interpreters that have no headway: stdlib only, and old Python is fine.
"""

from headway.launch.hook.flight import Flight, ask_for_flight, read_dump, read_flight
from headway.launch.hook.page import (
    HookPage,
    ask_for_stacks,
    ask_process_for_stacks,
    hide_in_errors,
    parse_page,
    read_error,
    read_page,
)
from headway.launch.hook.place import HOOK_SITE, hook_environment
from headway.launch.hook.temps import remove_temps

__all__ = [
    "HOOK_SITE",
    "Flight",
    "HookPage",
    "ask_for_flight",
    "ask_for_stacks",
    "ask_process_for_stacks",
    "hide_in_errors",
    "hook_environment",
    "parse_page",
    "read_dump",
    "read_error",
    "read_flight",
    "read_page",
    "remove_temps",
]
