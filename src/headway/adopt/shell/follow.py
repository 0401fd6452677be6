"""Follow a shell text as the shell would, without running anything: which commands start, with which words and env."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from headway.adopt.command import Command, inherit
from headway.adopt.record import Setting
from headway.adopt.sbatch import variables_of
from headway.adopt.shell.assignment import is_optional, split_assignment, value_of
from headway.adopt.shell.conditions import arm_of, both, has_rest, holds, leaves
from headway.adopt.shell.expand import (
    Atom,
    Said,
    Variables,
    expand_body,
    expand_items,
    expand_value,
    expand_words,
    said,
)
from headway.adopt.shell.lexer import read_words
from headway.adopt.shell.parser import Branch, Case, Chain, Loop, Node, Simple, Subshell, is_test, parse
from headway.adopt.shell.scope import agree, bring_back, choice_of, make_open, names_of, read_array, read_text
from headway.adopt.shell.setter import Setter
from headway.adopt.shell.tokens import Slip, Word
from headway.adopt.wrappers import header_of, read_kept, unwrap

_ELEMENT = re.compile(r"[A-Za-z_]\w*\[[^\]]*\]\+?=")
_MAX_COMMANDS = 2_000
_MAX_CHARACTERS = 192 * 1024
"""Text that is read in all, with what is in `eval` and `bash -c` counted again."""
_MAX_ITEMS = 32
_MAX_CALLS = 8


@dataclass(slots=True)
class Walked:
    """The commands of a text in the order they would start."""

    commands: list[Command] = field(default_factory=list)
    spare: list[Command] = field(default_factory=list)
    """What functions that nobody calls and `$( … )` would start: it counts where nothing else is launched."""
    settings: list[Setting] = field(default_factory=list)
    slips: list[Slip] = field(default_factory=list)
    used: set[str] = field(default_factory=set)
    """Variables that are in the words of a command or in the value of another variable."""
    defaulted: set[str] = field(default_factory=set)
    """Variables that the text has a default for and does not set."""


def walk(
    text: str, *, given: Mapping[str, str] | None = None, header: Mapping[str, str | bool] | None = None
) -> Walked:
    """Return what a shell text starts; `given` are variables that something outside the text sets."""
    variables = Variables({name: (Atom(value),) for name, value in (given or {}).items()})
    walker = _Walker(header or {})
    walker.read(text, variables)
    walker.read_spare(variables)
    walker.out.defaulted = variables.defaulted
    return walker.out


class _Walker:
    """The state of one walk: what has started, which functions there are, and how much is still allowed."""

    def __init__(self, header: Mapping[str, str | bool]) -> None:
        self.header = header
        self.out = Walked()
        self.functions: dict[str, tuple[Node, ...]] = {}
        self.calls = 0
        self.open_loops = 0
        self.called: set[str] = set()
        self.files: dict[str, str] = {}
        self.setter = Setter(self.out.settings, self.out.slips, self.out.used)
        self.aliases: dict[str, list[Word]] = {}
        self.left = _MAX_COMMANDS
        self.characters = _MAX_CHARACTERS
        self.wrappers: tuple[str, ...] = ()

    def read_spare(self, variables: Variables) -> None:
        """Follow functions that are called from elsewhere, and what runs inside `NAME=$( … )`."""
        commands, self.out.commands = self.out.commands, []
        for name, body in list(self.functions.items()):
            if name not in self.called:
                self.run(body, variables.copy())
        for text in self.setter.substituted[:_MAX_ITEMS]:
            self.read(text, variables.copy())
        self.out.spare, self.out.commands = self.out.commands, commands

    def read(self, text: str, variables: Variables, first_line: int = 1) -> None:
        self.characters -= len(text)
        if self.characters < 0:
            return
        lexed = read_words(text, first_line)
        self.out.slips.extend(lexed.slips)
        self.run(parse(lexed.tokens), variables)

    def run(self, nodes: Sequence[Node], variables: Variables) -> None:
        for node in nodes:
            if self.left <= 0:
                return
            if isinstance(node, Simple):
                self._run_simple(node, variables)
            elif isinstance(node, Loop):
                self._run_loop(node, variables)
            elif isinstance(node, Branch):
                self._run_branch(node, variables)
            elif isinstance(node, Subshell):
                self.run(node.body, variables.copy())
            elif isinstance(node, Case):
                self._run_case(node, variables)
            elif isinstance(node, Chain):
                self._run_chain(node, variables)
            else:
                self.functions[node.name] = node.body

    # loops and branches

    def _run_loop(self, loop: Loop, variables: Variables) -> None:
        if loop.name is None or loop.items is None:
            if loop.name is not None:
                make_open(loop.name, variables)
            self._run_open_loop(loop, variables)
            return
        items = expand_items(loop.items, variables)
        is_open = any(atom.is_open or re.search(r"[*?]", atom.text) for item in items for atom in item)
        if is_open or len(items) > _MAX_ITEMS:
            make_open(loop.name, variables)
            self._run_open_loop(loop, variables)
            return
        for item in items:
            variables.set(loop.name, item)
            self.run(loop.body, variables)

    def _run_open_loop(self, loop: Loop, variables: Variables) -> None:
        self.open_loops += 1
        self.run(loop.body, variables)
        self.open_loops -= 1

    def _run_case(self, case: Case, variables: Variables) -> None:
        subject = said(expand_value(case.subject, variables)) if case.subject is not None else None
        if subject is not None and subject.is_known:
            self.run(arm_of(case, subject.text, variables), variables)
            return
        outcomes = [variables.copy() for _ in case.arms]
        for (_, body), outcome in zip(case.arms, outcomes, strict=True):
            self.run(body, outcome)
        # In a loop, the arms read the command line, which the text does not give: their values do not count.
        if not self.open_loops:
            left = [one for (_, body), one in zip(case.arms, outcomes, strict=True) if not leaves(body)]
            agree(variables, [*left, *([] if has_rest(case) else [variables.copy()])])

    def _run_chain(self, chain: Chain, variables: Variables) -> bool | None:
        """Run `[ … ] && NODE`; return whether it held, where that is known."""
        if isinstance(chain.test, Chain):
            verdict = self._run_chain(chain.test, variables)
        else:
            verdict = holds([chain.test], variables)
        if verdict is not None and verdict == (chain.sign == "||"):
            return verdict
        if is_test(chain.then):
            return both(verdict, holds([chain.then], variables), chain.sign)
        if verdict is not None:
            self.run([chain.then], variables)
            return True
        if not leaves([chain.then]):
            outcome = variables.copy()
            self.run([chain.then], outcome)
            agree(variables, [outcome, variables.copy()])
        return None

    def _run_branch(self, branch: Branch, variables: Variables) -> None:
        outcomes: list[Variables] = []
        for condition, body in branch.arms:
            verdict = holds(condition, variables) if condition else True
            self._run_condition(condition, variables)
            if verdict is False:
                continue
            # Who writes `if [ -z "$1" ]; then usage; exit 1; fi` does not mean the script to end there.
            verdict = None if leaves(body) else verdict
            if verdict is True and not outcomes:
                self.run(body, variables)
                return
            outcome = variables.copy()
            self.run(body, outcome)
            if not leaves(body):
                outcomes.append(outcome)
            if verdict is True:
                break
        else:
            outcomes.append(variables.copy())
        agree(variables, outcomes)

    def _run_condition(self, condition: Sequence[Node], variables: Variables) -> None:
        """A command may be in a condition: `if ! torchrun …; then`."""
        tests = ("[", "[[", "test", "command", "which", "true", "false", "grep", "nvidia-smi")
        self.run(
            [
                node
                for node in condition
                if not isinstance(node, Chain) and not (isinstance(node, Simple) and node.words[0].plain in tests)
            ],
            variables,
        )

    # commands

    def _run_simple(self, simple: Simple, variables: Variables) -> None:
        self.left -= 1
        words = list(simple.words)
        prefix: list[tuple[str, bool, Word]] = []
        optional: set[str] = set()
        while words:
            assigned = split_assignment(words[0])
            if assigned is None and is_optional(words, variables, optional):
                continue
            if assigned is None and not (words[0].plain and _ELEMENT.match(words[0].plain)):
                break
            word = words.pop(0)
            if assigned is not None:
                prefix.append((assigned[0], assigned[1], word))
        if words and words[0].plain in self.aliases:
            words[:1] = [replace(word, line=words[0].line) for word in self.aliases[words[0].plain]]
        if not words:
            for name, is_added, word in prefix:
                self.setter.assign(name, word, variables, is_added=is_added)
            return
        self._run_words(simple, words, prefix, variables, frozenset(optional))

    def _run_words(
        self,
        simple: Simple,
        words: list[Word],
        prefix: list[tuple[str, bool, Word]],
        variables: Variables,
        optional: frozenset[str],
    ) -> None:
        inner = variables.copy()
        for name, is_added, word in prefix:
            inner.set(name, expand_value(value_of(word), inner), is_added=is_added)
        if words[0].plain == "read" and (
            read_array(words, simple, inner, variables) or read_text(words, simple, variables)
        ):
            return
        choice = choice_of(words, variables)
        if choice is not None:
            for value in variables.choices[choice]:
                settled = variables.copy()
                settled.set(choice, value)
                self._run_words(simple, words, prefix, settled, optional)
            return
        if self._run_builtin(words, variables, simple):
            return
        # The shell expands the words before the prefix takes effect; who writes `N=2 torchrun … $N` still means 2.
        lent = variables.copy()
        for name, _, _ in prefix:
            if name not in lent.values:
                lent.values[name] = inner.values[name]
        spoken = expand_words(words, lent)
        self.out.used.update(*(names_of(word) for word in words))
        # `$((PORT++))` and `${NAME:=value}` stay behind the command.
        for name in lent.values.keys() - {name for name, _, _ in prefix}:
            variables.values[name] = lent.values[name]
        if not spoken:
            return
        if spoken[0].text == "cat":
            self._keep_file(simple, variables)
        if spoken[0].text in self.functions and self.calls < _MAX_CALLS:
            self._call(spoken, inner)
            bring_back(inner, variables, [name for name, _, _ in prefix])
            return
        env = {name: said(inner.values[name]) for name in sorted(inner.exported) if name in inner.values}
        for name, _, word in prefix:
            env[name] = said(inner.values[name])
            self.setter.note(name, env[name], word.line, is_exported=True)
        names = optional.union(
            *(said(expand_value(one.target, variables)).names for one in simple.redirects if one.target)
        )
        names = frozenset(name for name in names if not name.startswith((">(", "<(")))  # a pipe in other clothes
        bodies = tuple(one.body for one in simple.redirects if one.body is not None)
        self._start(
            Command(
                words=tuple(spoken),
                env=env,
                line=words[0].line if not prefix else prefix[0][2].line,
                names=names,
                bodies=bodies,
                wrappers=self.wrappers,
                sbatch=self.header,
            ),
            inner,
        )

    def _keep_aliases(self, words: Sequence[Word], variables: Variables) -> None:
        """Remember `alias NAME='srun …'`; one with operators in it is left alone."""
        for word in words[1:]:
            assigned = split_assignment(word)
            if assigned is None or len(self.aliases) >= _MAX_ITEMS:
                continue
            tokens = read_words(said(expand_value(value_of(word), variables)).text, word.line).tokens
            if all(isinstance(token, Word) for token in tokens):
                self.aliases[assigned[0]] = [token for token in tokens if isinstance(token, Word)]

    def _keep_file(self, simple: Simple, variables: Variables) -> None:
        """Remember `cat > run.sh <<EOF`, because the file is started later."""
        bodies = [one for one in simple.redirects if one.body is not None]
        targets = [one.target for one in simple.redirects if one.sign in (">", ">>", ">|") and one.target]
        if bodies and targets and len(self.files) < _MAX_ITEMS:
            text = said(expand_body(bodies[-1].body or "", variables, is_literal=bodies[-1].is_literal)).text
            self.files[said(expand_value(targets[-1], variables)).text.removeprefix("./")] = text

    def _start(self, command: Command, variables: Variables) -> None:
        found = read_kept(unwrap(command), self.files)
        if found.text is None:
            self.out.commands.append(found.command)
            return
        if self.calls >= _MAX_CALLS:
            return
        outer, before = self.wrappers, len(self.out.commands)
        inner = variables.copy()
        for name, value in found.command.env.items():
            if name not in inner.values or said(inner.values[name]) != value:  # `docker run -e` sets it again
                inner.values[name] = (Atom(value.text, value.names, is_open=bool(value.names)),)
            inner.exported.add(name)
        for name, known in variables_of({**found.command.sbatch, **header_of(found.command.srun)}).items():
            inner.values.setdefault(name, (Atom(known),))
        self.wrappers, self.calls = found.command.wrappers, self.calls + 1
        self.read(found.text, inner, command.line)
        self.wrappers, self.calls = outer, self.calls - 1
        for place in range(before, len(self.out.commands)):
            self.out.commands[place] = inherit(self.out.commands[place], found.command)

    def _call(self, spoken: Sequence[Said], variables: Variables) -> None:
        """Run a function's body with its words as `$1`, `$2` …; a variable it sets stays set, as in the shell."""
        arguments = [(Atom(one.text, one.names, is_open=bool(one.names)),) for one in spoken[1:]]
        variables.arrays["@"] = tuple(arguments)
        for place in range(1, 10):
            if place <= len(arguments):
                variables.set(str(place), arguments[place - 1])
            else:
                variables.set(str(place), ())
        self.calls += 1
        self.called.add(spoken[0].text)
        self.run(self.functions[spoken[0].text], variables)
        self.calls -= 1

    # what the shell does itself

    def _run_builtin(self, words: list[Word], variables: Variables, simple: Simple) -> bool:
        name = words[0].plain
        if name in ("exec", "command", "builtin") and len(words) > 1 and not (words[1].plain or "").startswith("-"):
            self._run_words(simple, words[1:], [], variables, frozenset())
            return True
        if name == "eval":
            if self.calls < _MAX_CALLS:
                self.calls += 1
                text = " ".join(one.text for one in expand_words(words[1:], variables))
                self.read(text, variables, words[0].line)
                self.calls -= 1
            return True
        if name == "alias":
            self._keep_aliases(words, variables)
            return True
        if self.setter.run(words, variables):
            return True
        if name == ":":
            expand_words(words[1:], variables)  # `: ${NAME:=value}` sets it
            return True
        return name in (
            "[",
            "[[",
            "test",
            "source",
            ".",
            "cd",
            "echo",
            "printf",
            "exit",
            "return",
            "trap",
            "shift",
            "wait",
        )
