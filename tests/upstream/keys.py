"""The keys of upstream's models: a rule, and the models that it does not fit.

The rule: the primary key holds the object's own; ``gs1`` lists all objects of the model by it; each reference has an
index by which a related manager finds its objects.
"""

from __future__ import annotations

from typing import Any

from dynamo_single import models
from dynamo_single.orm.model.metaclass import ModelMeta
from dynamo_single.orm.schema import registry
from tests.upstream.catalogue import INDEXES

#: Options of ``Meta`` that only an SQL database follows, or that this app decides.
SQL_OPTIONS = {
    "base_manager_name",
    "db_table",
    "db_table_comment",
    "db_tablespace",
    "indexes",
    "managed",
    "required_db_features",
    "required_db_vendor",
    "select_on_save",
}
#: ``{model of edges: (one model, the other, the names of its references)}``, of the relations declared so far.
EDGES: dict[str, tuple[Any, Any, Any]] = {}


def convert_meta(name: str, namespace: dict[str, Any]) -> None:
    """Remove SQL options from ``Meta``, and give the second of two models with the same name its own item type."""
    meta = namespace.get("Meta")
    kept = {} if meta is None else {n: v for n, v in vars(meta).items() if n not in SQL_OPTIONS}
    kept = {n: v for n, v in kept.items() if n not in ("__dict__", "__weakref__")}
    if name == "Session" or any(model._options.item_type == name for model in registry.all_models()):
        kept["item_type"] = f"{namespace['__module__'].partition('.')[0]}.{name}"
    if meta is not None or kept:
        namespace["Meta"] = type("Meta", meta.__bases__ if meta else (), kept)


def declare(name: str, bases: tuple[type, ...], namespace: dict[str, Any], automatic: Any) -> None:
    """Give a concrete model its identifier and its keys."""
    meta = namespace.get("Meta")
    if getattr(meta, "abstract", False) or getattr(meta, "proxy", False) or "Keys" in namespace:
        return
    attributes = {**_inherited(bases), **{n: v for n, v in namespace.items() if isinstance(v, models.Attribute)}}
    identity = next((n for n, v in attributes.items() if getattr(v, "is_primary_key", False)), None)
    if identity is None:
        identity = "id"
        namespace["id"] = attributes["id"] = automatic()
    stored = {n: f"{n}_id" if isinstance(v, models.ReferenceAttribute) else n for n, v in attributes.items()}
    label = f"{namespace['__module__'].partition('.')[0]}.{name}".upper()
    key = stored[identity]
    found: dict[str, Any] = {
        "primary": models.Key(f"{label}#{{{key}}}", "#METADATA"),
        "every": models.IndexKey(INDEXES[0], label, f"{{{key}}}"),
    }
    references = [n for n, v in attributes.items() if isinstance(v, models.ReferenceAttribute) and n != identity]
    if ends := _ends(name, attributes):
        # The pair of objects identifies an edge.
        near, far = (stored[end] for end in ends)
        found["primary"] = models.Key(f"{label}#{{{near}}}", f"{{{far}}}")
        found["every"] = models.IndexKey(INDEXES[0], label, f"{{{near}}}#{{{far}}}")
    for index, reference in zip(INDEXES[1:], references, strict=False):
        partition = f"{label}.{reference.upper()}#{{{stored[reference]}}}"
        found[f"by_{reference}"] = models.IndexKey(index, partition, f"{{{key}}}")
    namespace["Keys"] = type("Keys", (), found)


def _ends(name: str, attributes: dict[str, Any]) -> Any:
    """The two references of a model of edges; ``None`` for any other model."""
    if name not in EDGES:
        return None
    *models_of_ends, named = EDGES[name]
    if named:
        return named
    found: list[str] = []
    for model in models_of_ends:
        wanted = _short(model)
        found += [n for n, v in attributes.items() if n not in found and _refers(v, wanted)][:1]
    return found if len(found) == len(models_of_ends) else None


def _refers(attribute: Any, wanted: str) -> bool:
    # A part of a primary key is never missing.
    if not isinstance(attribute, models.ReferenceAttribute) or attribute.null:
        return False
    return _short(attribute.field_options["to"]) == wanted


def _short(model: Any) -> str:
    name: str = model.rpartition(".")[2] if isinstance(model, str) else model.__name__
    return name


def _inherited(bases: tuple[type, ...]) -> dict[str, Any]:
    """The attributes of abstract parents, by the names of their fields."""
    found: dict[str, Any] = {}
    for base in reversed(bases):
        if isinstance(base, ModelMeta):
            meta: Any = base._meta  # type: ignore[attr-defined]  # a model
            found |= {field.name: field.attribute for field in meta.local_fields if hasattr(field, "attribute")}
    return found
