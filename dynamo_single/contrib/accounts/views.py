"""The pages around accounts: Django's own views with this app's forms and templates, and those for addresses.

Include ``dynamo_single.contrib.accounts.urls``. It has the names of ``django.contrib.auth.urls``, and more. Every page
extends ``accounts/base.html``, which a project may replace.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from django.conf import settings
from django.contrib.auth import views
from django.contrib.auth.decorators import login_not_required
from django.contrib.auth.mixins import LoginRequiredMixin
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, resolve_url
from django.urls import reverse_lazy
from django.utils.decorators import method_decorator
from django.utils.http import urlsafe_base64_decode
from django.utils.translation import gettext_lazy as _
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters
from django.views.generic import FormView, TemplateView

from dynamo_single.contrib.accounts import addresses, forms
from dynamo_single.contrib.accounts.conf import account_settings
from dynamo_single.contrib.accounts.limits import mail_limits
from dynamo_single.contrib.accounts.models import AbstractUser, user_model
from dynamo_single.contrib.accounts.proofs import codes, tokens


def _counts_mail(form_valid: Callable[[Any, Any], HttpResponse]) -> Callable[[Any, Any], HttpResponse]:
    """Before a mail is sent to an address that was typed, or to its holder: as many as ``ACCOUNTS`` allows."""

    @wraps(form_valid)
    def counted(self: Any, form: Any) -> HttpResponse:
        try:
            mail_limits.count(self.request, form.cleaned_data["email"])
        except mail_limits.TooManyMails as refused:
            form.add_error("email", forms.too_many_mails(refused.wait))
            answer: HttpResponse = self.form_invalid(form)
            return answer
        return form_valid(self, form)

    return counted


class LoginView(views.LoginView):
    """Log in with what ``LOGIN_WITH`` allows, in one field."""

    authentication_form = forms.LoginForm
    template_name = "accounts/login.html"
    extra_context = {"title": _("Log in")}  # noqa: RUF012 - as Django declares it


class LogoutView(views.LogoutView):
    """Log out: one DeleteItem."""

    template_name = "accounts/logged_out.html"


class PasswordChangeView(views.PasswordChangeView):
    """Change one's password; other sessions end, this one stays."""

    form_class = forms.PasswordChangeForm
    template_name = "accounts/password_change.html"
    title = _("Change your password")

    def get_form_kwargs(self) -> dict[str, object]:
        """The form counts wrong passwords by the request's address."""
        return {**super().get_form_kwargs(), "request": self.request}


class PasswordChangeDoneView(views.PasswordChangeDoneView):
    """The password was changed."""

    template_name = "accounts/password_change_done.html"
    title = _("Your password was changed")


class PasswordResetView(views.PasswordResetView):
    """Ask for a mail with a link that sets a new password."""

    token_generator = tokens.ResetTokens()
    form_class = forms.PasswordResetForm
    template_name = "accounts/password_reset.html"
    email_template_name = "accounts/mail/password_reset.txt"
    subject_template_name = "accounts/mail/password_reset_subject.txt"
    title = _("Set a new password")

    @_counts_mail
    def form_valid(self, form: Any) -> HttpResponse:
        """Send the mail, if there is anybody to send it to; the answer does not tell."""
        return super().form_valid(form)


class PasswordResetDoneView(views.PasswordResetDoneView):
    """The mail was sent, if there was anybody to send it to."""

    template_name = "accounts/password_reset_done.html"
    title = _("Look into your mail")


class PasswordResetConfirmView(views.PasswordResetConfirmView):
    """Set a new password with the link from the mail."""

    token_generator = tokens.ResetTokens()
    form_class = forms.ResetPasswordForm
    template_name = "accounts/password_reset_confirm.html"
    title = _("Set a new password")

    def get_user(self, uidb64: str) -> AbstractUser | None:
        """The user as stored now, strongly consistent: a link that was used opens nothing a moment later."""
        try:
            pk = urlsafe_base64_decode(uidb64).decode()
        except ValueError:
            return None
        return user_model().objects.consistent().filter(pk=pk).first()


class PasswordResetCompleteView(views.PasswordResetCompleteView):
    """The new password is set."""

    template_name = "accounts/password_reset_complete.html"
    title = _("Your new password is set")


@method_decorator(never_cache, name="dispatch")
class AccountView(LoginRequiredMixin, TemplateView):
    """What somebody's own account is, and what can be changed."""

    template_name = "accounts/account.html"
    extra_context = {"title": _("Your account")}  # noqa: RUF012 - as Django declares it

    def get_context_data(self, **kwargs: object) -> dict[str, object]:
        """Whether a telephone number can be added, and which kinds can have a secret of their own."""
        secrets = account_settings().secrets
        return super().get_context_data(can_add_phone=codes.can_send(), secrets=secrets, **kwargs)


@method_decorator((login_not_required, never_cache, sensitive_post_parameters()), name="dispatch")
class SignUpView(FormView):  # type: ignore[type-arg]  # not generic at run time
    """Make an account; the answer is the same whether or not the address has one."""

    form_class = forms.SignUpForm
    template_name = "accounts/sign_up.html"
    success_url = reverse_lazy("sign_up_done")
    extra_context = {"title": _("Sign up")}  # noqa: RUF012 - as Django declares it

    def dispatch(self, request: HttpRequest, *args: object, **kwargs: object) -> HttpResponseBase:
        """Send whoever is logged in away."""
        if request.user.is_authenticated:
            return redirect(resolve_url(settings.LOGIN_REDIRECT_URL))
        return super().dispatch(request, *args, **kwargs)

    @_counts_mail
    def form_valid(self, form: forms.SignUpForm) -> HttpResponse:
        """Store the user, and send a mail."""
        return super().form_valid(form) if form.sign_up(self.request) else self.form_invalid(form)


@method_decorator(login_not_required, name="dispatch")
class MailSentView(TemplateView):
    """A mail was sent, which leads on."""

    template_name = "accounts/mail_sent.html"
    extra_context = {"title": _("Look into your mail")}  # noqa: RUF012 - as Django declares it


@method_decorator((login_not_required, never_cache), name="dispatch")
class SendAgainView(FormView):  # type: ignore[type-arg]  # not generic at run time
    """Send the confirmation link again."""

    form_class = forms.AddressForm
    template_name = "accounts/send_again.html"
    success_url = reverse_lazy("sign_up_done")
    extra_context = {"title": _("Send the link again")}  # noqa: RUF012 - as Django declares it

    @_counts_mail
    def form_valid(self, form: forms.AddressForm) -> HttpResponse:
        """Send it, if anybody waits for it; the answer does not tell."""
        addresses.send_again(self.request, form.cleaned_data["email"])
        return super().form_valid(form)


@method_decorator((login_not_required, never_cache), name="dispatch")
class ConfirmEmailView(TemplateView):
    """Confirm an address with the link from the mail: by a button, since programs that guard mailboxes follow links."""

    template_name = "accounts/confirm_email.html"

    def get_context_data(self, **kwargs: object) -> dict[str, object]:
        """What the link says, or that it holds no more."""
        said = tokens.read(self.kwargs["token"])
        title = _("This link does not work") if said is None else _("Confirm your e-mail address")
        return super().get_context_data(title=title, said=said, **kwargs)

    def post(self, request: HttpRequest, token: str) -> HttpResponse:
        """Confirm."""
        if addresses.confirm(request, token) is None:
            return self.render_to_response({"title": _("This link does not work"), "said": None})
        return redirect("confirm_email_done")


@method_decorator(login_not_required, name="dispatch")
class ConfirmEmailDoneView(TemplateView):
    """The address is confirmed."""

    template_name = "accounts/confirm_email_done.html"
    extra_context = {"title": _("Your e-mail address is confirmed")}  # noqa: RUF012 - as Django declares it


@method_decorator((never_cache, sensitive_post_parameters()), name="dispatch")
class EmailChangeView(LoginRequiredMixin, FormView):  # type: ignore[type-arg]  # not generic at run time
    """Ask for another address; it takes the old one's place when the link in the mail to it is followed."""

    is_more = False
    form_class = forms.AddressChangeForm
    template_name = "accounts/email_change.html"
    success_url = reverse_lazy("email_change_done")
    extra_context = {"title": _("Change your e-mail address")}  # noqa: RUF012 - as Django declares it

    def get_form_kwargs(self) -> dict[str, object]:
        """The form checks the user's password."""
        return {**super().get_form_kwargs(), "user": self.request.user, "request": self.request}

    @_counts_mail
    def form_valid(self, form: forms.AddressChangeForm) -> HttpResponse:
        """Send the link; the answer does not tell whether the address has an account."""
        user: Any = self.request.user
        addresses.request_change(self.request, user, form.cleaned_data["email"], is_more=self.is_more)
        return super().form_valid(form)


class EmailAddView(EmailChangeView):
    """Add a further address; it is a way to log in once the link in the mail to it is followed."""

    is_more = True
    form_class = forms.AddressAddForm
    template_name = "accounts/email_add.html"
    extra_context = {"title": _("Add an e-mail address")}  # noqa: RUF012 - as Django declares it


class EmailChangeDoneView(LoginRequiredMixin, MailSentView):
    """The link was sent to the new address."""
