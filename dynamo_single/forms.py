"""Forms that detect a change of their object between display and submission."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from hashlib import sha256
from typing import Any, ClassVar

from django import forms
from django.core import signing
from django.core.exceptions import FieldDoesNotExist, ValidationError
from django.http import QueryDict
from django.utils.translation import gettext_lazy as _
from msgspec import Struct

from dynamo_single.exceptions import ConfigurationError
from dynamo_single.orm.schema import registry
from dynamo_single.orm.schema.attributes import VersionAttribute
from dynamo_single.orm.schema.types import DynamoModel

__all__ = ["MergingModelForm", "VersionedModelForm"]

#: The names of the hidden fields.
READ_VERSION = "read_version"
AS_SHOWN = "as_shown"


class SignedField(forms.CharField):
    """What the form was shown for: a version or fingerprints, signed together with the identity of their object."""

    widget = forms.HiddenInput

    def has_changed(self, initial: object, data: object) -> bool:
        """Return False: this is not a value of the object."""
        return False


class VersionedModelForm(forms.ModelForm):  # type: ignore[type-arg]  # not generic at run time
    """A ``ModelForm`` that is rejected if its object was written since the form was shown, for example in another tab.

    The model needs a ``VersionAttribute``; without one, the form raises ``ConfigurationError``. A hidden field contains
    the object's label, ``pk`` and version, signed with ``SECRET_KEY``. The object that the view reads for the submitted
    form must still have this version. The version itself detects a write between that read and the save, which raises
    ``StaleObject``. A form for a new object needs no version. Sends no request.
    """

    read_version = SignedField(required=False)

    version_messages: ClassVar[dict[str, Any]] = {
        "changed": _(
            "This %(name)s was changed by someone else after you opened the form. Nothing was saved. Open it "
            "again to see the current version."
        ),
        "unknown": _(
            "This form does not contain the version of the %(name)s that it was opened for. Nothing was "
            "saved. Open it again."
        ),
    }

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._version = version_name(type(self.instance))
        if READ_VERSION in self.fields:
            self.initial[READ_VERSION] = self._signed()

    def clean(self) -> dict[str, Any] | None:
        """Validate as Django does, and add a non-field error if the version has changed."""
        cleaned = super().clean()
        given = self.cleaned_data.pop(READ_VERSION, "")
        if not self.instance._state.adding and READ_VERSION in self.fields:
            seen, present = _read(given), self._present()
            if seen != present:
                code = "changed" if seen[:-1] == present[:-1] else "unknown"
                name = self.instance._meta.verbose_name
                self.add_error(None, ValidationError(self.version_messages[code], code=code, params={"name": name}))
        return cleaned

    def _signed(self) -> str:
        if self.instance._state.adding:
            return ""
        return _signer().sign_object(self._present())

    def _present(self) -> list[DynamoModel]:
        return [self.instance._meta.label_lower, str(self.instance.pk), getattr(self.instance, self._version)]


def version_name(model: type[DynamoModel]) -> str:
    """Return the name of a model's version attribute; raise ``ConfigurationError`` if there is none."""
    for name, attribute in registry.attributes_of(model).items():
        if isinstance(attribute, VersionAttribute):
            return name
    raise ConfigurationError(
        f"{model._meta.label} has no version, by which a form could see that an object was changed: give it "
        "version = models.VersionAttribute()."
    )


def _read(given: str) -> list[DynamoModel]:
    """Return the label, ``pk`` and version in a field; an empty list if they are not signed."""
    try:
        found: list[Any] = _signer().unsign_object(given)
    except (signing.BadSignature, ValueError):
        return []
    return found


def _signer() -> signing.Signer:
    return signing.Signer(salt="dynamo_single.forms")


class Theirs(Struct, frozen=True):
    """A field that another user has changed, with the new value; ``is_ours`` if this form changes it too."""

    value: Any
    is_ours: bool


def shown_field() -> SignedField:
    """Return the hidden field of a ``MergingModelForm``."""
    return SignedField(required=False, label=_("As shown"))


class MergingModelForm(forms.ModelForm):  # type: ignore[type-arg]  # not generic at run time
    """A ``ModelForm`` that detects concurrent changes of its object by another user, for example in another tab.

    Such a form is invalid once, and each changed field shows the current value. A field that this form does not change
    takes the other user's value. If both change it, the form keeps the entered value for review. When it is submitted
    again, it is saved. A form without changes takes all current values and is valid, such as an untouched row of a
    formset.

    The form of a stored object has a hidden field, ``as_shown``, with fingerprints of the displayed values, signed with
    ``SECRET_KEY``; without it, nothing is compared. It is not in ``base_fields``, and a form for a new object does not
    send it. The form compares the model's attributes except for files. Sends no request.
    """

    merging_messages: ClassVar[dict[str, Any]] = {
        "both": _('Someone else has changed this to "%(theirs)s" since you opened the form. Your value is kept here.'),
        "theirs": _('Someone else has changed this to "%(theirs)s" since you opened the form.'),
        "object": _(
            "This %(name)s was changed by someone else after you opened the form. Nothing was saved. Save "
            "again to keep the values that you see now."
        ),
    }

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._theirs: dict[str, Theirs] = {}
        self._now: dict[str, str] = {}
        self._before: dict[str, Any] = {}
        if not self.instance._state.adding:
            self._before = dict(self._attributes())
        if self._before:
            self._now = self._shown()
            self.fields[AS_SHOWN] = shown_field()
            self.initial[AS_SHOWN] = self._signed_shown()

    def __getitem__(self, name: str) -> forms.BoundField:
        """Return a field as Django does, and an empty hidden field for a form that has nothing to compare.

        A template shows all rows of a formset in the same way, also those for new objects.
        """
        if name == AS_SHOWN and name not in self.fields:
            return forms.BoundField(self, shown_field(), name)
        return super().__getitem__(name)

    def full_clean(self) -> None:
        """Merge the values that only another user has changed, then validate as Django does."""
        if self.is_bound and self._now:
            self._merge()
        super().full_clean()

    def clean(self) -> dict[str, Any] | None:
        """Validate as Django does, and add an error to each field that another user has changed."""
        cleaned = super().clean()
        self.cleaned_data.pop(AS_SHOWN, None)
        for name, theirs in self._theirs.items():
            params = {"theirs": in_words(self.fields[name], theirs.value)}
            text = self.merging_messages["both" if theirs.is_ours else "theirs"]
            self.add_error(name, ValidationError(text, code="changed", params=params))
        if self._theirs:
            params = {"name": self.instance._meta.verbose_name}
            self.add_error(None, ValidationError(self.merging_messages["object"], code="changed", params=params))
        return cleaned

    def _merge(self) -> None:
        """Compare the displayed, stored and submitted values, and update the data to display."""
        self._theirs = {}
        seen = self._seen()
        changed = {name for name, now in self._now.items() if name in seen and seen[name] != now}
        if not changed:
            return
        sent = {name: self._fingerprint(name, self.data) for name in self._now}
        ours = {name for name in self._now if sent.get(name) != seen.get(name, self._now[name])}
        data: Any = self.data
        data = data.copy()
        for name in sorted(changed):
            if name not in ours:
                self._put(data, name, self._before[name])
        data[self.add_prefix(AS_SHOWN)] = self._signed_shown()
        if READ_VERSION in self.fields:
            data[self.add_prefix(READ_VERSION)] = self.initial[READ_VERSION]
        self.data = data
        if ours:
            same = {name for name in changed if sent.get(name) == self._now[name]}
            self._theirs = {
                name: Theirs(self._before[name], name in ours) for name in self._now if name in changed - same
            }

    def _attributes(self) -> Iterator[tuple[str, Any]]:
        """Yield the form's fields that are attributes or relations of the model, with the object's values.

        The form has already read the values of a many-to-many relation.
        """
        attributes = registry.attributes_of(type(self.instance)._meta.concrete_model)
        for name, field in self.fields.items():
            try:
                model_field: Any = self.instance._meta.get_field(name)
            except FieldDoesNotExist:
                continue
            if model_field.many_to_many and not field.disabled:
                self.initial[name] = list(self.initial.get(name) or ())
                yield name, frozenset(self.initial[name])
                continue
            attname = getattr(model_field, "attname", "")
            if attname in attributes and not field.disabled and not isinstance(field, forms.FileField):
                yield name, getattr(self.instance, attname)

    def _shown(self) -> dict[str, str]:
        """Return the fingerprint of each field for the object as it is stored now."""
        data = QueryDict(mutable=True)
        for name, value in self._before.items():
            self._put(data, name, value)
        return {name: self._fingerprint(name, data) for name in self._before}

    def _fingerprint(self, name: str, data: Any) -> str:
        """Return a short hash of a field's value in some data, with normalized line ends."""
        value = self.fields[name].widget.value_from_datadict(data, self.files, self.add_prefix(name))
        texts = [str(each) for each in value] if isinstance(value, list | tuple | set) else [_text(value)]
        if isinstance(self._before[name], set | frozenset):
            texts.sort()
        return sha256("\x00".join(texts).replace("\r\n", "\n").encode()).hexdigest()[:16]

    def _signed_shown(self) -> str:
        return _merging_signer().sign_object([self.instance._meta.label_lower, str(self.instance.pk), self._now])

    def _seen(self) -> dict[str, str]:
        """Return the fingerprints that were shown for this object; empty if they are missing or not signed."""
        given = self.data.get(self.add_prefix(AS_SHOWN), "")
        try:
            label, pk, seen = _merging_signer().unsign_object(given)
        except (signing.BadSignature, ValueError):
            return {}
        if [label, pk] != [self.instance._meta.label_lower, str(self.instance.pk)]:
            return {}
        found: dict[str, str] = seen
        return found

    def _put(self, data: Any, name: str, value: Any) -> None:
        """Write a value into the data as the field's widget would have sent it."""
        field, html_name = self.fields[name], self.add_prefix(name)
        prepared = field.prepare_value(value)
        # The admin wraps the widget of a reference to add buttons.
        widget: Any = getattr(field.widget, "widget", field.widget)
        if isinstance(widget, forms.MultiWidget) and not hasattr(widget, "put"):
            parts: Any = widget.decompress(prepared)
            names: Any = widget.widgets_names  # type: ignore[attr-defined]  # the stubs lack it
            for suffix, each, part in zip(names, widget.widgets, parts, strict=True):
                _set(data, html_name + suffix, each, part)
        else:
            _set(data, html_name, widget, prepared)


def in_words(field: Any, value: Any) -> str:
    """Return a form field's value for display: the labels of choices, and the ``pk`` of objects. Sends no request."""
    if isinstance(value, bool):
        return str(_("Yes") if value else _("No"))
    if hasattr(field, "queryset"):
        # Its choices come from a queryset, which may be large.
        several = [value] if not isinstance(value, Iterable) or isinstance(value, str) else value
        return ", ".join(str(getattr(each, "pk", each)) for each in several if each is not None)
    if hasattr(field, "in_words"):
        return str(field.in_words(value))
    prepared = field.prepare_value(value)
    for key, label in getattr(field, "choices", None) or ():
        for known, text in label if isinstance(label, list | tuple) else ((key, label),):
            if str(known) == str(prepared):
                return str(text)
    return "" if prepared is None else str(prepared)


def _set(data: Any, name: str, widget: Any, value: Any) -> None:
    if hasattr(widget, "put"):  # a widget of several inputs that implements put()
        widget.put(data, name, value, _set)
        return
    data.pop(name, None)
    if isinstance(widget, forms.CheckboxInput):
        if value:
            data[name] = "on"
    elif isinstance(value, list | tuple | set | frozenset):
        texts = [str(each) for each in value]
        if hasattr(data, "setlist"):
            data.setlist(name, texts)
        else:
            data[name] = texts
    else:
        text = widget.format_value(value)
        if isinstance(text, dict):  # a date in three selects
            for part, each in text.items():
                data[f"{name}_{part}"] = _text(each)
            return
        if isinstance(text, list):  # a choice
            text = next(iter(text), None)
        data[name] = _text(text)


def _text(value: object) -> str:
    return "" if value is None else str(value)


def _merging_signer() -> signing.Signer:
    return signing.Signer(salt="dynamo_single.forms.merging")
