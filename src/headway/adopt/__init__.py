"""What an old launch line, script or guide means.

In: text. Out: `Meaning` (every launch, what is set, what is left open), `Finding`s, and a clean file.
Nothing is run, and no file that the text names is read.
"""

from headway.adopt.record import LAUNCHERS, Entry, Launch, Meaning, Setting
from headway.adopt.understand import understand

__all__ = ["LAUNCHERS", "Entry", "Launch", "Meaning", "Setting", "understand"]
