"""Count the patterns by folder, and compare the counts with the budget, which only falls."""

from __future__ import annotations

import json
import math
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path

from tests.prose.patterns import PASSIVE, PROSE, hits
from tests.prose.reading import Sentence

FILE = Path(__file__).with_name("budget.json")
#: Patterns for each 1,000 words that any folder may have.
GOALS = {"pages": 5, "docstrings and comments": 8, "messages and templates": 6}
AVERAGE = 15.0
#: Per cent of the sentences.
PASSIVES = 25
KINDS = {
    "message": "messages and templates",
    "summary": "docstrings and comments",
    "doc": "docstrings and comments",
    "comment": "docstrings and comments",
}


@dataclass
class Allowed:
    """The most patterns and per cent of passive sentences of a folder, and its longest average sentence in words."""

    patterns: int = 0
    passives: int = 0
    average: float = 0.0


@dataclass
class Count:
    """The counts of one kind of text in one folder."""

    words: int = 0
    sentences: int = 0
    sentence_words: int = 0
    passives: int = 0
    patterns: Counter[str] = field(default_factory=Counter)

    def add(self, sentence: Sentence) -> None:
        """Count a sentence. Only prose has a length and a voice; titles and summaries have no words of their own."""
        words = len(sentence.text.split())
        self.words += words if sentence.kind not in {"title", "summary"} else 0
        if sentence.kind in PROSE:
            self.sentences += 1
            self.sentence_words += words
            # “Nothing was written.” is a part of our messages.
            self.passives += bool(PASSIVE.search(sentence.text)) and not sentence.text.startswith("Nothing was ")
        self.patterns.update(pattern.name for pattern, _ in hits(sentence.kind, sentence.text))

    def add_count(self, other: Count) -> None:
        """Add the numbers of another count."""
        for name, number in vars(other).items():
            setattr(self, name, getattr(self, name) + number)

    @property
    def found(self) -> Allowed:
        """The counts that a budget limits."""
        sentences = max(self.sentences, 1)
        average = math.ceil(10 * self.sentence_words / sentences) / 10
        return Allowed(self.patterns.total(), math.ceil(100 * self.passives / sentences), average)

    def goal(self, kind: str) -> Allowed:
        """Return the counts that any folder of this size may have."""
        return Allowed(math.ceil(self.words * GOALS[kind] / 1000), PASSIVES, AVERAGE)


def folder_of(path: Path) -> str:
    """Return the folder that a file counts for; a page at the root counts for itself."""
    return "/".join(path.parts[:-1]) or path.name


def kind_of(sentence: Sentence) -> str:
    """Return the kind of text whose goal applies."""
    return KINDS.get(sentence.kind, "pages")


def count(read: Iterable[tuple[Path, Sentence]]) -> dict[str, dict[str, Count]]:
    """Return the counts by folder and kind; paths are relative to the repository."""
    counts: dict[str, dict[str, Count]] = defaultdict(lambda: defaultdict(Count))
    for path, sentence in read:
        counts[folder_of(path)][kind_of(sentence)].add(sentence)
    return counts


def together(files: Iterable[tuple[str, dict[str, Count]]]) -> dict[str, dict[str, Count]]:
    """Return the sums of the counts of files by folder and kind."""
    counts: dict[str, dict[str, Count]] = defaultdict(lambda: defaultdict(Count))
    for folder, kinds in files:
        for kind, each in kinds.items():
            counts[folder][kind].add_count(each)
    return counts


def stored() -> dict[str, dict[str, Allowed]]:
    """Return the budget. A folder that it does not name has the goals."""
    budget = json.loads(FILE.read_text())
    return {folder: {kind: Allowed(**each) for kind, each in kinds.items()} for folder, kinds in budget.items()}


def over(counts: dict[str, dict[str, Count]], budget: dict[str, dict[str, Allowed]]) -> list[str]:
    """Return a line for each number that is above its budget and above its goal."""
    return [
        f"{folder}, {kind}: {number} {name}, at most {limit} allowed"
        for folder, kinds in sorted(counts.items())
        for kind, each in kinds.items()
        for name, number, limit in _limits(each, kind, budget.get(folder, {}).get(kind, Allowed()))
        if number > limit
    ]


def _limits(each: Count, kind: str, allowed: Allowed) -> Iterable[tuple[str, float, float]]:
    found, goal, budget = asdict(each.found), asdict(each.goal(kind)), asdict(allowed)
    names = {"patterns": "patterns", "passives": "% passive sentences", "average": "words in an average sentence"}
    return [(names[name], found[name], max(budget[name], goal[name])) for name in found]


def lowered(counts: dict[str, dict[str, Count]], budget: dict[str, dict[str, Allowed]]) -> dict[str, object]:
    """Return the budget with lower numbers where the counts are lower, and without the numbers at their goal."""
    result: dict[str, object] = {}
    for folder, kinds in budget.items():
        rest = {}
        for kind, allowed in kinds.items():
            each = counts[folder][kind] if kind in counts.get(folder, {}) else Count()
            found, goal = asdict(each.found), asdict(each.goal(kind))
            above = {
                name: min(found[name], most)
                for name, most in asdict(allowed).items()
                if most and found[name] > goal[name]
            }
            if above:
                rest[kind] = above
        if rest:
            result[folder] = rest
    return result


def write(budget: dict[str, object]) -> None:
    """Store the budget."""
    FILE.write_text(json.dumps(budget, indent=1, sort_keys=True) + "\n")
