"""Abstract models of users, login methods, and groups.

A project derives a model from each of them in the app of its users, or installs the app
``dynamo_single.contrib.accounts.ready``.

A user's items share a partition: the user at ``#METADATA``, one item for each login method, and one for each group
membership. One transaction writes these items and the claims that keep user names and e-mail addresses unique.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta
from typing import Any, ClassVar

from django.conf import settings
from django.core.checks import CheckMessage
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from dynamo_single import auth, clock, models
from dynamo_single.contrib.accounts.conf import account_settings
from dynamo_single.contrib.accounts.limits.counter_models import AbstractLoginFailures, AbstractMailsAsked
from dynamo_single.contrib.accounts.logins import peppers
from dynamo_single.contrib.accounts.logins.identifiers import ATTRIBUTES, EMAIL, SECRETS, parted
from dynamo_single.contrib.accounts.logins.installed import model_of, problems
from dynamo_single.contrib.accounts.managers import LoginManager, UserManager
from dynamo_single.contrib.accounts.validators import PhoneValidator, UsernameValidator
from dynamo_single.keys import canonical

__all__ = [
    "AbstractGroup",
    "AbstractIdentity",
    "AbstractLogin",
    "AbstractLoginFailures",
    "AbstractMailsAsked",
    "AbstractMembership",
    "AbstractUser",
    "user_model",
]


class AbstractUser(auth.AbstractUser):
    """A user who logs in with an e-mail address, a user name, or a telephone number.

    A subclass declares ``logins = models.Children("Login", manager=Ways)`` and ``groups = Groups("Membership")``.
    """

    user_id = models.IdAttribute(prefix="user", attr_name="userId")
    username = models.UnicodeAttribute(
        _("username"),
        max_length=150,
        unique=True,
        canonical=True,
        help_text=_("Required. 150 characters or fewer. Letters, digits and . + - _ only."),
        validators=[UsernameValidator()],
        error_messages={"unique": _("A user with that username already exists.")},
    )

    #: In E.164. A page stores the number only after the user has confirmed it.
    phone = models.UnicodeAttribute(
        _("telephone number"),
        null=True,
        blank=True,
        max_length=16,
        unique=True,
        canonical=True,
        validators=[PhoneValidator()],
        error_messages={"unique": _("Another account has this telephone number.")},
    )
    #: Confirmed additional addresses. No other user can have one of them, as a primary or an additional address.
    more_emails = models.UnicodeSetAttribute(editable=False, attr_name="moreEmails")
    #: Confirmed external accounts, each a provider and the account's subject there.
    identities = models.UnicodeSetAttribute(editable=False)
    #: Peppered hashes of the secrets that replace the account's password for the number, the name, and all addresses.
    phone_secret = models.UnicodeAttribute(null=True, editable=False, max_length=255, attr_name="phoneSecret")
    username_secret = models.UnicodeAttribute(null=True, editable=False, max_length=255, attr_name="usernameSecret")
    email_secret = models.UnicodeAttribute(null=True, editable=False, max_length=255, attr_name="emailSecret")
    #: The confirmed address. If ``email`` differs from it, ``email`` is not confirmed.
    confirmed_email = models.EmailAttribute(null=True, editable=False, attr_name="confirmedEmail")
    #: The last time at which another address was added or confirmed.
    confirmed_at = models.TimestampAttribute(null=True, editable=False, attr_name="confirmedAt")
    #: True for a user who signed up and has not confirmed the address yet.
    must_confirm = models.BooleanAttribute(null=True, editable=False, attr_name="mustConfirm")
    #: The expiry of a user who signed up and has neither confirmed the address nor logged in. It releases both names.
    expires = models.TTLAttribute(editable=False, provisional=True)

    objects: ClassVar[UserManager[Any]] = UserManager()

    derived_from: ClassVar[tuple[str, ...]] = (
        *(*ATTRIBUTES.values(), "more_emails", "identities"),
        *("confirmed_email", "must_confirm", "group_ids", *SECRETS.values()),
    )
    unique_members: ClassVar[Mapping[str, str]] = {"more_emails": "email"}

    class Keys:
        primary = models.Key("USER#{user_id}", "#METADATA")
        by_username = models.IndexKey("gs1", "USER", "{username}#{user_id}")

    class Meta(auth.AbstractUser.Meta):
        abstract = True

    def derived_objects(self) -> Iterator[models.Model]:
        """Yield a login for each e-mail address, the user name, the telephone number, and each external account.

        Also yields an identity for each external account, which makes it unique, and the memberships of groups.
        """
        login_model, identity_model = model_of(AbstractLogin), self.identity_model()
        for kind, attribute in ATTRIBUTES.items():
            identifier = getattr(self, attribute)
            if identifier:
                confirmed = self._is_confirmed if kind == EMAIL else None
                secret = getattr(self, SECRETS[kind]) if kind in SECRETS else None
                yield login_model(
                    user_id=self.user_id, kind=kind, identifier=identifier, confirmed=confirmed, password=secret
                )
        for address in sorted(self.more_emails or ()):
            yield login_model(
                user_id=self.user_id, kind=EMAIL, identifier=address, confirmed=True, password=self.email_secret
            )
        for member in sorted(self.identities or ()):
            provider, subject = parted(member)
            yield login_model(user_id=self.user_id, kind=provider.upper(), identifier=subject, confirmed=True)
            yield identity_model(user_id=self.user_id, provider=provider, subject=subject)
        yield from super().derived_objects()

    @classmethod
    def check(cls, **kwargs: Any) -> list[CheckMessage]:
        """Run Django's checks, and E001 and E002: the app with the pages, and the other models of the users' app."""
        return [*super().check(**kwargs), *problems(cls, DERIVED)]

    def own_secret(self, kind: str) -> str | None:
        """Return the hash of this kind's separate secret, or ``None`` if the account's password applies."""
        name = SECRETS.get(kind)
        wanted = name is not None and ATTRIBUTES[kind] in account_settings().secrets
        return getattr(self, name) or None if name is not None and wanted else None

    def check_login(self, kind: str, raw_password: str) -> bool:
        """Return whether the password is right for this kind: its separate secret if it has one, else the password.

        Computes one hash in any case. A right secret whose hasher or ``peppers`` key is outdated is hashed again and
        saved, as Django does for passwords: one transaction. The method returns ``True`` even if the save fails.
        """
        own = self.own_secret(kind)
        if own is None:
            return self.check_password(raw_password)

        def renew(stored: str) -> None:
            setattr(self, SECRETS[kind], stored)
            try:
                self.save(update_fields=[SECRETS[kind]], condition=Q(**{SECRETS[kind]: own}))
            except Exception:
                setattr(self, SECRETS[kind], own)
                raise

        return peppers.is_right(self._about(kind), raw_password, own, renew)

    def hash_secret(self, kind: str, secret: str) -> str:
        """Return the string to store for a secret of this user: one password hash. Does not send a request."""
        return peppers.hashed(self._about(kind), secret)

    def _about(self, kind: str) -> str:
        return f"{self.pk}|{kind}"

    def set_password(self, raw_password: str | None) -> None:
        """Set the password and clear the secrets, because a user who knew the old password may have set them."""
        super().set_password(raw_password)
        for name in SECRETS.values():
            setattr(self, name, None)

    def check_password(self, raw_password: str | None) -> bool:
        """Check the password as Django does; keep the secrets if the check renews the hash of the password."""
        with self._secrets_kept():
            return super().check_password(raw_password)

    async def acheck_password(self, raw_password: str | None) -> bool:
        """See ``check_password()``."""
        with self._secrets_kept():
            return await super().acheck_password(raw_password)

    @contextmanager
    def _secrets_kept(self) -> Iterator[None]:
        # Deferred attributes remain deferred.
        held = {name: self.__dict__[name] for name in SECRETS.values() if name in self.__dict__}
        try:
            yield
        finally:
            for name in SECRETS.values():
                self.__dict__.pop(name, None)
            self.__dict__.update(held)

    def get_session_auth_hash(self) -> str:
        """Return Django's hash combined with the secrets, so a changed secret ends sessions too."""
        return self._of_secrets(super().get_session_auth_hash())

    def get_session_auth_fallback_hash(self) -> Iterator[str]:
        """Yield the hashes of Django's ``SECRET_KEY_FALLBACKS``, combined with the secrets."""
        yield from map(self._of_secrets, super().get_session_auth_fallback_hash())

    def _of_secrets(self, found: str) -> str:
        secrets = [getattr(self, name) or "" for name in SECRETS.values()]
        return hashlib.sha256("|".join([found, *secrets]).encode()).hexdigest() if any(secrets) else found

    @property
    def ways(self) -> list[AbstractLogin]:
        """The login methods of this object, limited to the kinds in ``LOGIN_WITH``. Does not send a request."""
        wanted = account_settings().login_with
        derived = (each for each in self.derived_objects() if isinstance(each, AbstractLogin))
        return [each for each in derived if ATTRIBUTES.get(each.kind, each.kind.lower()) in wanted]

    @property
    def ways_elsewhere(self) -> list[AbstractLogin]:
        """The external accounts among ``ways``."""
        return [each for each in self.ways if each.kind not in ATTRIBUTES]

    @staticmethod
    def identity_model() -> type[AbstractIdentity]:
        """Return the model of external accounts, for the manager."""
        return model_of(AbstractIdentity)

    def has_identifier(self, kind: str, identifier: str) -> bool:
        """Return whether the user has this identifier of this kind, ignoring case. Does not send a request."""
        more = self.more_emails or () if kind == EMAIL else ()
        return canonical(identifier) in map(canonical, (getattr(self, ATTRIBUTES[kind]) or "", *more))

    @property
    def has_confirmed_email(self) -> bool:
        """Whether the user's current address is confirmed."""
        return self.confirmed_email is not None and self.has_mailbox(self.confirmed_email)

    @property
    def _is_confirmed(self) -> bool | None:
        """The ``confirmed`` value of the current address's login; ``None`` if it needs no confirmation."""
        return True if self.has_confirmed_email else False if self.must_confirm else None

    def has_mailbox(self, address: str) -> bool:
        """Return whether an address is the same mailbox as the user's address. Does not send a request.

        Ignores the case of ASCII letters only. Addresses that are the same for a login, such as with ß and with ss, can
        be different mailboxes.
        """
        return _is_one_mailbox(self.email or "", address)

    def has_confirmed(self, address: str) -> bool:
        """Return whether an address is a confirmed primary or additional address. Does not send a request."""
        known = [*([self.email] if self.has_confirmed_email else []), *(self.more_emails or ())]
        return any(_is_one_mailbox(each, address) for each in known)

    def confirm_email(self) -> None:
        """Mark the current address as confirmed; ``save()`` writes this to the user and to the login item."""
        if not self.has_confirmed_email:
            self.confirmed_at = clock.now()
        self.confirmed_email = self.email or None
        self.must_confirm = None
        self.expires = None

    def await_confirmation(self) -> None:
        """Require a confirmation of a new user's address, as the sign-up page does; ``save()`` writes this.

        The user cannot log in before the confirmation. After ``UNCONFIRMED_LIFETIME`` the user expires, and the user
        name and the address are free again.
        """
        self.must_confirm = True
        lifetime = account_settings().unconfirmed_lifetime
        self.expires = None if lifetime is None else clock.now() + timedelta(seconds=lifetime)

    @property
    def is_overdue(self) -> bool:
        """Whether the address is still unconfirmed after ``UNCONFIRMED_LIFETIME``, so another user can take it.

        The account of a user who logged in before the confirmation does not expire, but its address can be overdue.
        """
        lifetime = account_settings().unconfirmed_lifetime
        if not self.must_confirm or lifetime is None:
            return False
        return clock.now() - self.date_joined > timedelta(seconds=lifetime)

    def is_opened_by(self, kind: str, identifier: str) -> bool:
        """Return whether the user can log in with an identifier: any except an overdue address. Sends no request."""
        return not (self.is_overdue and kind == EMAIL and canonical(identifier) == canonical(self.email or ""))


def _is_one_mailbox(one: str, other: str) -> bool:
    return one == other or (one.isascii() and other.isascii() and one.lower() == other.lower())


def _kinds() -> list[tuple[str, str]]:
    """Return the choices of ``kind``, which are the beginnings of login keys in a user's partition."""
    known = (*ATTRIBUTES, *(provider.upper() for provider in account_settings().providers))
    return [(kind, kind) for kind in known]


class AbstractLogin(models.Model):
    """A login method: an identifier of a user.

    ``password`` is the hash of the kind's separate secret; without it, the user's password applies. ``confirmed`` is
    true for a confirmed e-mail address and false for an address that waits for its confirmation. It is ``None`` if the
    address needs no confirmation, because the code that created the user vouches for it. Each login method, such as an
    external account or a telephone number, has its own ``kind`` and uses the same index.
    """

    user = models.ReferenceAttribute(settings.AUTH_USER_MODEL, on_delete=models.DO_NOTHING, attr_name="userId")
    user_id: str
    kind = models.UnicodeAttribute(max_length=30, choices=_kinds)
    identifier = models.UnicodeAttribute(max_length=255)
    confirmed = models.BooleanAttribute(null=True)
    password = models.UnicodeAttribute(null=True, editable=False, max_length=255)

    objects: ClassVar[LoginManager[Any]] = LoginManager()

    derived_by: ClassVar[str] = "user"

    class Keys:
        primary = models.Key("USER#{user_id}", "{kind}#{identifier}")
        by_identifier = models.IndexKey("gs1", "{kind}#{identifier:canonical}", "USER#{user_id}")

    class Meta:
        abstract = True
        verbose_name = _("login")
        verbose_name_plural = _("logins")

    def __str__(self) -> str:
        return f"{self.kind} {self.identifier}"

    def is_derived(self) -> bool:
        """Return whether the login is derived from the user; a project's code can add logins of other kinds."""
        # A damaged item may have no kind.
        return self.kind in ATTRIBUTES or (self.kind or "").lower() in account_settings().providers


class AbstractIdentity(models.Model):
    """The assignment of an external account to one user, ignoring the case of its subject."""

    provider = models.UnicodeAttribute(max_length=30)
    subject = models.UnicodeAttribute(max_length=255)
    user = models.ReferenceAttribute(
        settings.AUTH_USER_MODEL, on_delete=models.DO_NOTHING, attr_name="userId", related_name="+"
    )
    user_id: str

    derived_by: ClassVar[str] = "user"
    derived_exclusive: ClassVar[bool] = True

    class Keys:
        primary = models.Key("IDENTITY#{provider}#{subject:canonical}", "#METADATA")

    class Meta:
        abstract = True
        default_permissions = ()
        verbose_name = _("identity")
        verbose_name_plural = _("identities")

    def __str__(self) -> str:
        return f"{self.provider} {self.subject}"


class AbstractGroup(auth.AbstractGroup):
    """A group, which grants its permissions to its users. Subclasses declare ``user_set = Members("Membership")``."""

    group_id = models.IdAttribute(prefix="group", attr_name="groupId")

    class Keys:
        primary = models.Key("GROUP#{group_id}", "#METADATA")
        by_name = models.IndexKey("gs1", "GROUP", "{name}#{group_id}")

    class Meta(auth.AbstractGroup.Meta):
        abstract = True


class AbstractMembership(auth.AbstractMembership):
    """The membership of a user in a group."""

    user = models.ReferenceAttribute(
        settings.AUTH_USER_MODEL, on_delete=models.DO_NOTHING, attr_name="userId", related_name="+"
    )
    group = models.ReferenceAttribute("Group", on_delete=models.DO_NOTHING, attr_name="groupId", related_name="+")

    class Keys:
        primary = models.Key("USER#{user_id}", "#GROUP#{group_id}")
        by_group = models.IndexKey("gs1", "GROUP#{group_id}", "USER#{user_id}")

    class Meta(auth.AbstractMembership.Meta):
        abstract = True
        default_permissions = ()


#: The app of the users derives a model from each of these.
DERIVED = (
    *(AbstractLogin, AbstractIdentity, AbstractGroup, AbstractMembership),
    *(AbstractLoginFailures, AbstractMailsAsked),
)


def user_model() -> type[AbstractUser]:
    """Return the installed user model; raise ``ConfigurationError`` if none is derived from ``AbstractUser``."""
    return model_of(AbstractUser)
