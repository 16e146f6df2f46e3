"""Write a proposal as Python: a dict of settings and a module of models.

Every name from the table passes through ``literal()``, in comments too, so no name can add a line of code.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from dynamo_single.contrib.inspection.keys import Template, Variable
from dynamo_single.contrib.inspection.names import literal
from dynamo_single.contrib.inspection.proposal import Proposal, ProposedAttribute, ProposedKey, ProposedModel

_WIDTH: Final = 118


def write(proposal: Proposal) -> str:
    """Return the source of the settings and of the module with the models."""
    return "\n".join((*settings(proposal), "", "", *module(proposal)))


def settings(proposal: Proposal) -> Iterator[str]:
    """Yield the lines of ``DYNAMO_SINGLE`` with one alias."""
    for line in (*proposal.head, "Add this alias to DYNAMO_SINGLE:"):
        yield from comment(line)
    yield "DYNAMO_SINGLE = {"
    yield f"    {literal(proposal.alias)}: {{"
    for name, value in proposal.settings.items():
        yield f'        "{name}": {value},'
    yield from comment('"COMPANION": "default", for unique values, shards and migrations', "        ")
    yield '        "INDEXES": {' if proposal.indexes else '        "INDEXES": {},'
    for name, index in proposal.indexes.items():
        entries = ", ".join(f'"{word}": {_value(value)}' for word, value in index.items())
        yield f'            "{name}": {{{entries}}},'
    if proposal.indexes:
        yield "        },"
    yield "    },"
    yield "}"


def _value(value: Any) -> str:
    if isinstance(value, str):
        return literal(value)
    if isinstance(value, list):
        return f"[{', '.join(map(literal, value))}]"
    return repr(value)


def module(proposal: Proposal) -> Iterator[str]:
    """Yield the lines of models.py."""
    yield "# models.py"
    yield "from dynamo_single import models"
    for each in proposal.maps:
        yield from ("", "", f"class {each.name}(models.MapAttribute):")
        for attribute in each.attributes:
            yield from _attribute(attribute)
    for model in proposal.models:
        yield ""
        yield ""
        yield from _model(model, proposal.alias)
    for note in proposal.notes:
        yield ""
        yield from comment(note)


def _model(model: ProposedModel, alias: str) -> Iterator[str]:
    yield f"class {model.name}(models.Model):"
    if model.count:
        yield from comment(f"{model.count} {'item' if model.count == 1 else 'items'} of the sample.", "    ")
    for note in model.notes:
        yield from comment(note, "    ")
    for attribute in model.attributes:
        yield from _attribute(attribute)
    yield ""
    yield "    class Keys:"
    yield f"        primary = models.Key({', '.join(_template(each, model.names) for each in model.primary)})"
    taken = {"primary", "shards"}
    for key in model.keys:
        name = key.name if key.name not in taken else f"{key.name}_key"
        taken.add(name)
        yield from _index_key(name, key, model.names)
    yield ""
    yield "    class Meta:"
    yield f"        table = {literal(alias)}"
    if model.item_type is not None and model.item_type != model.name:
        yield f"        item_type = {literal(model.item_type)}"


def _attribute(attribute: ProposedAttribute) -> Iterator[str]:
    if not attribute.kind:
        yield from comment(f"{literal(attribute.stored)}: {'; '.join(attribute.notes)}.", "    ")
        return
    options = dict(attribute.options)
    arguments = [literal(attribute.refers_to)] if attribute.refers_to else []
    own = f"{attribute.name}_id" if attribute.refers_to else attribute.name
    # The setting TTL_ATTRIBUTE has the stored name of a TTLAttribute.
    if attribute.stored != own and attribute.kind != "TTLAttribute":
        options["attr_name"] = literal(attribute.stored)
    arguments += [f"{name}={value}" for name, value in options.items()]
    kind = attribute.kind if attribute.is_local else f"models.{attribute.kind}"
    line = f"    {attribute.name} = {kind}({', '.join(arguments)})"
    yield from _noted(line, attribute.notes, "    ")


def _index_key(name: str, key: ProposedKey, names: Mapping[str, str]) -> Iterator[str]:
    arguments = [literal(key.index), *(_template(each, names) for each in key.templates)]
    yield from _noted(f"        {name} = models.IndexKey({', '.join(arguments)})", key.notes, "        ")


def _template(template: Template, names: Mapping[str, str]) -> str:
    return literal("".join(_part(part, names) for part in template))


def _part(part: str | Variable, names: Mapping[str, str]) -> str:
    if isinstance(part, str):
        return part.replace("{", "{{").replace("}", "}}")
    return f"{{{names[f'!{part.name}' if part.in_key_only else part.name]}}}"


def _noted(line: str, notes: Iterable[str], indent: str) -> Iterator[str]:
    """Yield a line with its notes: after the code if there is room, else above it."""
    text = "; ".join(notes)
    if not text:
        yield line
    elif len(line) + len(text) + 4 <= _WIDTH:
        yield f"{line}  # {_one_line(text)}"
    else:
        yield from comment(text, indent)
        yield line


def comment(text: str, indent: str = "") -> Iterator[str]:
    """Yield a sentence as lines of comments; unprintable characters are escaped."""
    line = ""
    for word in _one_line(text).split(" "):
        if line and len(indent) + len(line) + len(word) + 3 > _WIDTH:
            yield f"{indent}# {line}"
            line = ""
        line = f"{line} {word}" if line else word
    yield f"{indent}# {line}"


def _one_line(text: str) -> str:
    return "".join(each if each.isprintable() else each.encode("unicode_escape").decode() for each in text)
