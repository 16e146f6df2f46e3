"""The places in Django and PynamoDB of the private names in ``docs/private-names.md``.

A target is a dotted path. Arguments after it are those of the code's calls. ``module: name`` is a name that the module
sets on other objects. ``<6`` and ``>=6`` before a target are the releases of Django that have it.
"""

from __future__ import annotations

DJANGO = {
    # querysets
    "QuerySet._chain": "django.db.models.query.QuerySet._chain(self)",
    "QuerySet._clone": "django.db.models.query.QuerySet._clone(self)",
    "QuerySet._result_cache": "django.db.models.query.QuerySet._result_cache",
    "QuerySet._iterable_class": "django.db.models.query.QuerySet._iterable_class",
    "QuerySet._fetch_all": "django.db.models.query.QuerySet._fetch_all(self)",
    "QuerySet._iterator": "django.db.models.query.QuerySet._iterator",
    "QuerySet._known_related_objects": "django.db.models.query.QuerySet._known_related_objects",
    "QuerySet._prefetch_related_lookups": "django.db.models.query.QuerySet._prefetch_related_lookups",
    "QuerySet._prefetch_done": "django.db.models.query.QuerySet._prefetch_done",
    "QuerySet._filter_or_exclude_inplace": (
        "django.db.models.query.QuerySet._filter_or_exclude_inplace(self, negate, args, kwargs)"
    ),
    "QuerySet._query": "django.db.models.query.QuerySet._query",
    "QuerySet._deferred_filter": "django.db.models.query.QuerySet._deferred_filter",
    "QuerySet._merge_sanity_check": "django.db.models.query.QuerySet._merge_sanity_check",
    "QuerySet._insert": "django.db.models.query.QuerySet._insert",
    "QuerySet._update": "django.db.models.query.QuerySet._update",
    "QuerySet._raw_delete": "django.db.models.query.QuerySet._raw_delete",
    "QuerySet._extract_model_params": "django.db.models.query.QuerySet._extract_model_params(self, defaults)",
    "get_prefetcher": "django.db.models.query.get_prefetcher(instance, through_attr, to_attr)",
    "normalize_prefetch_lookups": "django.db.models.query.normalize_prefetch_lookups(lookups, prefix)",
    "prefetch_one_level": "django.db.models.query.prefetch_one_level(instances, prefetcher, lookup, level)",
    "BaseIterable": "django.db.models.query.BaseIterable",
    "ModelIterable": "django.db.models.query.ModelIterable",
    "create_namedtuple_class": "django.db.models.utils.create_namedtuple_class(name, other)",
    # what a queryset holds
    "Query": "django.db.models.sql.Query",
    "Query.where": "django.db.models.sql.query.Query.where",
    "Query.order_by": "django.db.models.sql.query.Query.order_by",
    "Query.default_ordering": "django.db.models.sql.query.Query.default_ordering",
    "Query.standard_ordering": "django.db.models.sql.query.Query.standard_ordering",
    "Query.low_mark": "django.db.models.sql.query.Query.low_mark",
    "Query.high_mark": "django.db.models.sql.query.Query.high_mark",
    "Query.is_sliced": "django.db.models.sql.query.Query.is_sliced",
    "Query.is_empty": "django.db.models.sql.query.Query.is_empty(self)",
    "Query.clear_limits": "django.db.models.sql.query.Query.clear_limits(self)",
    "Query.set_limits": "django.db.models.sql.query.Query.set_limits(self, high=)",
    "Query.clear_ordering": "django.db.models.sql.query.Query.clear_ordering(self, force=)",
    "Query.select_related": "django.db.models.sql.query.Query.select_related",
    "Query.deferred_loading": "django.db.models.sql.query.Query.deferred_loading",
    "Query.annotations": "django.db.models.sql.query.Query.annotations",
    "Query.combinator": "django.db.models.sql.query.Query.combinator",
    "Query.combinator_all": "django.db.models.sql.query.Query.combinator_all",
    "Query.combined_queries": "django.db.models.sql.query.Query.combined_queries",
    "Query.extra": "django.db.models.sql.query.Query.extra",
    "Query.distinct_fields": "django.db.models.sql.query.Query.distinct_fields",
    "Query.chain": "django.db.models.sql.query.Query.chain(self)",
    "WhereNode": "django.db.models.sql.where.WhereNode",
    "WhereNode.children": "django.db.models.sql.where.WhereNode.children",
    "WhereNode.connector": "django.db.models.sql.where.WhereNode.connector",
    "WhereNode.negated": "django.db.models.sql.where.WhereNode.negated",
    "NothingNode": "django.db.models.sql.where.NothingNode",
    "AND": "django.db.models.sql.where.AND",
    "OR": "django.db.models.sql.where.OR",
    # many-to-many relations
    "Apps": "django.apps.registry.Apps",
    "lazy_related_operation": "django.db.models.fields.related.lazy_related_operation(function, model, field=)",
    "ManyToManyField.m2m_field_name": "django.contrib.auth.models.User.groups.field.m2m_field_name",
    "ManyToManyField.m2m_reverse_field_name": "django.contrib.auth.models.User.groups.field.m2m_reverse_field_name",
    # expressions and lookups
    "Col": "django.db.models.expressions.Col",
    "ColPairs": "django.db.models.expressions.ColPairs",
    "ExpressionList": "django.db.models.expressions.ExpressionList",
    "Combinable": "django.db.models.expressions.Combinable",
    "CombinedExpression": "django.db.models.expressions.CombinedExpression",
    "OrderBy": "django.db.models.expressions.OrderBy",
    "Ref": "django.db.models.expressions.Ref",
    "ConcatPair": "django.db.models.functions.text.ConcatPair",
    "ExpressionWrapper": "django.db.models.expressions.ExpressionWrapper",
    "KeyTextTransform": "django.db.models.fields.json.KeyTextTransform",
    "NegatedExpression": "django.db.models.expressions.NegatedExpression",
    "ResolvedOuterRef": "django.db.models.expressions.ResolvedOuterRef",
    "TruncBase": "django.db.models.functions.datetime.TruncBase",
    "WindowFrame": "django.db.models.expressions.WindowFrame",
    "BaseExpression._output_field_or_none": "django.db.models.expressions.BaseExpression._output_field_or_none",
    "Query.annotation_select": "django.db.models.sql.query.Query.annotation_select",
    "Query.group_by": "django.db.models.sql.query.Query.group_by",
    "Query.selected": "django.db.models.sql.query.Query.selected",
    "Query.values_select": "django.db.models.sql.query.Query.values_select",
    "Query.set_values": "django.db.models.sql.query.Query.set_values(self, fields)",
    "Query.set_group_by": "django.db.models.sql.query.Query.set_group_by(self)",
    "Query.set_annotation_mask": "django.db.models.sql.query.Query.set_annotation_mask(self, names)",
    "Query.append_annotation_mask": "django.db.models.sql.query.Query.append_annotation_mask(self, names)",
    "Query.check_alias": "django.db.models.sql.query.Query.check_alias(self, alias)",
    "Query.resolve_ref": "django.db.models.sql.query.Query.resolve_ref(self, name)",
    "Query.get_initial_alias": "django.db.models.sql.query.Query.get_initial_alias(self)",
    "WhereNode.split_having_qualify": "django.db.models.sql.where.WhereNode.split_having_qualify(self, must_group_by=)",
    "QuerySet._fields": "django.db.models.QuerySet._fields",
    "Star": "django.db.models.expressions.Star",
    "Aggregate.filter": "django.db.models.Count.filter",
    "AggregateFilter.condition": ">=6 django.db.models.aggregates.AggregateFilter.condition",
    "TimezoneMixin": "django.db.models.functions.datetime.TimezoneMixin",
    "TupleIn": "django.db.models.fields.tuple_lookups.TupleIn",
    "RelatedLookupMixin": "django.db.models.fields.related_lookups.RelatedLookupMixin",
    "related_lookups": "django.db.models.fields.related_lookups",
    "json": "django.db.models.fields.json",
    "KeyTransformFactory": "django.db.models.fields.json.KeyTransformFactory(name)",
    # models and fields
    "ModelBase": "django.db.models.base.ModelBase.__new__",
    "DEFAULT_NAMES": "django.db.models.options.DEFAULT_NAMES",
    "DeferredAttribute": "django.db.models.query_utils.DeferredAttribute(field)",
    "Options._property_names": "django.db.models.options.Options._property_names",
    "ModelState": "django.db.models.base.ModelState()",
    "ModelState.fields_cache": "django.db.models.base.ModelState.fields_cache",
    "Model._save_table": "django.db.models.Model._save_table",
    "Model._perform_unique_checks": "django.db.models.Model._perform_unique_checks",
    "Model._prepare_related_fields_for_save": (
        "django.db.models.Model._prepare_related_fields_for_save(self, operation_name=, fields=)"
    ),
    "Model._is_pk_set": "django.db.models.Model._is_pk_set(self)",
    "Model._prefetched_objects_cache": "django.db.models.query: _prefetched_objects_cache",
    "ModelSignal": "django.db.models.signals.ModelSignal(use_caching=)",
    "Field.descriptor_class": "django.db.models.Field.descriptor_class",
    "Field._validators": "django.db.models.Field._validators",
    "CharField._check_max_length_attribute": "django.db.models.CharField._check_max_length_attribute",
    "FieldFile._committed": "django.db.models.fields.files: _committed",
    "ImageFieldFile": "django.db.models.fields.files.ImageFieldFile",
    "ImageField.update_dimension_fields": (
        "django.db.models.ImageField.update_dimension_fields(self, instance, force=True)"
    ),
    "ForwardManyToOneDescriptor": "django.db.models.fields.related_descriptors.ForwardManyToOneDescriptor",
    "ForwardOneToOneDescriptor": "django.db.models.fields.related_descriptors.ForwardOneToOneDescriptor",
    "FetchMode": ">=6 django.db.models.fetch_modes.FetchMode",
    "QuerySet._fetch_mode": ">=6 django.db.models.QuerySet()._fetch_mode",
    "ReverseOneToOneDescriptor": "django.db.models.fields.related_descriptors.ReverseOneToOneDescriptor",
    "ReverseOneToOneDescriptor.get_queryset": (
        "django.db.models.fields.related_descriptors.ReverseOneToOneDescriptor.get_queryset(self, instance=)"
    ),
    "ReverseManyToOneDescriptor": "django.db.models.fields.related_descriptors.ReverseManyToOneDescriptor",
    "ReverseManyToOneDescriptor.related_manager_cls": (
        "django.db.models.fields.related_descriptors.ReverseManyToOneDescriptor.related_manager_cls"
    ),
    "create_reverse_many_to_one_manager": (
        "django.db.models.fields.related_descriptors.create_reverse_many_to_one_manager(manager, relation)"
    ),
    "RelatedManager._apply_rel_filters": "django.db.models.fields.related_descriptors: _apply_rel_filters",
    "RelatedManager._check_fk_val": "django.db.models.fields.related_descriptors: _check_fk_val",
    "RelatedManager._remove_prefetched_objects": (
        "django.db.models.fields.related_descriptors: _remove_prefetched_objects"
    ),
    # forms, the admin and users
    "ModelChoiceIterator": "django.forms.models.ModelChoiceIterator(field)",
    "ForeignKeyRawIdWidget.label_and_url_for_value": (
        "django.contrib.admin.widgets.ForeignKeyRawIdWidget.label_and_url_for_value(self, value)"
    ),
    "AutocompleteSelect.optgroups": (
        "django.contrib.admin.widgets.AutocompleteSelect.optgroups(self, name, value, attr)"
    ),
    "ForeignKeyRawIdWidget": "django.contrib.admin.widgets.ForeignKeyRawIdWidget",
    "AutocompleteSelect": "django.contrib.admin.widgets.AutocompleteSelect",
    "Truncator": "django.utils.text.Truncator(text)",
    "ModelForm._get_validation_exclusions": "django.forms.ModelForm._get_validation_exclusions(self)",
    "ModelForm._update_errors": "django.forms.ModelForm._update_errors(self, error)",
    "FieldListFilter._field_list_filters": "django.contrib.admin.filters.FieldListFilter._field_list_filters",
    "NotRelationField": "django.contrib.admin.utils.NotRelationField",
    "get_fields_from_path": "django.contrib.admin.utils.get_fields_from_path(model, path)",
    "ChangeList": "django.contrib.admin.views.main.ChangeList",
    "ChangeList._get_deterministic_ordering": (
        "<6 django.contrib.admin.views.main.ChangeList._get_deterministic_ordering"
    ),
    "Paginator._check_object_list_is_ordered": "django.core.paginator.Paginator._check_object_list_is_ordered",
    "ModelAdmin._create_formsets": "django.contrib.admin.ModelAdmin._create_formsets(self, request, obj, change)",
    "ModelAdmin._get_obj_does_not_exist_redirect": (
        "django.contrib.admin.ModelAdmin._get_obj_does_not_exist_redirect(self, request, opts, object_id)"
    ),
    "IncorrectLookupParameters": "django.contrib.admin.options.IncorrectLookupParameters",
    "IS_POPUP_VAR": "django.contrib.admin.options.IS_POPUP_VAR",
    "TO_FIELD_VAR": "django.contrib.admin.options.TO_FIELD_VAR",
    "ERROR_FLAG": "django.contrib.admin.views.main.ERROR_FLAG",
    "AdminSite._registry": "django.contrib.admin.site._registry",
    "all_sites": "django.contrib.admin.sites.all_sites",
    "BaseStorage": "django.contrib.messages.storage.base.BaseStorage",
    "BaseStorage._get": "django.contrib.messages.storage.base.BaseStorage._get(self)",
    "BaseStorage._store": "django.contrib.messages.storage.base.BaseStorage._store(self, messages, response)",
    "ACTION_FLAG_CHOICES": "django.contrib.admin.models.ACTION_FLAG_CHOICES",
    "AutocompleteJsonView": "django.contrib.admin.views.autocomplete.AutocompleteJsonView",
    "LoginRequiredMiddleware": "django.contrib.auth.middleware.LoginRequiredMiddleware",
    "BaseModelFormSet._queryset": "django.forms.models: _queryset",
    "DELETION_FIELD_NAME": "django.forms.formsets.DELETION_FIELD_NAME",
    "INITIAL_FORM_COUNT": "django.forms.formsets.INITIAL_FORM_COUNT",
    "TOTAL_FORM_COUNT": "django.forms.formsets.TOTAL_FORM_COUNT",
    "FilteredSelectMultiple": "django.contrib.admin.widgets.FilteredSelectMultiple(name, is_stacked)",
    "flatten_fieldsets": "django.contrib.admin.utils.flatten_fieldsets(fieldsets)",
    "ModelAdminChecks": "django.contrib.admin.checks.ModelAdminChecks",
    "ModelAdminChecks._check_list_display_links": (
        "django.contrib.admin.checks.ModelAdminChecks._check_list_display_links(self, obj)"
    ),
    "ModelAdminChecks._check_list_display_item": (
        "django.contrib.admin.checks.ModelAdminChecks._check_list_display_item(self, obj, item, label)"
    ),
    "ModelAdminChecks._check_list_display_links_item": (
        "django.contrib.admin.checks.ModelAdminChecks._check_list_display_links_item(self, obj, field_name, label)"
    ),
    "date_format": "django.utils.formats.date_format(value)",
    "filesizeformat": "django.template.defaultfilters.filesizeformat(bytes_)",
    "get_text_list": "django.utils.text.get_text_list(list_, last_word)",
    "results": "django.contrib.admin.templatetags.admin_list.results(cl)",
    "label_for_field": "django.contrib.admin.utils.label_for_field(name, model, model_admin)",
    "model_ngettext": "django.contrib.admin.utils.model_ngettext(opts, number)",
    "quote": "django.contrib.admin.utils.quote(pk)",
    "unquote": "django.contrib.admin.utils.unquote(pk)",
    "UserManager._create_user_object": (
        "django.contrib.auth.models.UserManager._create_user_object(self, username, email, password)"
    ),
    "UserManager._create_user": "django.contrib.auth.models.UserManager._create_user",
    "UserManager._acreate_user": "django.contrib.auth.models.UserManager._acreate_user",
    "AbstractBaseUser._password": "django.contrib.auth.base_user.AbstractBaseUser._password",
    "password_changed": "django.contrib.auth.password_validation.password_changed(password, user)",
    "PasswordResetTokenGenerator._now": "django.contrib.auth.tokens.PasswordResetTokenGenerator._now",
    "signing.b62_encode": "django.core.signing.b62_encode(number)",
    "signing.b62_decode": "django.core.signing.b62_decode(text)",
    "ModelBackend._perm_cache": "django.contrib.auth.backends: _perm_cache",
    # the engine without SQL
    **{
        f"BaseDatabase{part}": f"django.db.backends.base.{module}.BaseDatabase{part}"
        for part, module in {
            "Wrapper": "base",
            "Client": "client",
            "Creation": "creation",
            "Features": "features",
            "Introspection": "introspection",
            "Operations": "operations",
            "Validation": "validation",
        }.items()
    },
    **{
        f"BaseDatabaseWrapper.{name}": f"django.db.backends.base.base.BaseDatabaseWrapper.{name}"
        for name in ("_set_autocommit", "_savepoint", "_savepoint_commit", "_savepoint_rollback")
    },
    "BaseDatabaseWrapper.closed_in_transaction": "django.db.connection.closed_in_transaction",
    **{
        f"BaseDatabaseCreation.{name}": f"django.db.backends.base.creation.BaseDatabaseCreation.{name}"
        for name in (
            "_create_test_db",
            "_clone_test_db",
            "_destroy_test_db",
            "_get_database_display_str",
            "_get_test_db_name",
            "setup_worker_connection",
        )
    },
    **{
        f"TransactionTestCase.{name}": f"django.test.TransactionTestCase.{name}"
        for name in ("_pre_setup", "_post_teardown")
    },
    "TestCase._rollback_atomics": "django.test.TestCase._rollback_atomics",
    "test": "django.core.management.commands.test.Command",
    "BaseDatabaseWrapper.on_commit": "django.db.backends.base.base.BaseDatabaseWrapper.on_commit(self, func, robust=)",
    "BaseDatabaseWrapper.set_autocommit": (
        "django.db.backends.base.base.BaseDatabaseWrapper.set_autocommit(self, autocommit)"
    ),
    "BaseDatabaseWrapper.atomic_blocks": "django.db.connection.atomic_blocks",
    "Atomic._from_testcase": "django.db.transaction: _from_testcase",
    "BaseDatabaseWrapper.run_on_commit": "django.db.backends.base.base: run_on_commit",
    "BaseDatabaseWrapper.ensure_connection": "django.db.backends.base.base.BaseDatabaseWrapper.ensure_connection(self)",
    "BaseDatabaseWrapper.queries_log": "django.db.connection.queries_log",
    "BaseDatabaseWrapper.queries_logged": "django.db.connection.queries_logged",
    "BaseDatabaseSchemaEditor": "django.db.backends.base.schema.BaseDatabaseSchemaEditor",
    "BaseRenderer": "django.forms.renderers.BaseRenderer",
    "UploadedFile": "django.core.files.uploadedfile.UploadedFile",
    "MultiValueDict": "django.utils.datastructures.MultiValueDict",
    "TableInfo": "django.db.backends.base.introspection.TableInfo",
    "ConnectionRouter.routers": "django.db.router.routers",
    "compiler": "django.db.models.sql.compiler",
    **{
        name: f"django.db.models.sql.compiler.{name}"
        for name in (
            "SQLCompiler",
            "SQLInsertCompiler",
            "SQLUpdateCompiler",
            "SQLDeleteCompiler",
            "SQLAggregateCompiler",
        )
    },
    "SQLCompiler.execute_sql": "django.db.models.sql.compiler.SQLCompiler.execute_sql",
    "SQLCompiler.setup_query": "django.db.models.sql.compiler.SQLCompiler.setup_query(self)",
    "SQLUpdateCompiler.execute_returning_sql": (
        ">=6 django.db.models.sql.compiler.SQLUpdateCompiler.execute_returning_sql(self, returning_fields)"
    ),
    "SQLCompiler.get_order_by": "django.db.models.sql.compiler.SQLCompiler.get_order_by(self)",
    "SINGLE": "django.db.models.sql.constants.SINGLE",
    "LOUTER": "django.db.models.sql.constants.LOUTER",
    "GET_ITERATOR_CHUNK_SIZE": "django.db.models.sql.constants.GET_ITERATOR_CHUNK_SIZE",
    "MULTI": "django.db.models.sql.constants.MULTI",
    "ROW_COUNT": "django.db.models.sql.constants.ROW_COUNT",
    "ForeignKey": "django.db.models.fields.related.ForeignKey.contribute_to_related_class(self, cls, related)",
    "select_related_descend": (
        "django.db.models.sql.compiler.select_related_descend(field, restricted, requested, select_mask)"
    ),
    "Collector": "django.db.models.deletion.Collector(using=, origin=)",
    "Collector.related_objects": (
        "django.db.models.deletion.Collector.related_objects(self, related_model, related_fields, objs)"
    ),
    "ProtectedError": "django.db.models.deletion.ProtectedError(message, protected_objects)",
    "RestrictedError": "django.db.models.deletion.RestrictedError(message, restricted_objects)",
    "ModelState.from_model": "django.db.migrations.state.ModelState.from_model(model, exclude_rels=)",
    "MigrationAutodetector": "django.db.migrations.autodetector.MigrationAutodetector(from_state, to_state)",
    "MigrationAutodetector._detect_changes": (
        "django.db.migrations.autodetector.MigrationAutodetector._detect_changes(self, convert_apps, graph)"
    ),
    **{
        f"MigrationAutodetector.{name}": f"django.db.migrations.autodetector.MigrationAutodetector.{name}({arguments})"
        for name, arguments in {
            "generate_created_models": "self",
            "add_operation": "self, app_label, operation",
            "check_dependency": "self, operation, dependency",
        }.items()
    },
    "OperationDependency": "django.db.migrations.autodetector.OperationDependency.Type.CREATE",
    "NonInteractiveMigrationQuestioner": "django.db.migrations.questioner.NonInteractiveMigrationQuestioner(log=)",
    "ProjectState": "django.db.migrations.state.ProjectState(models=, real_apps=)",
    "ProjectState.models": "django.db.migrations.state.ProjectState.models",
    "ProjectState.real_apps": "django.db.migrations.state.ProjectState.real_apps",
    "ProjectState.add_model": "django.db.migrations.state.ProjectState.add_model(self, model_state)",
    "ProjectState.remove_model": "django.db.migrations.state.ProjectState.remove_model(self, app_label, name)",
    "ProjectState.rename_model": "django.db.migrations.state.ProjectState.rename_model(self, app_label, old, new)",
    "ProjectState.reload_model": "django.db.migrations.state.ProjectState.reload_model(self, app_label, name)",
    "Operation": "django.db.migrations.operations.base.Operation",
    "Operation.reduce": "django.db.migrations.operations.base.Operation.reduce(self, operation, app_label)",
    "OperationCategory": "django.db.migrations.operations.base.OperationCategory",
    "MigrationLoader": (
        "django.db.migrations.loader.MigrationLoader(connection, load=, ignore_no_migrations=, replace_migrations=)"
    ),
    "MigrationLoader.load_disk": "django.db.migrations.loader.MigrationLoader.load_disk(self)",
    "MigrationExecutor": "django.db.migrations.executor.MigrationExecutor(connection)",
    "MigrationLoader.project_state": "django.db.migrations.loader.MigrationLoader.project_state(self, nodes=, at_end=)",
    "migrate.migration_progress_callback": (
        "django.core.management.commands.migrate.Command.migration_progress_callback(self, action, migration=, fake=)"
    ),
    "makemigrations.write_migration_files": (
        "django.core.management.commands.makemigrations.Command.write_migration_files(self, changes)"
    ),
    "makemigrations.log": "django.core.management.commands.makemigrations.Command.log(self, msg)",
    "get_commands": "django.core.management.get_commands()",
    "load_command_class": "django.core.management.load_command_class(app_name, name)",
    "MigrationRecorder": "django.db.migrations.recorder.MigrationRecorder.Migration",
    "RunPython": "django.db.migrations.operations.RunPython",
    "RunSQL": "django.db.migrations.operations.RunSQL",
    "loader": "django.db.migrations.loader",
    # sessions, the cache, commands and small things
    "SessionBase._get_session": "django.contrib.sessions.backends.base.SessionBase._get_session(self, no_load=)",
    "SessionBase._aget_session": "django.contrib.sessions.backends.base.SessionBase._aget_session(self, no_load=)",
    "SessionBase._session_key": "django.contrib.sessions.backends.base.SessionBase._session_key",
    "CreateError": "django.contrib.sessions.backends.base.CreateError",
    "UpdateError": "django.contrib.sessions.backends.base.UpdateError",
    "VALID_KEY_CHARS": "django.contrib.sessions.backends.base.VALID_KEY_CHARS",
    "SessionStore": "django.contrib.sessions.backends.db.SessionStore",
    "ManagementUtility": "django.core.management.ManagementUtility.execute(self)",
    "DEFAULT_TIMEOUT": "django.core.cache.backends.base.DEFAULT_TIMEOUT",
    "delete_selected": "django.contrib.admin.actions.delete_selected",
    "dumpdata": "django.core.management.commands.dumpdata.Command",
    "parse_apps_and_model_labels": "django.core.management.utils.parse_apps_and_model_labels(labels)",
    "loaddata": "django.core.management.commands.loaddata.Command",
    "DeserializationError": "django.core.serializers.base.DeserializationError",
    "makemigrations": "django.core.management.commands.makemigrations.Command.autodetector",
    "migrate": "django.core.management.commands.migrate.Command.autodetector",
    "async_unsafe": "django.utils.asyncio.async_unsafe(message)",
    "Promise": "django.utils.functional.Promise",
    "lazy": "django.utils.functional.lazy(func, resultclass)",
    "capfirst": "django.utils.text.capfirst(text)",
    "constant_time_compare": "django.utils.crypto.constant_time_compare(one, other)",
    "get_random_string": "django.utils.crypto.get_random_string(length, characters)",
    "salted_hmac": "django.utils.crypto.salted_hmac(salt, value, secret=, algorithm=)",
}

PYNAMODB = {
    "Index": "pynamodb.indexes.Index",
    "LocalSecondaryIndex": "pynamodb.indexes.LocalSecondaryIndex",
    "attributes": "pynamodb.attributes",
    "MetaModel": "pynamodb.models.MetaModel.__init__(cls, name, bases, namespace, discriminator=)",
    "PynamoDB.Model._user_instantiated": "pynamodb.models: _user_instantiated",
    "PynamoDB.Model.attribute_values": "pynamodb.attributes: attribute_values",
    "PynamoDB.Model._container_serialize": "pynamodb.models.Model._container_serialize",
    "PynamoDB.Model._container_deserialize": "pynamodb.models.Model._container_deserialize",
    "PynamoDB.Model._instantiate": "pynamodb.models.Model._instantiate",
    "PynamoDB.Model._get_connection": "pynamodb.models.Model._get_connection",
    "DiscriminatorAttribute._class_map": "pynamodb.attributes: _class_map",
    "BatchWrite": "pynamodb.models.BatchWrite(model, auto_commit)",
    "MetaTable": "pynamodb.connection.base.MetaTable(description)",
    "Connection.add_meta_table": "pynamodb.connection.Connection.add_meta_table(self, table)",
    "Connection._make_api_call": "pynamodb.connection.base: _make_api_call",
    "condition": "pynamodb.expressions.condition.And",
    "Condition": "pynamodb.expressions.condition.Condition",
    "Path": "pynamodb.expressions.operand.Path",
    "Value": "pynamodb.expressions.operand.Value",
    "_Size": "pynamodb.expressions.operand._Size",
}

ALL = DJANGO | PYNAMODB
