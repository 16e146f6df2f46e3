"""The forms of accounts: login, sign-up, changes of an address, and the user's admin pages.

The forms validate input and show errors. ``addresses`` writes the users and sends the e-mails.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from datetime import timedelta
from typing import Any, ClassVar

from django import forms
from django.contrib.auth import forms as auth_forms
from django.core.exceptions import ValidationError
from django.core.validators import MaxLengthValidator, MinLengthValidator
from django.http import HttpRequest
from django.utils.crypto import get_random_string
from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext
from django.views.decorators.debug import sensitive_variables

from dynamo_single.contrib.accounts import addresses
from dynamo_single.contrib.accounts.conf import EMAIL, KINDS, LONGEST_SECRET, PHONE, USERNAME, account_settings
from dynamo_single.contrib.accounts.limits import lockout
from dynamo_single.contrib.accounts.logins.identifiers import phone_of
from dynamo_single.contrib.accounts.models import AbstractUser, user_model
from dynamo_single.contrib.accounts.ways import MAX_ADDRESSES
from dynamo_single.exceptions import UniqueViolation

#: The maximum length of an e-mail address (RFC 5321, 4.5.3.1.3). User names are shorter.
IDENTIFIER_LENGTH = 254
_LABELS = {
    (): _("User name"),
    (EMAIL,): _("E-mail address"),
    (USERNAME,): _("User name"),
    (PHONE,): _("Telephone number"),
    (EMAIL, USERNAME): _("E-mail address or user name"),
    (EMAIL, PHONE): _("E-mail address or telephone number"),
    (PHONE, USERNAME): _("Telephone number or user name"),
    (EMAIL, PHONE, USERNAME): _("E-mail address, telephone number or user name"),
}


def identifier_label() -> Any:
    """Return the label of the login form's field, according to ``LOGIN_WITH``."""
    return _LABELS[tuple(sorted(each for each in account_settings().login_with if each in KINDS))]


class PhoneField(forms.CharField):
    """A telephone number in any common notation, converted to E.164."""

    widget = forms.TextInput(attrs={"type": "tel", "autocomplete": "tel"})

    def to_python(self, value: Any) -> str | None:
        """Return the number in E.164, or ``None`` if the field is empty."""
        text = super().to_python(value)
        if not text:
            return None
        number = phone_of(text)
        if number is None:
            raise ValidationError(_("Enter a telephone number with its country, such as +15550100."), "phone")
        return number


class LoginForm(auth_forms.AuthenticationForm):
    """Accepts the identifiers of ``LOGIN_WITH``, and shows why it rejects a login without revealing existing names."""

    error_messages = {  # noqa: RUF012 - as Django declares it
        **auth_forms.AuthenticationForm.error_messages,
        "invalid_login": _("Please enter a correct %(identifier)s and password. Passwords are case-sensitive."),
        "too_early": _("Too many failed attempts. Please wait %(wait)s and try again."),
        "unconfirmed": _("Please confirm your e-mail address first: follow the link in the e-mail that we sent you."),
    }

    def __init__(self, request: HttpRequest | None = None, *args: object, **kwargs: object) -> None:
        super().__init__(request, *args, **kwargs)
        field = self.fields["username"]
        field.label = identifier_label()
        field.max_length = IDENTIFIER_LENGTH  # type: ignore[attr-defined]  # a CharField has it
        field.widget.attrs["maxlength"] = IDENTIFIER_LENGTH

    def get_invalid_login_error(self) -> ValidationError:
        """Return the error that the backend recorded for the request, or the error of a wrong password."""
        told = lockout.told(self.request)
        if isinstance(told, timedelta):
            return ValidationError(self.error_messages["too_early"], "too_early", {"wait": _in_words(told)})
        if told == lockout.UNCONFIRMED:
            return ValidationError(self.error_messages["unconfirmed"], "unconfirmed")
        label = str(identifier_label())
        params = {"identifier": label[0].lower() + label[1:]}
        return ValidationError(self.error_messages["invalid_login"], "invalid_login", params)


def _in_words(wait: timedelta) -> str:
    seconds = max(1, math.ceil(wait.total_seconds()))
    if seconds < 60:
        return ngettext("%(number)d second", "%(number)d seconds", seconds) % {"number": seconds}
    minutes = math.ceil(seconds / 60)
    return ngettext("%(number)d minute", "%(number)d minutes", minutes) % {"number": minutes}


def too_many_mails(wait: timedelta) -> ValidationError:
    """Return the error that a form shows if the limit of e-mails is reached."""
    text = _("Too many e-mails were requested. Please wait %(wait)s and try again.")
    return ValidationError(text, "too_many_mails", {"wait": _in_words(wait)})


class SignUpForm(auth_forms.BaseUserCreationForm):  # type: ignore[type-arg]  # not generic at run time
    """Creates an account. If the address already has an account, its user gets an e-mail instead of an error here."""

    class Meta:
        model = user_model()
        fields = ("email", "username")
        field_classes: ClassVar[dict[str, type]] = {"username": auth_forms.UsernameField}
        labels: ClassVar[dict[str, Any]] = {"email": _("E-mail address"), "username": _("User name")}

    def __init__(self, *args: object, **kwargs: object) -> None:
        super().__init__(*args, **kwargs)
        self.fields["email"].required = True
        self.fields["email"].widget.attrs.update(autocomplete="email", autofocus=True)
        if USERNAME not in account_settings().login_with:
            del self.fields["username"]
            self.instance.username = f"user-{get_random_string(20).lower()}"
        else:
            del self.fields["username"].widget.attrs["autofocus"]

    def validate_unique(self) -> None:
        """Check that the user name is unique without checking the address: one GetItem."""
        try:
            self.instance.validate_unique(exclude={*self._get_validation_exclusions(), "email"})  # type: ignore[attr-defined]  # not in the stubs
        except ValidationError as error:
            self._update_errors(error)  # type: ignore[attr-defined]  # not in the stubs

    @sensitive_variables()
    def sign_up(self, request: HttpRequest) -> bool:
        """Store the user and send the e-mail; return ``False`` if another user took the name first."""
        self.instance.set_password(self.cleaned_data["password1"])
        try:
            addresses.sign_up(request, self.instance)
        except UniqueViolation as error:
            self.add_error("username", self.instance.unique_error_message(type(self.instance), [error.field]))
            return False
        return True


def _address_field() -> forms.EmailField:
    widget = forms.EmailInput(attrs={"autocomplete": "email", "autofocus": True})
    return forms.EmailField(label=_("E-mail address"), max_length=IDENTIFIER_LENGTH, widget=widget)


class AddressForm(forms.Form):
    """A form with an e-mail address."""

    email = _address_field()


class OwnPassword:
    """A form that requires the password of a logged-in user; a wrong password counts as a failed login.

    ``request`` is a keyword argument. Without a request the form does not count attempts, like ``authenticate()``.
    """

    #: The admin site passes the request only to forms with this attribute.
    takes_request = True

    def __init__(self, *args: object, request: HttpRequest | None = None, **kwargs: object) -> None:
        super().__init__(*args, **kwargs)
        self.request = request

    @sensitive_variables()
    def check_own(self, user: Any, password: str, wrong: ValidationError) -> None:
        """Raise ``wrong`` for a wrong password, or an error with the time to wait."""
        if self.request is None:
            right = user.check_password(password)
        else:
            right = lockout.checked(self.request, user.get_username(), lambda: bool(user.check_password(password)))
        told = lockout.told(self.request)
        if isinstance(told, timedelta):
            raise ValidationError(LoginForm.error_messages["too_early"], "too_early", {"wait": _in_words(told)})
        if not right:
            raise wrong


class PasswordChangeForm(OwnPassword, auth_forms.PasswordChangeForm):
    """Django's form; wrong passwords count as failed logins."""

    @sensitive_variables()
    def clean_old_password(self) -> str:
        """Return the current password if it is right."""
        password: str = self.cleaned_data["old_password"]
        text = self.error_messages["password_incorrect"]
        self.check_own(self.user, password, ValidationError(text, "password_incorrect"))
        return password


class PasswordForm(OwnPassword, forms.Form):
    """Requires the password of a logged-in user before a login method changes."""

    password = forms.CharField(
        label=_("Your password"),
        strip=False,
        widget=forms.PasswordInput(attrs={"autocomplete": "current-password"}),
    )

    def __init__(self, user: AbstractUser, *args: object, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.user = user

    @sensitive_variables()
    def clean_password(self) -> str:
        """Return the password if it is right."""
        password: str = self.cleaned_data["password"]
        self.check_own(self.user, password, ValidationError(_("Your password is incorrect."), "password_incorrect"))
        return password


class AddressChangeForm(PasswordForm):
    """A new e-mail address, with the password because the reader of its e-mail can take over the account."""

    email = _address_field()

    field_order = ("email", "password")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["email"].label = _("New e-mail address")


class AddressAddForm(AddressChangeForm):
    """An additional e-mail address, with the password."""

    def clean_email(self) -> str:
        """Return the address if the user can have another address."""
        if len(self.user.more_emails or ()) >= MAX_ADDRESSES:
            text = _("You cannot have more than %(number)d additional addresses.")
            raise ValidationError(text, "too_many", {"number": MAX_ADDRESSES})
        address: str = self.cleaned_data["email"]
        return address


class PhoneForm(PasswordForm):
    """A telephone number, with the password because the owner of the number can log in."""

    phone = PhoneField(label=_("Telephone number"))

    field_order = ("phone", "password")


class SecretForm(PasswordForm):
    """A separate secret for one login method, entered twice, with the password; an empty secret removes it."""

    secret = forms.CharField(
        label=_("New secret"),
        required=False,
        strip=False,
        widget=forms.PasswordInput(attrs={"autocomplete": "new-password"}),
        help_text=_("Leave it empty to log in with your password."),
    )
    again = forms.CharField(
        label=_("New secret confirmation"),
        required=False,
        strip=False,
        widget=forms.PasswordInput(attrs={"autocomplete": "new-password"}),
    )

    field_order = ("secret", "again", "password")

    def __init__(self, *args: Any, least: int, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        field: Any = self.fields["secret"]
        field.validators += [MinLengthValidator(least), MaxLengthValidator(LONGEST_SECRET)]

    @sensitive_variables()
    def clean_again(self) -> str:
        """Check that both secrets are equal."""
        again: str = self.cleaned_data["again"]
        if again != self.cleaned_data.get("secret", again):
            raise ValidationError(_("The two secrets do not match."), "not_the_same")
        return again


class CodeForm(forms.Form):
    """A form with the code that was sent to a telephone number."""

    code = forms.CharField(
        label=_("Code"),
        max_length=20,
        widget=forms.TextInput(attrs={"inputmode": "numeric", "autocomplete": "one-time-code", "autofocus": True}),
    )


class PasswordResetForm(auth_forms.PasswordResetForm):
    """Django's form, for addresses that are unique regardless of case."""

    email = _address_field()

    def get_users(self, email: str) -> Iterable[AbstractUser]:
        """Return the active user who has this address and a password: two strongly consistent GetItems."""
        try:
            user: AbstractUser = user_model().objects.get_by_unique("email", email)
        except user_model().DoesNotExist:
            return ()
        return (user,) if user.is_active and user.has_usable_password() else ()


class ResetPasswordForm(auth_forms.SetPasswordForm):  # type: ignore[type-arg]  # not generic at run time
    """Sets a new password and confirms the address, because the user received the link by e-mail."""

    def save(self, commit: bool = True) -> AbstractUser:
        """Save the password and the confirmation together."""
        user: AbstractUser = self.user
        if not user.has_confirmed_email:
            # A user who signed up with another person's address may have added these. They do not need the password.
            user.identities = user.more_emails = None
        user.confirm_email()
        super().save(commit)
        return user


class UserCreationForm(auth_forms.AdminUserCreationForm):  # type: ignore[type-arg]  # not generic at run time
    """A new user with a name, an address and a password."""

    class Meta:
        model = user_model()
        fields = ("username", "email")
        field_classes: ClassVar[dict[str, type]] = {"username": auth_forms.UsernameField}

    def clean_username(self) -> str:
        """Return the name unchanged: the model rejects duplicates regardless of case, without a query by ``iexact``."""
        username: str = self.cleaned_data["username"]
        return username


class KeptRelationsMixin:
    """A form of an object whose item contains the keys of its relations, such as a user's groups."""

    instance: Any
    cleaned_data: dict[str, Any]

    def clean(self) -> Any:
        """Take the chosen objects into the object, so that one transaction writes all of it."""
        behind: Any = super()
        behind.clean()
        for relation in self.instance._meta.many_to_many:
            if hasattr(relation, "kept_in") and relation.name in self.cleaned_data:
                setattr(self.instance, relation.kept_in, relation.keys(self.instance, self.cleaned_data[relation.name]))
        return self.cleaned_data


class GroupForm(KeptRelationsMixin, forms.ModelForm):  # type: ignore[type-arg]  # not generic at run time
    """A group's name and permissions."""


class UserChangeForm(KeptRelationsMixin, auth_forms.UserChangeForm):  # type: ignore[type-arg]  # not generic at run time
    """A user's attributes, groups and permissions; the password has a separate page."""

    class Meta:
        model = user_model()
        fields = "__all__"
        field_classes: ClassVar[dict[str, type]] = {"username": auth_forms.UsernameField, "phone": PhoneField}

    def clean_phone(self) -> str | None:
        """Return the number; remove its secret if the user has no number."""
        number: str | None = self.cleaned_data["phone"]
        if number is None or self.instance.phone is None:
            self.instance.phone_secret = None
        return number
