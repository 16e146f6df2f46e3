"""The attribute that keeps a value which lies inside a map or a list a second time, where keys can name it.

DynamoDB indexes no nested values. This module must not know how or when items are written.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

from dynamo_single.exceptions import ConfigurationError, InvalidValue
from dynamo_single.orm.schema.attributes.base import Attribute, Label
from dynamo_single.orm.schema.attributes.following import FollowingAttribute
from dynamo_single.orm.schema.attributes.references import StandIn, StoredAgain
from dynamo_single.orm.schema.attributes.scalars import UnicodeAttribute
from dynamo_single.orm.schema.encoding.secrets import Path
from dynamo_single.orm.schema.encoding.words import words

#: A place inside a document: keys of maps, and numbers of lists' elements.
Steps = tuple[str | int, ...]


def steps_into(kind: str, names: Sequence[str]) -> Steps:
    """The steps into a map (``M``) or list (``L``), as ``filter()`` and ``update()`` name them.

    The first step into a map is a key, whatever it looks like; further numbers count elements.
    """
    counted = (name.isascii() and name.isdigit() and (number > 0 or kind == "L") for number, name in enumerate(names))
    return tuple(int(name) if is_number else name for name, is_number in zip(names, counted, strict=True))


def value_at(document: object, steps: Steps) -> Any:
    """What lies at a place of a document; ``None`` where nothing does."""
    found: Any = document
    for step in steps:
        if isinstance(found, list | tuple) and isinstance(step, int):
            found = found[step] if step < len(found) else None
        else:
            found = found.get(step) if isinstance(found, dict) and isinstance(step, str) else None
    return found


class ExtractedAttribute(FollowingAttribute, StoredAgain[Any]):
    """A value out of a document of the same model once more: ``author = ExtractedAttribute("data__author__lastname")``.

    It follows the document on every write path and is never set. It can stand in the keys of indexes and in unique
    rules, which nested values cannot (AWS: `key attributes are top-level attributes of type String, Number, or Binary
    <https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/HowItWorks.CoreComponents.html>`_). ``output`` is
    the attribute that it is stored as, a text unless given; a value of another kind is ``InvalidValue``. What the
    document does not have is not stored, and leaves the item out of indexes; ``null=False`` refuses such an object.

    An update of that place, or of a map that it is in, reads the object first: two requests; all other places of the
    document change by one.
    """

    made = "extracted"
    looked_up = ("steps", "target")

    def __init__(
        self,
        path: str,
        verbose_name: Label | None = None,
        *,
        output: Attribute | None = None,
        null: bool = True,
        unique: bool = False,
        help_text: Label = "",
        error_messages: dict[str, Any] | None = None,
        attr_name: str | None = None,
        secret: bool | None = None,
    ) -> None:
        if not isinstance(path, str):
            raise ConfigurationError(
                f"ExtractedAttribute({path!r}): the path is a text that names a place of a document, such as "
                "'data__author__lastname'."
            )
        if output is None:
            output = UnicodeAttribute()
        is_plain = isinstance(output, Attribute) and not (isinstance(output, StandIn) or output.computed)
        if not is_plain or output.document or output.field_options.get("auto_now") or output.settled:
            raise ConfigurationError(
                f"ExtractedAttribute({path!r}) is stored as one text, number, moment or truth value: output= takes an "
                "attribute for one, such as models.DecimalAttribute()."
            )
        self.path = path
        self.output = output
        super().__init__(
            verbose_name if verbose_name is not None else output.field_options["verbose_name"],
            null=null,
            blank=True,
            editable=False,
            unique=unique,
            canonical=output.canonical,
            help_text=help_text,
            error_messages=error_messages,
            attr_name=attr_name,
            secret=output.secret if secret is None else secret,
        )

    def origins(self) -> Iterator[tuple[Attribute, Path]]:
        """Yield the document with the place in it."""
        yield from ((document, self.steps) for document, _path in super().origins())

    def make_field(self) -> Any:
        """The field of what it is stored as, which no form asks for."""
        stored, own = self.output.copy(), self.field_options
        kept = ("null", "blank", "default", "editable", "unique", "verbose_name")
        given = {name: own[name] for name in ("help_text", "error_messages") if own[name]}
        stored.field_options = {**stored.field_options, **{name: own[name] for name in kept}, **given}
        field: Any = stored.make_field()
        field.serialize = False
        return field

    @property
    def origin(self) -> str:  # type: ignore[override]  # a plain attribute elsewhere
        """What it is extracted from, for messages."""
        return self.path

    @property
    def source(self) -> str:  # type: ignore[override]  # a plain attribute elsewhere
        """The attribute that holds the document."""
        return self.path.partition("__")[0]

    @cached_property
    def steps(self) -> Steps:
        """The place inside the document."""
        names = self.path.split("__")[1:]
        document: Attribute | None = getattr(self.field.model, self.source, None)
        return steps_into("L" if document is not None and document.attr_type == "L" else "M", names)

    @cached_property
    def target(self) -> Attribute:
        """What it is stored as, under this one's name."""
        return self.under_own_name(self.output)

    def current(self, values: Mapping[str, object]) -> Any:
        """What lies at the place now, in its stored Python form; ``None`` where nothing does.

        Raises ``InvalidValue`` for a value of another kind.
        """
        return self.prepare(value_at(values.get(self.source), self.steps))

    @property
    def expects(self) -> str:  # type: ignore[override]  # see attr_type
        """What messages say that it takes."""
        return f"{self.target.expects} at {self.path}"

    def prepare(self, value: object) -> Any:
        """As what it is stored as does; a value of another kind is named by its place."""
        try:
            return super().prepare(value)
        except InvalidValue as error:
            said = words("%(path)s: %(text)s", path=self.path, text=error.in_words())
            raise InvalidValue(f"{error} It is extracted from {self.path}.", words=said) from error
