"""Forms that notice that their object was changed between being shown and being sent."""

from __future__ import annotations

from typing import Any, ClassVar

from django import forms
from django.core import signing
from django.core.exceptions import ValidationError
from django.utils.translation import gettext_lazy as _

from dynamo_single.exceptions import ConfigurationError
from dynamo_single.orm.schema import registry
from dynamo_single.orm.schema.attributes import VersionAttribute
from dynamo_single.orm.schema.kinds import DynamoModel

__all__ = ["VersionedModelForm"]

#: The hidden field's name.
READ_VERSION = "read_version"


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

    def _present(self) -> list[Any]:
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


def _read(given: str) -> list[Any]:
    """What a field says: label, ``pk`` and version; nothing if it was not signed here."""
    try:
        found: list[Any] = _signer().unsign_object(given)
    except (signing.BadSignature, ValueError):
        return []
    return found


def _signer() -> signing.Signer:
    return signing.Signer(salt="dynamo_single.forms")
