"""What an old launch line, script or guide means.

In: text. Out: `Meaning` (every launch, what is set, what is left open), `Finding`s, and a clean file; for a line to
run, a `ReadLine`. Nothing of the text is run and no file that it names is read, but the words of
a line to run are asked of bash, and its torch of the interpreter.
"""

from headway.adopt.clean import write_clean
from headway.adopt.elastic import Elastic, read_elastic
from headway.adopt.exact import find_command, stay_in_front
from headway.adopt.finding import Finding, Verdict
from headway.adopt.interpreter import is_binary
from headway.adopt.line import ReadLine, read_line
from headway.adopt.lint import check, parse_version
from headway.adopt.markdown import Guide, is_guide, read_guide
from headway.adopt.record import LAUNCHERS, Entry, Launch, Meaning, Setting
from headway.adopt.reread import read_bash, read_clean
from headway.adopt.secrets import hide_secrets
from headway.adopt.shell.bash import SHELLS_OWN, Expanded, expand
from headway.adopt.tidy import find_paste
from headway.adopt.understand import understand

__all__ = [
    "LAUNCHERS",
    "SHELLS_OWN",
    "Elastic",
    "Entry",
    "Expanded",
    "Finding",
    "Guide",
    "Launch",
    "Meaning",
    "ReadLine",
    "Setting",
    "Verdict",
    "check",
    "expand",
    "find_command",
    "find_paste",
    "hide_secrets",
    "is_binary",
    "is_guide",
    "parse_version",
    "read_bash",
    "read_clean",
    "read_elastic",
    "read_guide",
    "read_line",
    "stay_in_front",
    "understand",
    "write_clean",
]
