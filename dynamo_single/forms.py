"""Forms that notice that their object was changed between being shown and being sent."""

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


class VersionField(forms.CharField):
    """A version that was shown, signed together with whose it is; nothing of the object."""

    widget = forms.HiddenInput

    def has_changed(self, initial: object, data: object) -> bool:
        """Never: a version that another writer counted up is no change of this form's."""
        return False


class VersionedModelForm(forms.ModelForm):  # type: ignore[type-arg]  # not generic at run time
    """A ``ModelForm`` that is refused if its object was written since the form was shown, in another tab perhaps.

    The model needs a ``VersionAttribute``. A hidden field holds the object's label, ``pk`` and version, signed with
    ``SECRET_KEY``; the object that the view reads for the sent form has to have this version still. What is written
    between that and the save is held off by the version itself, with ``StaleObject``. Sends no request. A form of a new
    object asks for nothing. Raises ``ConfigurationError`` for a model without a version.
    """

    read_version = VersionField(required=False)

    version_messages: ClassVar[dict[str, Any]] = {
        "changed": _(
            "Somebody has changed this %(name)s since the form was shown, and nothing was saved. Open it again to see "
            "what it is now."
        ),
        "unknown": _(
            "This form does not say which version of the %(name)s it was shown for, and nothing was saved. Open it "
            "again."
        ),
    }

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._version = version_name(type(self.instance))
        if READ_VERSION in self.fields:
            self.initial[READ_VERSION] = self._signed()

    def clean(self) -> dict[str, Any] | None:
        """Django's, and an error of no field if the version is another one by now."""
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
    """The attribute that counts a model's writes; raises ``ConfigurationError`` where there is none."""
    for name, attribute in registry.attributes_of(model).items():
        if isinstance(attribute, VersionAttribute):
            return name
    raise ConfigurationError(
        f"{model._meta.label} has no version, by which a form could see that an object was changed: give it "
        "version = models.VersionAttribute()."
    )


def _read(given: str) -> list[DynamoModel]:
    """What a field says: label, ``pk`` and version; nothing if it was not signed here."""
    try:
        found: list[Any] = _signer().unsign_object(given)
    except (signing.BadSignature, ValueError):
        return []
    return found


def _signer() -> signing.Signer:
    return signing.Signer(salt="dynamo_single.forms")


class ShownField(forms.CharField):
    """What was shown, as fingerprints of the fields, signed together with whose they are."""

    widget = forms.HiddenInput

    def has_changed(self, initial: object, data: object) -> bool:
        """Never: it is no value of the object."""
        return False


class Theirs(Struct, frozen=True):
    """A field that somebody else has changed: what they made of it; ``is_ours`` says that this form changes it too."""

    value: Any
    is_ours: bool


class MergingModelForm(forms.ModelForm):  # type: ignore[type-arg]  # not generic at run time
    """A ``ModelForm`` that notices what somebody else has changed of its object meanwhile, in another tab perhaps.

    Such a form is not valid once: each field that they changed says what it is now. Where this form does not change it
    too it takes their value over; where both do, what was entered stays, to be looked at. Sent again, it is saved. A
    form that changes nothing takes all of theirs over and is valid, as a row of a formset that nobody touched.

    A hidden field holds fingerprints of what was shown, signed with ``SECRET_KEY``; without it nothing is compared.
    Looked at are the model's attributes in the form, but for files. Sends no request.
    """

    as_shown = ShownField(required=False, label=_("As shown"))

    merging_messages: ClassVar[dict[str, Any]] = {
        "both": _('Somebody has changed this to "%(theirs)s" since the form was shown. Your value is kept here.'),
        "theirs": _('Somebody has changed this to "%(theirs)s" since the form was shown.'),
        "object": _(
            "Somebody has changed this %(name)s since the form was shown, and nothing was saved. Save again to keep "
            "what you see now."
        ),
    }

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._theirs: dict[str, Theirs] = {}
        self._now: dict[str, str] = {}
        self._before: dict[str, Any] = {}
        if AS_SHOWN in self.fields and not self.instance._state.adding:
            self._before = dict(self._attributes())
            self._now = self._shown()
            self.initial[AS_SHOWN] = self._signed_shown()

    def full_clean(self) -> None:
        """Django's, after what somebody else has changed is taken over where this form does not change it too."""
        if self.is_bound and self._now:
            self._merge()
        super().full_clean()

    def clean(self) -> dict[str, Any] | None:
        """Django's, and an error at each field that somebody else has changed."""
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
        """Compare what was shown, what is stored and what was sent; the data is then as the form is to be shown."""
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
        """The form's fields that are attributes or relations of the model, with the object's values.

        Those of a many-to-many relation the form has read already.
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
        """The fingerprint of each field as it is shown of the object as it is stored now."""
        data = QueryDict(mutable=True)
        for name, value in self._before.items():
            self._put(data, name, value)
        return {name: self._fingerprint(name, data) for name in self._before}

    def _fingerprint(self, name: str, data: Any) -> str:
        """A short text of what a field would take out of some data, with one kind of line ends."""
        value = self.fields[name].widget.value_from_datadict(data, self.files, self.add_prefix(name))
        texts = [str(each) for each in value] if isinstance(value, list | tuple | set) else [_text(value)]
        if isinstance(self._before[name], set | frozenset):
            texts.sort()
        return sha256("\x00".join(texts).replace("\r\n", "\n").encode()).hexdigest()[:16]

    def _signed_shown(self) -> str:
        return _merging_signer().sign_object([self.instance._meta.label_lower, str(self.instance.pk), self._now])

    def _seen(self) -> dict[str, str]:
        """What was shown, of this very object; nothing if the field is missing or was not signed here."""
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
        """Give the data a value as the field's widget would have sent it."""
        field, html_name = self.fields[name], self.add_prefix(name)
        prepared = field.prepare_value(value)
        # The admin wraps the widget of a reference, to put buttons beside it.
        widget: Any = getattr(field.widget, "widget", field.widget)
        if isinstance(widget, forms.MultiWidget) and not hasattr(widget, "put"):
            parts: Any = widget.decompress(prepared)
            names: Any = widget.widgets_names  # type: ignore[attr-defined]  # the stubs lack it
            for suffix, each, part in zip(names, widget.widgets, parts, strict=True):
                _set(data, html_name + suffix, each, part)
        else:
            _set(data, html_name, widget, prepared)


def in_words(field: Any, value: Any) -> str:
    """A form field's value for people: of choices what they are called, of objects their ``pk``. Sends no request."""
    if isinstance(value, bool):
        return str(_("Yes") if value else _("No"))
    if hasattr(field, "queryset"):
        # Its choices are what a queryset gives, which may be many.
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
    if hasattr(widget, "put"):  # of several inputs, which it knows itself
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
        if isinstance(text, dict):  # of a date in three choices
            for part, each in text.items():
                data[f"{name}_{part}"] = _text(each)
            return
        if isinstance(text, list):  # of a choice
            text = next(iter(text), None)
        data[name] = _text(text)


def _text(value: object) -> str:
    return "" if value is None else str(value)


def _merging_signer() -> signing.Signer:
    return signing.Signer(salt="dynamo_single.forms.merging")
