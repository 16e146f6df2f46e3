"""Abstract models of users, of one item for each way that a user can log in, and of groups.

A project derives all of them, in the app of its users, or installs the app ``dynamo_single.contrib.accounts.ready``.

A user's items share a partition: the user at ``#METADATA``, the ways to log in and the memberships of groups beside it.
They, and the claims that keep user names and e-mail addresses unique, are written in one transaction.
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
    """A user with an account, who logs in by e-mail address, by user name or by telephone number.

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

    #: In E.164, and known to be the user's: it is stored once it is confirmed.
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
    #: Further addresses that are known to be the user's; no other user has one of them, as the first or a further one.
    more_emails = models.UnicodeSetAttribute(editable=False, attr_name="moreEmails")
    #: Accounts elsewhere that are known to be the user's, each as its provider and the subject there.
    identities = models.UnicodeSetAttribute(editable=False)
    #: Peppered hashes of the secrets for the number, the name and all addresses, instead of the account's password.
    phone_secret = models.UnicodeAttribute(null=True, editable=False, max_length=255, attr_name="phoneSecret")
    username_secret = models.UnicodeAttribute(null=True, editable=False, max_length=255, attr_name="usernameSecret")
    email_secret = models.UnicodeAttribute(null=True, editable=False, max_length=255, attr_name="emailSecret")
    #: The address that is known to be the user's; another one in ``email`` is not confirmed by it.
    confirmed_email = models.EmailAttribute(null=True, editable=False, attr_name="confirmedEmail")
    #: When another address was last added or confirmed.
    confirmed_at = models.TimestampAttribute(null=True, editable=False, attr_name="confirmedAt")
    #: Somebody who signed up and has not confirmed the address yet.
    must_confirm = models.BooleanAttribute(null=True, editable=False, attr_name="mustConfirm")
    #: When somebody who signed up and neither confirmed the address nor logged in gives name and address up.
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
        """One login for each e-mail address, the user name, the telephone number and each account elsewhere.

        The latter have an identity too, which is one user's. And the memberships.
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
        """Django's checks, and E001 and E002: the app of the pages, and the other models of the users' app."""
        return [*super().check(**kwargs), *problems(cls, DERIVED)]

    def own_secret(self, kind: str) -> str | None:
        """The hash of the secret that opens this kind alone; ``None`` where the account's password does."""
        name = SECRETS.get(kind)
        wanted = name is not None and ATTRIBUTES[kind] in account_settings().secrets
        return getattr(self, name) or None if name is not None and wanted else None

    def check_login(self, kind: str, raw_password: str) -> bool:
        """Whether this opens the user's way of a kind: its own secret if it has one, the password otherwise.

        One hash in any case. As with Django's passwords, a hash of an older hasher is renewed, and so is one without
        the current key of ``peppers``: one transaction. The secret opens even if that fails.
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
        """Return the text to store for a secret of this user's: one password hash. Sends no request."""
        return peppers.hashed(self._about(kind), secret)

    def _about(self, kind: str) -> str:
        return f"{self.pk}|{kind}"

    def set_password(self, raw_password: str | None) -> None:
        """Django's; a new password takes the secrets along, which whoever knew the old one may have set."""
        super().set_password(raw_password)
        for name in SECRETS.values():
            setattr(self, name, None)

    def check_password(self, raw_password: str | None) -> bool:
        """Django's; a hash that is renewed on the way is no new password."""
        with self._secrets_kept():
            return super().check_password(raw_password)

    async def acheck_password(self, raw_password: str | None) -> bool:
        """See ``check_password()``."""
        with self._secrets_kept():
            return await super().acheck_password(raw_password)

    @contextmanager
    def _secrets_kept(self) -> Iterator[None]:
        # Those that were left out of reading stay so.
        held = {name: self.__dict__[name] for name in SECRETS.values() if name in self.__dict__}
        try:
            yield
        finally:
            for name in SECRETS.values():
                self.__dict__.pop(name, None)
            self.__dict__.update(held)

    def get_session_auth_hash(self) -> str:
        """Django's; a changed secret ends sessions too."""
        return self._of_secrets(super().get_session_auth_hash())

    def get_session_auth_fallback_hash(self) -> Iterator[str]:
        """Django's, of the former keys of the site."""
        yield from map(self._of_secrets, super().get_session_auth_fallback_hash())

    def _of_secrets(self, found: str) -> str:
        secrets = [getattr(self, name) or "" for name in SECRETS.values()]
        return hashlib.sha256("|".join([found, *secrets]).encode()).hexdigest() if any(secrets) else found

    @property
    def ways(self) -> list[AbstractLogin]:
        """The ways to log in as this object has them, of the kinds of ``LOGIN_WITH``. Sends nothing."""
        wanted = account_settings().login_with
        derived = (each for each in self.derived_objects() if isinstance(each, AbstractLogin))
        return [each for each in derived if ATTRIBUTES.get(each.kind, each.kind.lower()) in wanted]

    @property
    def ways_elsewhere(self) -> list[AbstractLogin]:
        """The accounts elsewhere among these."""
        return [each for each in self.ways if each.kind not in ATTRIBUTES]

    @staticmethod
    def identity_model() -> type[AbstractIdentity]:
        """The model of accounts elsewhere, for the manager."""
        return model_of(AbstractIdentity)

    def has_identifier(self, kind: str, identifier: str) -> bool:
        """Whether this is the user's identifier of this kind, whatever its case. Sends nothing."""
        more = self.more_emails or () if kind == EMAIL else ()
        return canonical(identifier) in map(canonical, (getattr(self, ATTRIBUTES[kind]) or "", *more))

    @property
    def has_confirmed_email(self) -> bool:
        """Whether the user's present address is known to be the user's."""
        return self.confirmed_email is not None and self.has_mailbox(self.confirmed_email)

    @property
    def _is_confirmed(self) -> bool | None:
        """What the login of the present address says; ``None`` where nobody is asked to confirm it."""
        return True if self.has_confirmed_email else False if self.must_confirm else None

    def has_mailbox(self, address: str) -> bool:
        """Whether mail to an address goes where mail to the user goes. Sends nothing.

        Case does not count within ASCII. Letters that are one to a login, such as ß and ss, can be two mailboxes.
        """
        return _is_one_mailbox(self.email or "", address)

    def has_confirmed(self, address: str) -> bool:
        """Whether mail to an address is known to go to the user, as the first one or a further one. Sends nothing."""
        known = [*([self.email] if self.has_confirmed_email else []), *(self.more_emails or ())]
        return any(_is_one_mailbox(each, address) for each in known)

    def confirm_email(self) -> None:
        """Take the present address for the user's own; ``save()`` writes it, to the login item too."""
        if not self.has_confirmed_email:
            self.confirmed_at = clock.now()
        self.confirmed_email = self.email or None
        self.must_confirm = None
        self.expires = None

    def await_confirmation(self) -> None:
        """Let a new user wait for a confirmation, as whoever signs up does; ``save()`` writes it.

        Until then nobody logs in with it, and after ``UNCONFIRMED_LIFETIME`` it expires, with the name and the address.
        """
        self.must_confirm = True
        lifetime = account_settings().unconfirmed_lifetime
        self.expires = None if lifetime is None else clock.now() + timedelta(seconds=lifetime)

    @property
    def is_overdue(self) -> bool:
        """Whether the address waits for a confirmation for longer than ``UNCONFIRMED_LIFETIME``: it may be another's.

        Somebody who may log in before the confirmation, and did, has an account that does not expire.
        """
        lifetime = account_settings().unconfirmed_lifetime
        if not self.must_confirm or lifetime is None:
            return False
        return clock.now() - self.date_joined > timedelta(seconds=lifetime)

    def is_opened_by(self, kind: str, identifier: str) -> bool:
        """Whether an identifier of the user opens the account: any but an address that is overdue. Sends nothing."""
        return not (self.is_overdue and kind == EMAIL and canonical(identifier) == canonical(self.email or ""))


def _is_one_mailbox(one: str, other: str) -> bool:
    return one == other or (one.isascii() and other.isascii() and one.lower() == other.lower())


def _kinds() -> list[tuple[str, str]]:
    """The kinds that the settings have: what a key in a user's partition may begin with beside other children's."""
    known = (*ATTRIBUTES, *(provider.upper() for provider in account_settings().providers))
    return [(kind, kind) for kind in known]


class AbstractLogin(models.Model):
    """One way for a user to log in: what is typed to say who one is.

    The password is the user's, unless the kind has a secret of its own: ``password`` is its hash then. ``confirmed``
    says whether an e-mail address is known to be the user's: ``False`` waits for that, and ``None`` is what nobody is
    asked to confirm, since whoever made the user answers for it. A further way (an account elsewhere, a telephone
    number) is a further ``kind``, found by the same index.
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
        """Logins of the kinds of ``LOGIN_WITH`` follow from the user; others are made by whoever adds them."""
        # A damaged item may have no kind.
        return self.kind in ATTRIBUTES or (self.kind or "").lower() in account_settings().providers


class AbstractIdentity(models.Model):
    """That an account elsewhere is one user's, whatever its case."""

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
    """A group of users, who have its permissions. A subclass declares ``user_set = Members("Membership")``."""

    group_id = models.IdAttribute(prefix="group", attr_name="groupId")

    class Keys:
        primary = models.Key("GROUP#{group_id}", "#METADATA")
        by_name = models.IndexKey("gs1", "GROUP", "{name}#{group_id}")

    class Meta(auth.AbstractGroup.Meta):
        abstract = True


class AbstractMembership(auth.AbstractMembership):
    """That a user is in a group."""

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


#: What the app of the users derives a model from each of.
DERIVED = (
    *(AbstractLogin, AbstractIdentity, AbstractGroup, AbstractMembership),
    *(AbstractLoginFailures, AbstractMailsAsked),
)


def user_model() -> type[AbstractUser]:
    """Return the installed user model; raise ``ConfigurationError`` if none is derived from ``AbstractUser``."""
    return model_of(AbstractUser)
