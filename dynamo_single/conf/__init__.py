"""The app's settings: one validated, immutable value for each alias of ``DYNAMO_SINGLE``.

An alias is a URL or a dict; both become the same ``TableSettings``. This module depends only on Django's
settings: it is independent of tables, clients and models. A wrong value raises a ``ConfigurationError`` that names the
setting.
"""

from __future__ import annotations

import ipaddress
import os
import re
from collections.abc import Callable, Iterable, Mapping
from functools import cache, partial
from typing import Any, Final, Literal, NoReturn, cast, get_args
from urllib.parse import parse_qsl, unquote, urlsplit

from django.conf import ENVIRONMENT_VARIABLE
from django.conf import settings as django_settings
from django.core.signals import setting_changed
from msgspec import Struct
from msgspec.structs import replace

from dynamo_single.conf.shapes import DEFAULT_INDEXES as DEFAULT_INDEXES
from dynamo_single.conf.shapes import MAX_INDEXES as MAX_INDEXES
from dynamo_single.conf.shapes import OWN, KeyForm, Shape, shape_of
from dynamo_single.conf.shapes import READERS as SHAPE_READERS
from dynamo_single.exceptions import ConfigurationError
from dynamo_single.setting_values import (
    ABOVE_ZERO,
    BOOLEAN,
    ENDPOINT,
    POSITIVE,
    SECONDS,
    Reader,
    at_least,
    check_keys,
    or_none,
    read_values,
)

BillingMode = Literal["PAY_PER_REQUEST", "PROVISIONED"]
Transport = Literal["direct", "botocore"]
#: On access to a related object: read it for this object, for its peers too, or raise an error.
FetchModeName = Literal["one", "peers", "raise"]
FETCH_MODES: Final = get_args(FetchModeName)
#: Whether to read from the table which migrations have been applied to its items.
Migrations = Literal["check", "trust"]

SCHEME = "dynamodb"
LOCAL_REGION = "us-east-1"

#: Common names of settings packages, which do not identify a project.
GENERIC_PACKAGES = frozenset({"app", "backend", "config", "conf", "core", "django_project", "settings", "site", "src"})

#: Functions that return the users of an alias, for messages.
_ASKING: Final[list[Callable[[str], Iterable[str]]]] = []
_OWNER = re.compile(r"[A-Za-z0-9_.-]{1,64}")
_TABLE_NAME = re.compile(r"[A-Za-z0-9_.-]{3,255}")
_REGION = re.compile(r"[a-z0-9-]+")
#: An alias that has a companion, whose keys contain its name.
_ALIAS = re.compile(r"[A-Za-z0-9_.-]{1,64}")
#: The beginning of the partition keys of a companion's items that are about another table, before its alias.
COMPANION_PREFIX: Final = "COMPANION#"


class TableSettings(Struct, frozen=True, cache_hash=True):
    """The settings of one table: its place, its name and its options. Timeouts are in seconds."""

    alias: str
    table_name: str
    region: str = LOCAL_REGION
    endpoint_url: str | None = None
    shape: Shape = OWN
    billing_mode: BillingMode = "PAY_PER_REQUEST"
    read_capacity: int | None = None
    write_capacity: int | None = None
    connect_timeout: float = 2.0
    read_timeout: float = 10.0
    total_timeout: float = 15.0
    max_attempts: int = 3
    max_pool_connections: int = 20
    consumed_capacity: bool = True
    parallel_reads: int = 8
    transport: Transport = "direct"
    migrations: Migrations = "check"
    owner: str = ""
    owns: bool = True
    companion: str = ""

    @property
    def keeps_own_items(self) -> bool:
        """Whether the app can store its own items about this table, here or in the companion."""
        return self.is_own_place or bool(self.companion)

    @property
    def is_own_place(self) -> bool:
        """Whether the table itself can store the app's own items: keys that are numbers or binary cannot be theirs."""
        return self.owns and all(key.type == "S" for key in self.shape.keys)

    @property
    def without_own_items(self) -> str:
        """The reason why the table itself cannot store the app's own items, for messages."""
        if not self.owns:
            return f"DYNAMO_SINGLE[{self.alias!r}]['OWNS'] is False"
        return f"the key of the table {self.table_name!r} is a number or binary"

    @property
    def own_prefix(self) -> str:
        """The prefix of the partition keys of the app's own items about this table.

        A table with ``OWNS = False`` contains only items of models; its companion contains the app's own items.
        Raises ``ConfigurationError`` if the companion is missing.
        """
        if self.is_own_place:
            return ""
        if not self.companion:
            needed = "" if not self.owns else f"DYNAMO_SINGLE[{self.alias!r}]['OWNS'] to False and "
            raise ConfigurationError(
                f"Cannot store items of the app about the table {self.table_name!r}, because "
                f"{self.without_own_items}. Nothing was written. Set {needed}"
                f"DYNAMO_SINGLE[{self.alias!r}]['COMPANION'] to the alias of a table of your own."
            )
        return f"{COMPANION_PREFIX}{self.alias}#"

    @property
    def indexes(self) -> tuple[str, ...]:
        """The names of the table's indexes by which models use them."""
        return self.shape.index_names

    @property
    def key(self) -> KeyForm:
        """``"id"`` if the table's only key is the identifier of records, otherwise ``"pk"``."""
        return "id" if self.shape.by_prefix else "pk"

    @property
    def is_local(self) -> bool:
        """Whether the endpoint is on this machine's loopback address."""
        return self.endpoint_url is not None and _is_loopback(urlsplit(self.endpoint_url).hostname or "")

    @property
    def place(self) -> str:
        """The location of the table, for messages: the endpoint, or AWS and its region."""
        return self.endpoint_url or f"AWS {self.region}"

    def command(self, line: str) -> str:
        """The line that runs a command of ours for this table, for messages; ``--alias`` only where it is needed."""
        return f"manage.py {line}" if self.alias == "default" else f"manage.py {line} --alias {self.alias}"


class CostSettings(Struct, frozen=True):
    """``DYNAMO_SINGLE_COSTS``: the costs of an HTTP request or query above which the app warns; ``None`` disables it.

    ``max_reads`` is the most items that one query may read and discard; ``sets_max_reads`` is set if the project sets
    it.
    """

    warn_requests: int | None = 50
    warn_units: float | None = None
    warn_milliseconds: float | None = None
    warn_repeated: int | None = 2
    warn_single_reads: int | None = 10
    warn_reads: int | None = 1000
    max_reads: int | None = None
    sets_max_reads: bool = False
    show_keys: bool = True
    admin_panel: bool = False


@cache
def cost_settings() -> CostSettings:
    """Return ``DYNAMO_SINGLE_COSTS`` or the defaults; cached until a test changes the setting."""
    declared = getattr(django_settings, "DYNAMO_SINGLE_COSTS", {})
    if not isinstance(declared, Mapping):
        raise ConfigurationError(f"DYNAMO_SINGLE_COSTS must be a dict, not {type(declared).__name__}.")
    values = read_values(declared, _COST_READERS, "DYNAMO_SINGLE_COSTS[{!r}]".format)
    return CostSettings(**values, sets_max_reads="MAX_READS" in declared)


@cache
def default_fetch_mode() -> FetchModeName:
    """Return ``DYNAMO_SINGLE_FETCH_MODE`` or ``"one"``; cached until a test changes the setting."""
    found = getattr(django_settings, "DYNAMO_SINGLE_FETCH_MODE", "one")
    if found not in FETCH_MODES:
        raise ConfigurationError(f"DYNAMO_SINGLE_FETCH_MODE must be one of {', '.join(map(repr, FETCH_MODES))}.")
    return cast(FetchModeName, found)


def engine_setting() -> str | None:
    """Return ``DYNAMO_SINGLE_ENGINE``: the name or path of the local engine; ``None`` if the best one is used."""
    found = getattr(django_settings, "DYNAMO_SINGLE_ENGINE", None)
    if found is None or (isinstance(found, str) and found):
        return found
    raise ConfigurationError(
        f"DYNAMO_SINGLE_ENGINE must be None, 'dynoxide', 'dynamodb-local' or the path of an engine, not {found!r}."
    )


@cache
def sql_transactions() -> str:
    """Return ``DYNAMO_SINGLE_SQL_TRANSACTIONS`` or ``"warn"``; cached until a test changes the setting."""
    found = getattr(django_settings, "DYNAMO_SINGLE_SQL_TRANSACTIONS", "warn")
    if found not in ("warn", "error"):
        raise ConfigurationError("DYNAMO_SINGLE_SQL_TRANSACTIONS must be 'warn' or 'error'.")
    return str(found)


def table_settings(alias: str = "default") -> TableSettings:
    """Return the settings of one alias; cached until a test changes ``DYNAMO_SINGLE``."""
    return _read(alias)


def own_alias(alias: str = "default") -> str:
    """Return the alias of the table that stores the app's own models, such as sessions, instead of ``alias``.

    For a table with ``OWNS = False``, it is the companion. Raises ``ConfigurationError`` if the companion is missing.
    """
    found = table_settings(alias)
    return found.companion if found.own_prefix else alias


def alias_of_own_models() -> str:
    """Return ``own_alias()``; ``"default"`` if the settings are invalid, which is reported when the app starts."""
    try:
        return own_alias()
    except ConfigurationError:
        return "default"


def tell_of(asking: Callable[[str], Iterable[str]]) -> None:
    """Register a function that returns the users of an alias, for the error about an unknown alias."""
    _ASKING.append(asking)


def aliases() -> tuple[str, ...]:
    """Return the aliases that ``DYNAMO_SINGLE`` declares."""
    return tuple(_declared())


@cache
def _read(alias: str) -> TableSettings:
    declared = _declared()
    if alias not in declared:
        known = ", ".join(map(repr, declared))
        raise ConfigurationError(
            f"DYNAMO_SINGLE has no alias {alias!r}{_asked_by(alias)}; it declares {known}. Add it, or name one of "
            "these."
        )
    found = parse(alias, declared[alias])
    if not found.owns:
        _check_adopted(found, declared)
    return found if found.owner else replace(found, owner=_project())


def _check_adopted(found: TableSettings, declared: Mapping[str, object]) -> None:
    """Raise for a table with ``OWNS = False`` that contradicts other aliases."""
    for other in (each for each in declared if each != found.alias):
        _refuse_pair(found, parse(other, declared[other]))
    if found.companion and (found.companion == found.alias or found.companion not in declared):
        others = ", ".join(repr(each) for each in declared if each != found.alias) or "none yet: add one"
        raise ConfigurationError(
            f"{_setting(found.alias, 'COMPANION')} is {found.companion!r}, which is no other alias of DYNAMO_SINGLE. "
            f"Name the alias of a table of your own; the other aliases are {others}."
        )


def _refuse_pair(found: TableSettings, other: TableSettings) -> None:
    """Raise for two aliases of one table that disagree about its owner, and for a companion that cannot be one.

    A transaction can write to tables of one account and region only (AWS API reference, TransactWriteItems). The
    credentials belong to the process, so that two tables at one endpoint and region have the same account.
    """
    is_same_place = (found.place, found.region) == (other.place, other.region)
    if is_same_place and found.table_name == other.table_name and not (found.owns and other.owns):
        raise ConfigurationError(
            f"DYNAMO_SINGLE[{found.alias!r}] and DYNAMO_SINGLE[{other.alias!r}] name the table {found.table_name!r}, "
            "and OWNS is False for it. A table that the app does not own has one alias: its name identifies what the "
            "companion stores about the table. Remove one of the two."
        )
    if found.companion != other.alias:
        return
    setting = f"{_setting(found.alias, 'COMPANION')} is {other.alias!r}"
    if not other.owns:
        raise ConfigurationError(f"{setting}, whose OWNS is False. Name the alias of a table of your own.")
    if not other.shape.is_own:
        raise ConfigurationError(
            f"{setting}, whose keys or indexes have other names than the app's. Name the alias of a table without KEY, "
            "PARTITION_KEY and the like."
        )
    if not is_same_place:
        raise ConfigurationError(
            f"{setting}, which is at {other.place} in {other.region}; {found.alias!r} is at {found.place} in "
            f"{found.region}. One transaction writes to both tables: they must have the same endpoint and region. Name "
            "the alias of a table there."
        )


def _asked_by(alias: str) -> str:
    labels = sorted(label for find in _ASKING for label in find(alias))
    shown = ", ".join(labels[:3]) + (f" and {len(labels) - 3} more" if labels[3:] else "")
    if alias == "default" and labels:
        return f", the table of {shown} as long as Meta.table names no other"
    return f", which Meta.table of {shown} names" if labels else ""


def _project() -> str:
    """Return the package of the settings module, unless its name is too common."""
    package = os.environ.get(ENVIRONMENT_VARIABLE, "").partition(".")[0]
    return "" if package in GENERIC_PACKAGES else package


def _declared() -> Mapping[str, object]:
    declared = getattr(django_settings, "DYNAMO_SINGLE", None)
    example = '{"default": "dynamodb://127.0.0.1:8001/single-table?region=us-east-1"}'
    if not declared:
        raise ConfigurationError(f"The setting DYNAMO_SINGLE is missing or empty; a working value is {example}.")
    if not isinstance(declared, Mapping) or not all(isinstance(name, str) for name in declared):
        raise ConfigurationError(f"DYNAMO_SINGLE must be a dict from alias to URL or dict, such as {example}.")
    return declared


@cache
def web_timeout() -> float | None:
    """Return ``DYNAMO_SINGLE_WEB_TIMEOUT``, by default 5 seconds; cached until a test changes the setting."""
    name = "DYNAMO_SINGLE_WEB_TIMEOUT"
    (found,) = read_values({name: getattr(django_settings, name, 5.0)}, {name: or_none(SECONDS)}, str).values()
    return cast(float | None, found)


#: The cached values, by the setting that they are read from.
_CACHED: Final = {
    "DYNAMO_SINGLE": _read,
    "DYNAMO_SINGLE_COSTS": cost_settings,
    "DYNAMO_SINGLE_FETCH_MODE": default_fetch_mode,
    "DYNAMO_SINGLE_SQL_TRANSACTIONS": sql_transactions,
    "DYNAMO_SINGLE_WEB_TIMEOUT": web_timeout,
}


def _forget(*, setting: str, **_: object) -> None:
    if setting in _CACHED:
        _CACHED[setting].cache_clear()


setting_changed.connect(_forget, dispatch_uid="dynamo_single.conf")


def parse(alias: str, value: object) -> TableSettings:
    """Return the settings of one alias from a URL or a dict. A pure function."""
    if isinstance(value, str):
        options = _options_of_url(alias, value)
    elif isinstance(value, Mapping):
        options = dict(value)
    else:
        raise ConfigurationError(
            f"DYNAMO_SINGLE[{alias!r}] must be a {SCHEME}:// URL or a dict, not {type(value).__name__}."
        )
    return _from_options(alias, options)


def _options_of_url(alias: str, url: str) -> dict[str, object]:
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        _wrong_url(alias, "the URL cannot be read: its host or its port is malformed.")
    if parts.scheme != SCHEME:
        given = f"not with {parts.scheme}" if parts.scheme else "but it is empty"
        _wrong_url(alias, f"the URL must begin with {SCHEME}://, {given}.")
    if parts.username or parts.password:
        _wrong_url(alias, "the URL holds credentials; leave them to the AWS environment variables, profile or role.")
    if parts.fragment:
        _wrong_url(alias, "the URL has a part after '#'.")
    options = _options_of_query(alias, parts.query)
    tls = options.pop("TLS", False)
    options["TABLE_NAME"] = unquote(parts.path.strip("/"))
    if parts.hostname:
        host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
        options["ENDPOINT_URL"] = f"{'https' if tls else 'http'}://{host}" + (f":{port}" if port else "")
    elif parts.netloc or tls:
        _wrong_url(alias, "a port or tls needs a host before it.")
    if not options["TABLE_NAME"]:
        _wrong_url(alias, "the URL does not name a table: the part after // is the host.")
    if "REGION" not in options and not _is_loopback(parts.hostname or ""):
        _wrong_url(
            alias, "the URL does not name a region, which is required for every endpoint other than a local engine."
        )
    return options


def _options_of_query(alias: str, query: str) -> dict[str, object]:
    options: dict[str, Any] = {}
    for name, text in parse_qsl(query, keep_blank_values=True):
        key = name.upper()
        if name != name.lower() or key not in _URL_OPTIONS:
            allowed = ", ".join(sorted(known.lower() for known in _URL_OPTIONS))
            _wrong_url(alias, f"unknown query parameter {name!r}; allowed are {allowed}.")
        if key in options:
            _wrong_url(alias, f"the URL gives {name!r} twice.")
        is_boolean = key in {"TLS", "CONSUMED_CAPACITY", "OWNS", "RAW_KEYS"}
        options[key] = _boolean_of_text(alias, name, text) if is_boolean else _value_of_text(key, text)
    return options


def _wrong_url(alias: str, why: str) -> NoReturn:
    # The message does not repeat the URL, which may contain a secret.
    raise ConfigurationError(
        f"DYNAMO_SINGLE[{alias!r}]: {why} The form is {SCHEME}://host:port/table-name?region=us-east-1, "
        f"or {SCHEME}:///table-name?region=eu-west-1 for AWS itself."
    )


def _boolean_of_text(alias: str, name: str, text: str) -> bool:
    if text in {"true", "false"}:
        return text == "true"
    raise ConfigurationError(f"DYNAMO_SINGLE[{alias!r}]: {name} must be true or false, not {text!r}.")


def _value_of_text(key: str, text: str) -> str | float | tuple[str, ...]:
    """Return a query parameter as in the dict form. An invalid number stays text, which the reader rejects."""
    if key == "INDEXES":
        return tuple(filter(None, text.split(",")))
    if key in {"CONNECT_TIMEOUT", "READ_TIMEOUT", "TOTAL_TIMEOUT"}:
        return float(text) if re.fullmatch(r"\d+(\.\d+)?", text) else text
    if key in {"READ_CAPACITY", "WRITE_CAPACITY", "MAX_ATTEMPTS", "MAX_POOL_CONNECTIONS", "PARALLEL_READS"}:
        return int(text) if re.fullmatch(r"\d{1,9}", text) else text
    return text


def _from_options(alias: str, options: Mapping[str, object]) -> TableSettings:
    called = partial(_setting, alias)
    check_keys(options, _READERS, called)
    if "TABLE_NAME" not in options:
        raise ConfigurationError(f"{called('TABLE_NAME')} is missing: name the table.")
    # The message does not repeat the address, which may contain a secret.
    values = read_values(options, _READERS, called, secret={"ENDPOINT_URL"})
    values["shape"] = shape_of(values, called)
    return _consistent(TableSettings(alias=alias, **values), region_given="region" in values)


def _consistent(found: TableSettings, *, region_given: bool) -> TableSettings:
    if not region_given and not found.is_local:
        raise ConfigurationError(f"{_setting(found.alias, 'REGION')} is missing: name the AWS region of the table.")
    if found.companion and (found.owns or not _ALIAS.fullmatch(found.alias)):
        why = (
            "has no effect while OWNS is True: leave it out, or set OWNS to False"
            if found.owns
            else "needs an alias of 1 to 64 letters, digits, '_', '.' or '-', because keys contain it: rename the alias"
        )
        raise ConfigurationError(f"{_setting(found.alias, 'COMPANION')} {why}.")
    for key, value in (("READ_CAPACITY", found.read_capacity), ("WRITE_CAPACITY", found.write_capacity)):
        if found.billing_mode == "PROVISIONED" and value is None:
            raise ConfigurationError(
                f"{_setting(found.alias, key)} is missing: BILLING_MODE 'PROVISIONED' needs READ_CAPACITY and "
                "WRITE_CAPACITY in units per second; 'PAY_PER_REQUEST' needs neither."
            )
        if found.billing_mode == "PAY_PER_REQUEST" and value is not None:
            raise ConfigurationError(
                f"{_setting(found.alias, key)} has no effect with BILLING_MODE 'PAY_PER_REQUEST': "
                "leave it out, or set BILLING_MODE to 'PROVISIONED'."
            )
    return found


def _setting(alias: str, key: object) -> str:
    return f"DYNAMO_SINGLE[{alias!r}][{key!r}]"


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _text(pattern: re.Pattern[str]) -> Callable[[object], str]:
    def read(value: object) -> str:
        if not isinstance(value, str) or not pattern.fullmatch(value):
            raise ValueError
        return value

    return read


def _one_of(*known: str) -> Reader:
    def read(value: object) -> str:
        if value not in known:
            raise ValueError
        return str(value)

    return read, " or ".join(map(repr, known))


_READERS: dict[str, Reader] = {
    "BILLING_MODE": _one_of("PAY_PER_REQUEST", "PROVISIONED"),
    "COMPANION": (_text(re.compile(r"(?s).+")), "an alias of DYNAMO_SINGLE"),
    "CONNECT_TIMEOUT": SECONDS,
    "CONSUMED_CAPACITY": BOOLEAN,
    "ENDPOINT_URL": ENDPOINT,
    "KEY": _one_of("pk", "id"),
    "MAX_ATTEMPTS": POSITIVE,
    "MAX_POOL_CONNECTIONS": POSITIVE,
    "MIGRATIONS": _one_of("check", "trust"),
    "OWNS": BOOLEAN,
    "OWNER": (_text(_OWNER), "1 to 64 letters, digits, '_', '.' or '-'"),
    "PARALLEL_READS": POSITIVE,
    "READ_CAPACITY": POSITIVE,
    "READ_TIMEOUT": SECONDS,
    "REGION": (_text(_REGION), "an AWS region such as 'eu-west-1'"),
    "TOTAL_TIMEOUT": SECONDS,
    "TABLE_NAME": (_text(_TABLE_NAME), "3 to 255 letters, digits, '_', '.' or '-'"),
    "TRANSPORT": _one_of("direct", "botocore"),
    "WRITE_CAPACITY": POSITIVE,
    **SHAPE_READERS,
}
_URL_OPTIONS = frozenset({"TLS", *_READERS} - {"TABLE_NAME", "ENDPOINT_URL"})
_COST_READERS: dict[str, Reader] = {
    "WARN_REQUESTS": or_none(POSITIVE),
    "WARN_UNITS": or_none(ABOVE_ZERO),
    "WARN_MILLISECONDS": or_none(ABOVE_ZERO),
    "WARN_REPEATED": or_none(at_least(2)),
    "WARN_SINGLE_READS": or_none(POSITIVE),
    "WARN_READS": or_none(POSITIVE),
    "MAX_READS": or_none(POSITIVE),
    "SHOW_KEYS": BOOLEAN,
    "ADMIN_PANEL": BOOLEAN,
}
