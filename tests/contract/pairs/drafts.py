"""The models of a history as text, so that you can paste a failed one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from msgspec import Struct, field

#: The first lines of the text of models and of histories.
IMPORTS = """\
import datetime
from decimal import Decimal
from uuid import UUID
from django.db.models import Q
from dynamo_single import models
from tests.contract.pairs.acts import *
from tests.contract.pairs.readers import *
from tests.contract.pairs.writers import *
"""


#: The identifiers of things.
IDS = ("a", "b", "c", "d")
#: The bases of a record.
IN_RECORD = frozenset({"models.SoftDeleteModel", "models.TimestampedModel", "models.AuthoredModel"})


class Draft(Struct):
    """A model to declare; values are Python."""

    name: str
    primary: tuple[str, str]
    bases: list[str] = field(default_factory=lambda: ["models.Model"])
    attributes: dict[str, str] = field(default_factory=dict)
    keys: dict[str, str] = field(default_factory=dict)
    options: dict[str, str] = field(default_factory=dict)
    code: list[str] = field(default_factory=list)
    #: Arguments of the primary key in addition to its templates.
    divided: str = ""
    app_label: str = "catalog"

    @property
    def text(self) -> str:
        """The class."""
        bases = [base for base in dict.fromkeys(self.bases) if base != "models.Model" or len(self.bases) == 1]
        if "models.Record" in bases:  # which has these
            bases = [base for base in bases if base not in IN_RECORD]
        lines = [f"class {self.name}({', '.join(bases)}):"]
        lines += [f"    {name} = {value}" for name, value in self.attributes.items()]
        lines += [f"    {line}" for each in self.code for line in each.splitlines()]
        lines += ["    class Keys:"]
        if self.primary != ("", ""):
            lines += [f"        primary = models.Key({self.primary[0]!r}, {self.primary[1]!r}{self.divided})"]
        lines += [f"        {name} = {value}" for name, value in self.keys.items()]
        lines += ["    class Meta:", f"        app_label = {self.app_label!r}"]
        lines += [f"        {name} = {value}" for name, value in self.options.items()]
        return "\n".join(lines)


class Reference(Struct):
    """A reference of things to owners, which several capabilities have in common."""

    name: str
    on_delete: str = ""
    checked: bool = False

    @property
    def attname(self) -> str:
        """The attribute of the ``pk``."""
        return f"{self.name}_id"

    def declared(self, *, null: bool) -> str:
        """The attribute."""
        options = [
            "Owner",
            *(["null=True"] if null else []),
            f"on_delete=models.{self.on_delete or 'DO_NOTHING'}",
            *(["default='other'"] if self.on_delete == "SET_DEFAULT" else []),
            *(["checked=True"] if self.checked else []),
            f"related_name='{self.name}_things'",
        ]
        return f"models.ReferenceAttribute({', '.join(options)})"


class Family(Struct):
    """The models of a history: things, referenced objects and dependents."""

    thing: Draft
    owner: Draft
    references: dict[str, Reference] = field(default_factory=dict)
    #: Declarations before things and after them.
    before: list[Draft] = field(default_factory=list)
    after: list[Draft] = field(default_factory=list)
    #: The attributes of the identity.
    identity: tuple[str, ...] = ("thing_id",)
    #: The name of the identifier.
    id_name: str = "thing_id"
    #: Things are in their owner's partition.
    nested: bool = False
    #: Referenced objects have a trash.
    parents_soft: bool = False
    #: Owners that are there from the beginning, and stay.
    owners: list[str] = field(default_factory=list)
    #: Lines of a history before its first write.
    begin: list[str] = field(default_factory=list)
    #: The compared attributes.
    shown: list[str] = field(default_factory=lambda: ["note"])
    taken: set[str] = field(default_factory=set)

    @classmethod
    def plain(cls) -> Family:
        """Things that are nothing in particular: an identity, a note, and a list."""
        thing = Draft("Thing", ("THING#{thing_id}", "#METADATA"))
        thing.attributes = {
            "thing_id": "models.UnicodeAttribute()",
            "note": "models.UnicodeAttribute(default='')",
        }
        owner = Draft("Owner", ("OWNER#{owner_id}", "#METADATA"))
        owner.attributes = {"owner_id": "models.UnicodeAttribute()", "name": "models.UnicodeAttribute(default='')"}
        family = cls(thing, owner)
        thing.keys["listed"] = f"models.IndexKey('{family.index()}', 'THINGS', '{{note}}#{{thing_id}}')"
        return family

    def index(self) -> str:
        """An index that no key of things is on."""
        found = next(name for name in ("gs1", "gs2", "gs3", "gs4") if name not in self.taken)
        self.taken.add(found)
        return found

    def reference(self, *, on_delete: str = "", checked: bool = False) -> Reference:
        """Return the shared reference of capabilities; another one if it has a different ``on_delete``."""
        for name in ("owner", "patron"):
            if name not in self.references:
                self.references[name] = Reference(name)
                if not (self.nested and name == "owner"):
                    key = f"models.IndexKey('{self.index()}', '{name.upper()}#{{{name}_id}}', '{{thing_id}}')"
                    self.thing.keys[f"by_{name}"] = key
                self.shown.append(f"{name}_id")
            found = self.references[name]
            if not on_delete or not found.on_delete:
                break
        found.on_delete = on_delete or found.on_delete
        found.checked = found.checked or checked
        return found

    def pk_of(self, values: dict[str, Any]) -> str:
        """The identity of an object with these values."""
        return "~~".join(values[name] for name in self.identity)

    @property
    def soft(self) -> bool:
        """Return whether things have a trash."""
        return any(base in ("models.SoftDeleteModel", "models.Record") for base in self.thing.bases)

    @property
    def ids(self) -> list[str]:
        """Return the possible identifiers of a thing."""
        return [f"thing-{name}" if self.id_name == "id" else name for name in IDS]

    @property
    def drafts(self) -> Iterator[Draft]:
        """All models in the order of their declaration."""
        if self.references:
            yield self.owner
        yield from self.before
        yield self.thing
        yield from self.after

    @property
    def text(self) -> str:
        """All of them."""
        for name, reference in self.references.items():
            null = not (self.nested and name == "owner")
            self.thing.attributes = {name: reference.declared(null=null), **self.thing.attributes}
        for draft in (self.owner, *self.before) if self.parents_soft else ():
            draft.bases.append("models.SoftDeleteModel")
        written = [draft.text for draft in self.drafts]
        own = self.thing.text
        renamed = own.replace("{thing_id}", f"{{{self.id_name}}}").replace("'thing_id'", f"'{self.id_name}'")
        return "\n\n".join(renamed if text == own else text for text in written)
