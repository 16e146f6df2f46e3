"""The patterns of translated English, each with its remedy and the phrases in which it is right.

A pattern is searched only in a sentence that has one of its words, so that the whole repository takes a few seconds.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

PROSE = frozenset({"page", "doc", "comment", "message"})
#: Everything that is a sentence; a summary is read twice, as a sentence and for its first word.
SENTENCES = PROSE | {"cell"}

THINGS = (
    "the|a|an|its|their|each|every|some|another|others?|models?|items?|objects?|keys?|DynamoDB|Django|Python|`x`|`E`"
)
PRONOUNS = "that|this|these|it|they|there|nothing|nobody|somebody|none|no|all|one|several|both|either|neither|not"
BE = "is|are|was|were|be|been|being"
GO = "go|goes|going|gone|went"
DO = "do|does|did|is|are|was|were"
PEOPLE = "you|we|I|users?|persons?|people|visitors?|readers?|developers?|operators?|admins?"


@dataclass(frozen=True)
class Pattern:
    """A pattern of sentences: ``search`` finds it, ``words`` are the words one of which it needs."""

    name: str
    remedy: str
    search: str
    words: str
    right: str = ""
    kinds: frozenset[str] = SENTENCES
    flags: int = re.IGNORECASE
    needs: frozenset[str] = field(init=False)
    found: re.Pattern[str] = field(init=False)
    allowed: re.Pattern[str] | None = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "needs", frozenset(self.words.split()))
        object.__setattr__(self, "found", re.compile(self.search, self.flags))
        object.__setattr__(self, "allowed", re.compile(self.right, re.IGNORECASE) if self.right else None)

    def matches(self, sentence: str) -> list[str]:
        """Return the phrases of a sentence that match and are not right as they are."""
        spans = [each.span() for each in self.allowed.finditer(sentence)] if self.allowed else []
        return [
            match.group()
            for match in self.found.finditer(sentence)
            if not any(start <= match.end() and match.start() <= end for start, end in spans)
        ]


PATTERNS = (
    Pattern(
        "clause as subject",
        "begin with the noun: “Stored values are kept”, not “What is stored stays”",
        r"(?:^|[;:]\s+)(?:What|Whatever|Who|Whoever|Which|That which)\b(?!.*\?$)",
        "what whatever who whoever which that",
        right=r"^(?:What|Who)\s+(?:to|it|else)\b.{0,40}$",
        kinds=PROSE,
        flags=0,
    ),
    Pattern(
        "clause as object",
        "name the noun: “of the stored item”, not “of what is stored”",
        r"\b(?:of|by|to|with|from|for|in|on|at|beside|and|than|as|but|(?:give|take|read|show|name|write)s?|has|have)\s+"
        r"(?:what|whatever|whoever|that which)\b(?!\s+(?:to|kind|if)\b)",
        "what whatever whoever which",
    ),
    Pattern(
        "pronoun for a noun",
        "repeat the noun, or write “it”",
        r"\b(?:the|a|an|another|this|that|which)\s+one\b|\bone\s+(?:that|which|who|of\s+which)\b|\bones?\s+own\b"
        r"|\bone's\s+own\b|\bthose\s+(?:that|who|which|of|with|in|by|for)\b"
        r"|\bthat\s+of\s+(?:the|a|an|its?|what|which)\b",
        "one ones one's those that",
        right=r"one\s+(?:request|item|query|transaction)|one-to-one",
    ),
    Pattern(
        "inversion",
        "write subject, verb, object: “Queries do this too”, not “So do queries”",
        rf"^(?:Of(?!\s+course)|Only\s+then|So\s+(?:{DO}|it)|Neither|Nor|Not\s+only|(?:To|With|By)\s+it)\b"
        rf"|,\s+(?:and\s+)?(?:so|neither|nor)\s+(?:{DO}|has|have|can|will)\b",
        "of only so neither nor not it",
        kinds=PROSE,
    ),
    Pattern(
        "where for if",
        "write “if” for a condition and “when” for a time; “where” is for places",
        rf"\bwhere\s+(?:{PRONOUNS}|{THINGS})(?!\w)",
        "where",
        right=r"\b(?:place|page|table|index|partition|file|folder|directory|position|point|section|line|module|app|code"
        r"|example|see|show|know|find|decide|out|tell)s?\s*,?\s+where\b"
        r"|\bwhere\s+it\s+(?:is|lies|came|comes|begins|ends|starts)\b",
    ),
    Pattern(
        "data that speaks",
        "data sets, defines, contains, names or reports; only people say",
        r"\b(?:says?|said|saying|tells?|told|telling|speaks?|spoke|heard)\b",
        "say says said saying tell tells told telling speak speaks spoke heard",
        right=rf"\b(?:{PEOPLE})\s+(?:\w+\s+)?(?:say|said|tell|told)s?\b|that\s+is\s+to\s+say",
    ),
    Pattern(
        "asked",
        "write “query”, “request”, “read”, “require”; a prompt asks a user",
        r"\b(?:asks?|asked|asking|questions?)\b",
        "ask asks asked asking question questions",
        right=rf"\bask(?:s|ed)?\s+(?:the\s+|a\s+)?(?:{PEOPLE})\b|\bask(?:s|ed)?\s+whether\b|frequently\s+asked",
    ),
    Pattern(
        "answers",
        "a key serves a query; DynamoDB returns a response",
        r"\b(?:answers?|answered|answering|unanswered)\b",
        "answer answers answered answering unanswered",
    ),
    Pattern(
        "private noun",
        "write “datetime”, “now”, “layout”, “string”, “asynchronous variant”, “fix”, “no one”",
        r"\b(?:moments?|the\s+present|forms?\s+of\s+(?:the|its|a|an|their)\s+items?|gone\s+by|storeys?|a\s+text|texts"
        r"|(?:of|by)\s+whom|twins?|ways?\s+out|way\s+round|tallies|whoever|nobody|somebody|anybody)\b",
        "moment moments present form forms gone storey storeys text texts whom twin twins way ways tallies whoever"
        " nobody somebody anybody",
        right=r"(?:for\s+a|in\s+a|at\s+the|a|the)\s+moment\s*[.,;]?$",
    ),
    Pattern(
        "phrasal calque",
        "write “cascades”, “continues”, “runs”, “instead of”, “next to”, “permanently”, “no longer”",
        rf"\b(?:{GO}|tak(?:e|es|en|ing)|took|read|comes?|brought|written|sent)\s+along\b|\b(?:{GO})\s+on\b"
        r"|\bcarr(?:y|ies|ied)\s+(?:on|out|over)\b|\bholds?\s+\w+\s+to\b|\bheld\s+to\b|\bled\s+to\b"
        r"|\bin\s+the\s+place\s+of\b|\bbesides?\b|\bfor\s+good\b|\bas\s+ever\b|\bonce\s+more\b|\bmade\s+again\b"
        r"|\b(?:lies?|stands?|lay|stood)\s+(?:in|on|at|beside|beneath|under|there|elsewhere|instead)\b"
        r"|\bany\s+(?:more|longer)\b|\bby\s+(?:now|then)\b|\bmeanwhile\b|\btaken?\s+(?:apart|back)\b|\bbut\s+for\b"
        r"|\bfollows?\s+from\b|\bdoes?\s+without\b|\bdearer\b",
        "along on over out held led hold holds place beside besides good ever once again lie lies stand stands lay"
        " stood any by meanwhile apart back but follow follows without dearer",
    ),
    Pattern(
        "negation without its verb",
        "negate the verb: “does not send a request”, not “sends nothing”; “A rather than B”, not “A, and not B”",
        r",\s+(?:and|but)\s+(?:not|never|no|nothing|none)\b|\band\s+nothing\s+else\b|\bno\s+\w+\s+(?:either|neither)\b"
        r"|\b(?:(?:send|give|write|read|take|change|cost|know|find|hold|keep|say|see)s?|does|do|has|have)\s+"
        r"(?:nothing|none|nobody)\b|\bknows?\s+no\b",
        "not never no nothing none nobody neither either",
    ),
    Pattern(
        "so for this way",
        "write “this way”, “therefore” or “also”, or leave it out",
        r"\b(?:stored|written|kept|read|left|declared|set|signs?\s+up|found|used|called|named|made|done|known)\s+so\b"
        rf"|^So\s+(?!that\b)\w+|\bso\s+(?:{DO})\s+\w+",
        "so",
        right=r"\bso\s+(?:far|long|much|many|you\s+can)\b",
    ),
    Pattern(
        "error as a noun",
        "write “raises `E`” or “returns a 404”, not “is `E`”",
        rf"\b(?:{BE})\s+(?:an?\s+|then\s+|the\s+|Django's\s+)?(?:`E`|error\s+\d+|\d{{3}}\b|error\b)"
        r"(?!\s+(?:class|raised|message|page|code))|\bend(?:s|ed)?\s+(?:in|with)\s+`E`",
        "is are was were be been being end ends ended",
        kinds=PROSE,
    ),
    Pattern(
        "riddle for a summary",
        "begin a function's docstring with an imperative verb, a property's or a class's with a noun",
        r"^(?:What|Whether|How|Which|Where|Who|That|The\s+same|As|Those|One|Of|It)\b(?!'s)",
        "what whether how which where who that same as those one of it",
        kinds=frozenset({"summary"}),
    ),
    Pattern(
        "stacked clauses",
        "split the sentence: two relative clauses are enough",
        r"(?:\b(?:that|which|who|whom|whose|what|where|whether)\b[^.;:()]{0,70}){3,}",
        "that which who whom whose what where whether",
    ),
    Pattern(
        "riddle for a title",
        "name the task (how-to) or the subject (reference)",
        r"^(?:What|How|When|Where|Who|Whether|Of|Only)\b|\b(?:goes?|passes|along|beside|by\s+itself|of\s+one's\s+own"
        r"|under\s+way|(?:that|which)\s+(?:is|are))\b",
        "what how when where who whether of only go goes passes along beside itself own way that which",
        right=r"^What (?:you|is new)\b|^What's new|^How to\b|^How .{0,40} works?$|^Whe(?:n|re) to\b",
        kinds=frozenset({"title"}),
    ),
)

IRREGULAR = (
    "made|kept|held|sent|read|written|taken|given|found|left|known|seen|put|set|told|said|done|begun|gone|shown|lost"
    "|built|chosen|drawn|brought|thrown|cut|meant|paid|led|hidden|broken|bound|understood"
)
#: A form of “be” and a participle, with up to one adverb between them.
PASSIVE = re.compile(rf"\b(?:{BE})\s+(?:\w+ly\s+|not\s+|then\s+|also\s+|always\s+|never\s+)?(?:\w+ed|{IRREGULAR})\b")
TOKEN = re.compile(r"[\w']+")


def hits(kind: str, sentence: str) -> list[tuple[Pattern, str]]:
    """Return each pattern that a sentence of this kind matches, with the phrase."""
    tokens = frozenset(TOKEN.findall(sentence.lower()))
    return [
        (pattern, phrase)
        for pattern in PATTERNS
        if kind in pattern.kinds and not tokens.isdisjoint(pattern.needs)
        for phrase in pattern.matches(sentence)
    ]
