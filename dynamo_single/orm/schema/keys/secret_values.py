"""Recognize secrets by their names and formats, and mask them in strings and nested values.

This module is independent of models: ``orm/schema/secrecy`` decides about their attributes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from typing import Any, Final

from django.db.models import Expression

#: The text that replaces a secret.
MASK: Final = "•••"

#: Words that name a secret, in the singular.
_WORDS: Final = (
    "password passwd passcode passphrase pwd pw secret token credential cred signature authorization jwt cookie hash "
    "salt pin ssn mfa otp totp hotp tfa cvv cvc"
)
#: Names of several words, which are also written as one.
_PHRASES: Final = (
    "2 fa, api key, access key, auth key, backup code, encryption key, master key, private key, recovery code, "
    "security answer, security code, session data, session id, session key, signing key, social security number, "
    "ssh key, verification code"
)
_NAMES: Final = frozenset((*_WORDS.split(), *_PHRASES.split(", "), *_PHRASES.replace(" ", "").split(",")))
#: The most words that a name of a secret has.
_LONGEST: Final = 3

# Patterns are compiled on first use: only errors and logs hide values. Strings that are secrets whatever their name.
_SHAPES: Final = (
    r"-----BEGIN [A-Z0-9 ]+-----.*?(?:-----END [A-Z0-9 ]+-----|\Z)"  # PEM
    r"|\beyJ[\w-]{5,}\.[\w-]{5,}\.[\w-]*"  # JWT
    r"|\b[spr]k_(?:live|test)_\w{8,}|\bwhsec_\w{8,}"  # Stripe
    r"|\b(?:AKIA|ASIA)[0-9A-Z]{16}\b"  # AWS
    r"|\bgh[opusr]_\w{20,}|\bgithub_pat_\w{20,}|\bglpat-[\w-]{16,}"  # GitHub, GitLab
    r"|\bxox[abeoprs]-[\w-]{10,}|\bAIza[\w-]{30,}"  # Slack, Google
    r"|\b(?:pbkdf2_\w+|argon2\w*|bcrypt\w*|scrypt|md5|peppered)\$+[^\s\"']{8,}"  # hashes of passwords
    r"|\$2[aby]\$\d\d\$[./\w]{50,}"
    r"|(?<=://)[^\s/:@]*:[^\s/@]+(?=@)"  # a user and a password in an address
    r"|(?<=\bBearer )[\w.~+/=-]{8,}"
)
#: A member of a JSON object whose value is a string or a number; the last one may be cut off.
_MEMBER: Final = r'("((?:[^"\\]|\\.)*)"\s*:\s*)("(?:[^"\\]|\\.)*(?:"|\Z)|[^\s,{}\[\]"]+)'

#: The steps from a document to a place in it.
Path = tuple[str | int, ...]


@lru_cache(maxsize=4096)
def is_secret_name(name: str) -> bool:
    """Return whether one to three adjacent words of a name, in camel or snake case, name a secret.

    ``pin`` is in ``userPIN`` and ``pin_code``, and is not in ``shipping`` or ``opinion``.
    """
    found, lengths = words_of(name), range(1, _LONGEST + 1)
    parts = (" ".join(found[first : first + length]) for first in range(len(found)) for length in lengths)
    return any(not _NAMES.isdisjoint((part, part.removesuffix("s"), part.removesuffix("es"))) for part in parts)


def words_of(name: str) -> list[str]:
    """Return the words of a name in camel or snake case, in lower case: ``APIKey2`` has ``api``, ``key`` and ``2``."""
    found = [""]
    for index, character in enumerate(name):
        if not character.isalnum():
            found.append("")
            continue
        if _begins_word(name, index):
            found.append("")
        found[-1] += character.lower()
    return [word for word in found if word]


def _begins_word(name: str, index: int) -> bool:
    """Return whether a letter or digit begins a word although it follows another."""
    character, before = name[index], name[index - 1] if index else "_"
    if not before.isalnum():
        return False
    if character.isdigit() != before.isdigit():
        return True
    if not character.isupper():
        return False
    after = name[index + 1 : index + 2]
    ends_in_plural = after == "s" and not name[index + 2 : index + 3].islower()
    return not before.isupper() or (after.islower() and not ends_in_plural)


def is_secret_path(path: Path) -> bool:
    """Return whether the last step of a path inside a document is the name of a secret."""
    return isinstance(path[-1], str) and is_secret_name(path[-1])


def hide(text: str, hides: Callable[[Path], bool] = is_secret_path) -> str:
    """Return a string with its secrets masked: secrets of known formats, and members of JSON with a secret name.

    ``hides`` takes the path of a member. JSON is recognized if the text is a JSON object or list, and its members if it
    is a part of one.
    """
    if text[:1] in ("{", "[") and text[-1:] in ("}", "]"):
        try:
            found = json.loads(text)
        except (ValueError, RecursionError):
            pass
        else:
            hidden = hide_in(found, hides)
            return text if hidden == found else json.dumps(hidden, ensure_ascii=False)
    if '"' in text and ":" in text:
        text = re.sub(_MEMBER, lambda each: f'{each[1]}"{MASK}"' if hides((each[2],)) else each[0], text)
    return re.sub(_SHAPES, MASK, text, flags=re.DOTALL)


def hide_in(value: object, hides: Callable[[Path], bool] = is_secret_path, path: Path = ()) -> object:
    """Return a Python value with the secrets in its maps, lists, sets and strings masked, at any depth.

    ``path`` leads to the value. Any other value is returned unchanged.
    """
    if isinstance(value, str):
        return hide(value, hides)
    if isinstance(value, Mapping):
        return {
            name: MASK if hides((*path, str(name))) else hide_in(each, hides, (*path, str(name)))
            for name, each in value.items()
        }
    if isinstance(value, list | tuple):
        return [hide_in(each, hides, (*path, number)) for number, each in enumerate(value)]
    if isinstance(value, set | frozenset):
        return {hide(each, hides) if isinstance(each, str) else each for each in value}
    return value


def leave_out(value: object, hides: Callable[[Path], bool] = is_secret_path, path: Path = ()) -> object:
    """Return a Python value without the secret members of its maps, at any depth; strings are masked."""
    if isinstance(value, Mapping):
        return {
            name: leave_out(each, hides, (*path, str(name)))
            for name, each in value.items()
            if not hides((*path, str(name)))
        }
    if isinstance(value, list | tuple):
        return type(value)(leave_out(each, hides, (*path, number)) for number, each in enumerate(value))
    return hide_in(value)


def lookups_in(condition: Any) -> Iterator[str]:
    """Yield the left sides of the lookups in a ``Q``, a pair, or an expression such as ``Case``, at any depth."""
    if isinstance(condition, tuple) and len(condition) == 2:
        yield str(condition[0])
        yield from lookups_in(condition[1])
        return
    for child in getattr(condition, "children", ()):
        yield from lookups_in(child)
    if isinstance(condition, Expression):
        for source in condition.get_source_expressions():
            yield from lookups_in(source)
