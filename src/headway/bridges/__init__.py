"""Messages and trackers. In: a run directory that grows. Out: alerts in chat, numbers in other people's trackers.

One process per run, `keeper`, is started beside the supervisor where anything is to be sent. It reads the run directory
and lets short-lived children talk to the outside, each with a deadline: a channel that hangs costs nothing.
"""

from headway.bridges.addresses import find_addresses, keep_addresses, read_addresses, refuse_unset
from headway.bridges.deliver import Delivery, deliver
from headway.bridges.message import Message, test_message
from headway.bridges.notes import read_notes

__all__ = [
    "Delivery",
    "Message",
    "deliver",
    "find_addresses",
    "keep_addresses",
    "read_addresses",
    "read_notes",
    "refuse_unset",
    "test_message",
]
