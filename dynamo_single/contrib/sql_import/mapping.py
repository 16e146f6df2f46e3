"""Map tables to models, and columns to attributes.

Without ``--map``, names decide: the label of a model, the name of a field or column. A column without an attribute and
a required attribute without a column are errors. This module does not read rows or send requests.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, Final, Literal

from django.contrib.auth import get_user_model
from msgspec import Struct, field

from dynamo_single.auth import Groups
from dynamo_single.backend.errors import is_stored_in_dynamodb
from dynamo_single.contrib.sql_import import introspected
from dynamo_single.contrib.sql_import.maps import Maps
from dynamo_single.contrib.sql_import.tables import Column, Link, SourceTable
from dynamo_single.exceptions import ConfigurationError
from dynamo_single.models import ManyToMany
from dynamo_single.orm.schema import registry, secrecy
from dynamo_single.orm.schema.attributes import Attribute, VersionAttribute
from dynamo_single.permission_fields import PermissionsAttribute

#: Django's tables of permissions and content types.
PERMISSIONS: Final = "auth_permission"
CONTENT_TYPES: Final = "django_content_type"
_GROUPS: Final = "auth_group"
_USERS: Final = "auth_user"

#: The maximum number of problems in an error message.
_MAX_PROBLEMS: Final = 20

#: The conversion of a column: its value, the ``pk`` of the referenced object, or the label of a content type.
Kind = Literal["value", "reference", "label"]


class Feed(Struct, frozen=True, eq=False):
    """An attribute with the source of its values: a column or a many-to-many relation."""

    attribute: Attribute
    column: Column | None = None
    link: Link | None = None
    kind: Kind = "value"

    @property
    def name(self) -> str:
        """The attribute's name."""
        name: str = self.attribute.name
        return name


class Import(Struct, eq=False):
    """A table and the model of its objects."""

    source: SourceTable
    model: Any
    feeds: list[Feed] = field(default_factory=list)

    @property
    def identity_feeds(self) -> list[Feed]:
        """The feeds of the attributes of the primary key."""
        return [feed for feed in self.feeds if feed.name in self.model._identity]

    @property
    def is_secret(self) -> bool:
        """Whether the rows' primary key is a secret of the model."""
        keys = {feed.name for feed in self.feeds if feed.column is not None and feed.column.name in self.source.pk}
        return any(secrecy.is_secret(self.model, name) for name in keys)


class Plan(Struct, frozen=True, eq=False):
    """The imports, referenced models first, and the omitted tables."""

    imports: Sequence[Import]
    left_out: Sequence[SourceTable]

    def of_table(self, table: str) -> Import | None:
        """Return the import of a table, by its name in the database."""
        return next((each for each in self.imports if each.source.table == table), None)


def plan(tables: Sequence[SourceTable], maps: Iterable[str], *, is_introspected: bool) -> Plan:
    """Return the plan; raise ``ConfigurationError`` with all problems.

    The plan omits introspected tables without a model. A declared model without one is an error.
    """
    return _Planner(tables, Maps.of(maps, tables), is_introspected=is_introspected).plan()


class _Planner:
    def __init__(self, tables: Sequence[SourceTable], maps: Maps, *, is_introspected: bool) -> None:
        self.tables = tables
        self.maps = maps
        self.is_introspected = is_introspected
        self.problems: list[str] = []

    def plan(self) -> Plan:
        targets = {source: model for source in self.tables if (model := self._target(source)) is not None}
        self._add_edges(targets)
        self._add_links(targets)
        linked = {link.through for source in targets for link in source.links.values()}
        left_out = [source for source in self.tables if source not in targets and source not in linked]
        if not self.is_introspected:
            self.problems += [
                f"{source.label} has no model. Name a model with --map {source.label}=app.Model, or omit the rows with "
                f"--map {source.label}="
                for source in left_out
                if not self._is_omitted(source) and not self._stays_in_sql(source)
            ]
        imports = [Import(source, model) for source, model in targets.items()]
        by_table = {each.source.table: each for each in imports}
        for each in imports:
            self._feed(each, by_table)
        if self.problems:
            more = [f"and {len(self.problems) - _MAX_PROBLEMS} more"] if len(self.problems) > _MAX_PROBLEMS else []
            raise ConfigurationError(
                "\n  ".join(["Cannot import the rows. Nothing was written.", *self.problems[:_MAX_PROBLEMS], *more])
            )
        if not imports:
            raise ConfigurationError("No table has the name of a model. Name models with --map table=app.Model.")
        return Plan(_by_dependency(imports), left_out)

    # models

    @cached_property
    def _models(self) -> dict[str, Any]:
        """The models by lower-case label, without models of derived objects."""
        models: list[Any] = [each for each in registry.all_models() if not each.derived_by]
        return {each._meta.label_lower: each for each in models if not each._meta.proxy}

    def _target(self, source: SourceTable) -> Any:
        """Return the model of a table's rows; ``None`` for edges of many-to-many relations."""
        mapped = self.maps.models.get(source)
        if mapped is not None:
            if mapped and mapped.lower() not in self._models:
                self.problems.append(f"--map {source.label}={mapped}: no model in DynamoDB has this label")
            return self._models.get(mapped.lower())
        if self._is_omitted(source):
            return None
        by_table = {f"{each._meta.app_label}_{each._meta.model_name}": each for each in self._models.values()}
        found = by_table.get(source.table) if self.is_introspected else self._models.get(source.label.lower())
        if found is None and (source.is_user or source.table == _USERS):
            found = self._user_model
        if found is None and source.table == _GROUPS:
            found = self._group_model
        return found

    @cached_property
    def _user_model(self) -> Any:
        model = get_user_model()
        return model if is_stored_in_dynamodb(model) else None

    @cached_property
    def _group_model(self) -> Any:
        return next((each.related_model for each in _kept(self._user_model) if isinstance(each, Groups)), None)

    def _is_omitted(self, source: SourceTable) -> bool:
        """Return whether ``--map`` names a table, its relation or the omitted owner of its relation."""
        return source in self.maps.models or any(
            self.maps.models.get(owner) == "" or (owner, link.name) in self.maps.columns
            for owner in self.tables
            for link in owner.links.values()
            if link.through is source
        )

    def _stays_in_sql(self, source: SourceTable) -> bool:
        """Return whether a table contains users or groups, and the project has no such model in DynamoDB."""
        return (source.is_user and self._user_model is None) or (source.table == _GROUPS and self._group_model is None)

    # many-to-many relations

    def _add_edges(self, targets: dict[SourceTable, Any]) -> None:
        """Add the tables of relations that are a ``ManyToMany`` in DynamoDB."""
        for source, model in [*targets.items()]:
            for each in model._meta.local_many_to_many:
                edges = self._edges(source, each) if isinstance(each, ManyToMany) and each not in _kept(model) else None
                if edges is not None and not self._is_omitted(edges):
                    targets.setdefault(edges, each.remote_field.through)

    def _edges(self, source: SourceTable, relation: Any) -> SourceTable | None:
        if relation.name in source.links:
            return source.links[relation.name].through
        name = f"{source.table}_{relation.name}"
        return next((each for each in self.tables if self.is_introspected and each.table == name), None)

    def _add_links(self, targets: dict[SourceTable, Any]) -> None:
        """Find the introspected relations of users and groups, and remove links whose edges are objects."""
        by_table = {each.table: each for each in self.tables}
        for source, model in targets.items():
            if self.is_introspected:
                names = {each.name: _GROUPS for each in _kept(model) if isinstance(each, Groups)}
                names |= (
                    dict.fromkeys(["user_permissions", "permissions"], PERMISSIONS) if _permissions_of(model) else {}
                )
                for name, far in names.items():
                    through = by_table.get(f"{source.table}_{name}")
                    link = None if through is None else introspected.link_of(source, name, through, by_table.get(far))
                    if link is not None:
                        source.links[name] = link
        for source in targets:
            source.links = {
                name: link
                for name, link in source.links.items()
                if link.through not in targets and link.through not in self.maps.models
            }

    # attributes

    def _feed(self, each: Import, by_table: Mapping[str, Import]) -> None:
        attributes = {
            name: attribute
            for name, attribute in registry.attributes_of(each.model).items()
            if not attribute.computed and not isinstance(attribute, VersionAttribute)
        }
        left = []
        for column in each.source.columns.values():
            for attribute in self._attributes_for(each, column, attributes):
                if attribute is None:
                    left.append(column)
                else:
                    each.feeds.append(self._column_feed(each, attribute, column, by_table))
        for link in each.source.links.values():
            self._feed_link(each, link, attributes)
        self._feed_key(each, left, attributes, by_table)
        computed = {name for name, found in registry.attributes_of(each.model).items() if found.computed} | {
            name for name, found in registry.attributes_of(each.model).items() if isinstance(found, VersionAttribute)
        }
        self.problems += [
            f"{each.source.label}.{column.name} has no attribute in {each.model._meta.label}. Name an attribute "
            f"with --map {each.source.label}.{column.name}=attribute, or omit the values with "
            f"--map {each.source.label}.{column.name}="
            for column in left
            if not computed & {column.name, *column.names}
        ]
        self.problems += [
            f"{each.model._meta.label}.{name} is required and gets no value: name the column with "
            f"--map {each.source.label}.column={name}, or give the attribute null=True or a default"
            for name in _unfed(each, attributes)
        ]

    def _attributes_for(
        self, each: Import, column: Column, attributes: Mapping[str, Attribute]
    ) -> Iterator[Attribute | None]:
        """Yield the attributes that a column feeds, or ``None`` if it has no attribute."""
        mapped = self.maps.columns.get((each.source, column.name))
        ends = self._ends(each)
        names = mapped if mapped is not None else [ends[column.name]] if column.name in ends else column.names
        found = [attribute for name in names if (attribute := _attribute(attributes, name)) is not None]
        if mapped is None:
            yield found[0] if found else None
            return
        yield from found
        self.problems += [
            f"--map {each.source.label}.{column.name}={name}: {each.model._meta.label} has no such attribute that can "
            "be set"
            for name in mapped
            if _attribute(attributes, name) is None
        ]

    def _ends(self, each: Import) -> dict[str, str]:
        """Return the reference for each of the two columns of an edge whose names differ."""
        if each.source.ends is None:
            return {}
        for model in self._models.values():
            for relation in model._meta.local_many_to_many:
                if relation.remote_field.through is each.model:
                    options = each.model._meta
                    names = (relation.m2m_field_name(), relation.m2m_reverse_field_name())
                    near, far = (options.get_field(name).attname for name in names)
                    known = {name for column in each.source.columns.values() for name in column.names}
                    return {} if {near, far} <= known else dict(zip(each.source.ends, (near, far), strict=True))
        return {}

    def _column_feed(self, each: Import, attribute: Attribute, column: Column, by_table: Mapping[str, Import]) -> Feed:
        kind: Kind = "value"
        column = self._referring(each, attribute, column, by_table)
        if column.refers is not None and column.refers.table == CONTENT_TYPES:
            kind = "label"
        elif column.refers is not None and column.refers.table in by_table:
            kind = "reference"
        elif self.is_introspected and attribute.field.get_internal_type() in introspected.CONVERTED:
            # Databases have no types for some of Django's: SQLite stores a duration as an integer.
            column = each.source.read_as(column.name, introspected.field_of(attribute.field.get_internal_type()))
        return Feed(attribute, column, kind=kind)

    def _referring(self, each: Import, attribute: Attribute, column: Column, by_table: Mapping[str, Import]) -> Column:
        """Return the column of a reference with the table of its model, even if the database has no foreign key."""
        if column.refers is None and attribute.field.is_relation:
            referenced = [other for other in by_table.values() if other.model is attribute.field.related_model]
            if len(referenced) == 1:
                return each.source.refer(column.name, referenced[0].source)
        return column

    def _feed_link(self, each: Import, link: Link, attributes: Mapping[str, Attribute]) -> None:
        mapped = self.maps.columns.get((each.source, link.name))
        if mapped is not None:
            found = [(name, _attribute(attributes, name)) for name in mapped]
            each.feeds += [Feed(attribute, link=link) for _, attribute in found if attribute is not None]
            self.problems += [
                f"--map {each.source.label}.{link.name}={name}: {each.model._meta.label} has no such attribute"
                for name, attribute in found
                if attribute is None
            ]
            return
        far = link.through.columns[link.far].refers
        names = [relation.kept_in for relation in _kept(each.model) if relation.name == link.name]
        names += _permissions_of(each.model) if far is not None and far.table == PERMISSIONS else []
        attribute = next((attributes[name] for name in names if name in attributes), None)
        if attribute is None:
            self.problems.append(
                f"{each.source.label}.{link.name} has no ManyToMany of this name in {each.model._meta.label}. "
                f"Declare it, name a set with --map {each.source.label}.{link.name}=attribute, or omit it with "
                f"--map {each.source.label}.{link.name}="
            )
            return
        each.feeds.append(Feed(attribute, link=link))

    def _feed_key(
        self,
        each: Import,
        left: list[Column],
        attributes: Mapping[str, Attribute],
        by_table: Mapping[str, Import],
    ) -> None:
        """Feed a single identity attribute from the primary key. Drop the column if other columns feed the identity."""
        key = [column for column in left if column.name in each.source.pk]
        fed = {feed.name for feed in each.feeds}
        missing = [name for name in each.model._identity if name not in fed]
        if len(key) == 1 and missing == [*each.model._identity] and len(missing) == 1:
            each.feeds.append(self._column_feed(each, attributes[missing[0]], key[0], by_table))
            missing = []
        if not missing:
            left[:] = [column for column in left if column not in key]


def _attribute(attributes: Mapping[str, Attribute], name: str) -> Attribute | None:
    if name in attributes:
        return attributes[name]
    return next((each for each in attributes.values() if each.field.name == name), None)


def _unfed(each: Import, attributes: Mapping[str, Attribute]) -> list[str]:
    fed = {feed.name for feed in each.feeds}
    return [
        name
        for name, attribute in attributes.items()
        if name not in fed and (name in each.model._identity or _is_required(attribute))
    ]


def _is_required(attribute: Attribute) -> bool:
    return not (attribute.null or attribute.field.has_default() or sets_itself(attribute))


def sets_itself(attribute: Attribute) -> bool:
    """Return whether a new object gets the current time."""
    options = attribute.field_options
    return bool(options.get("auto_now") or options.get("auto_now_add"))


def _kept(model: Any) -> list[Any]:
    """Return the many-to-many relations whose keys a set of the model contains."""
    return [] if model is None else [each for each in model._meta.many_to_many if hasattr(each, "kept_in")]


def _permissions_of(model: Any) -> list[str]:
    found = registry.attributes_of(model).items()
    return [name for name, attribute in found if isinstance(attribute, PermissionsAttribute)]


def _by_dependency(imports: Sequence[Import]) -> list[Import]:
    """Return the imports, referenced models first; a cycle keeps its order."""
    by_model: dict[Any, list[Import]] = {}
    for each in imports:
        by_model.setdefault(each.model, []).append(each)
    ordered: dict[int, Import] = {}
    begun: set[Any] = set()

    def visit(model: Any) -> None:
        if model in begun:
            return
        begun.add(model)
        for each in model._meta.concrete_fields:
            if each.is_relation and each.related_model in by_model:
                visit(each.related_model)
        ordered.update((id(each), each) for each in by_model[model])

    for model in by_model:
        visit(model)
    return [*ordered.values()]
