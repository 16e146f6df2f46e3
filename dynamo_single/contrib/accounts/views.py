"""The pages of accounts: Django's views with this app's forms and templates, and the pages for addresses.

Include ``dynamo_single.contrib.accounts.urls``, which has the names of ``django.contrib.auth.urls`` and more. Each page
extends ``accounts/base.html``, which a project can override.
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
    """Decorate ``form_valid()`` to count the e-mail first, and to show an error above the limits of ``ACCOUNTS``."""

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
    """Log in with any identifier of ``LOGIN_WITH``, in one field."""

    authentication_form = forms.LoginForm
    template_name = "accounts/login.html"
    extra_context = {"title": _("Log in")}  # noqa: RUF012 - as Django declares it


class LogoutView(views.LogoutView):
    """Log out: one DeleteItem."""

    template_name = "accounts/logged_out.html"


class PasswordChangeView(views.PasswordChangeView):
    """Change the user's password; this session continues, and the others end."""

    form_class = forms.PasswordChangeForm
    template_name = "accounts/password_change.html"
    title = _("Change your password")

    def get_form_kwargs(self) -> dict[str, object]:
        """Pass the request to the form, which counts wrong passwords by client address."""
        return {**super().get_form_kwargs(), "request": self.request}


class PasswordChangeDoneView(views.PasswordChangeDoneView):
    """Confirm that the password has changed."""

    template_name = "accounts/password_change_done.html"
    title = _("Your password was changed")


class PasswordResetView(views.PasswordResetView):
    """Request an e-mail with a link that sets a new password."""

    token_generator = tokens.ResetTokens()
    form_class = forms.PasswordResetForm
    template_name = "accounts/password_reset.html"
    email_template_name = "accounts/mail/password_reset.txt"
    subject_template_name = "accounts/mail/password_reset_subject.txt"
    title = _("Set a new password")

    @_counts_mail
    def form_valid(self, form: Any) -> HttpResponse:
        """Send the e-mail if a user has the address; the response does not reveal this."""
        return super().form_valid(form)


class PasswordResetDoneView(views.PasswordResetDoneView):
    """Confirm the request for an e-mail, without revealing whether a user has the address."""

    template_name = "accounts/password_reset_done.html"
    title = _("Check your e-mail")


class PasswordResetConfirmView(views.PasswordResetConfirmView):
    """Set a new password with the link from the e-mail."""

    token_generator = tokens.ResetTokens()
    form_class = forms.ResetPasswordForm
    template_name = "accounts/password_reset_confirm.html"
    title = _("Set a new password")

    def get_user(self, uidb64: str) -> AbstractUser | None:
        """Return the user with a strongly consistent read, so a used link is invalid immediately."""
        try:
            pk = urlsafe_base64_decode(uidb64).decode()
        except ValueError:
            return None
        return user_model().objects.consistent().filter(pk=pk).first()


class PasswordResetCompleteView(views.PasswordResetCompleteView):
    """Confirm that the new password is set."""

    template_name = "accounts/password_reset_complete.html"
    title = _("Your new password is set")


@method_decorator(never_cache, name="dispatch")
class AccountView(LoginRequiredMixin, TemplateView):
    """The account page of the logged-in user, with links to its changes."""

    template_name = "accounts/account.html"
    extra_context = {"title": _("Your account")}  # noqa: RUF012 - as Django declares it

    def get_context_data(self, **kwargs: object) -> dict[str, object]:
        """Add whether a telephone number can be added, and the kinds that can have a separate secret."""
        secrets = account_settings().secrets
        return super().get_context_data(can_add_phone=codes.can_send(), secrets=secrets, **kwargs)


@method_decorator((login_not_required, never_cache, sensitive_post_parameters()), name="dispatch")
class SignUpView(FormView):  # type: ignore[type-arg]  # not generic at run time
    """Create an account; the response does not reveal whether the address already has an account."""

    form_class = forms.SignUpForm
    template_name = "accounts/sign_up.html"
    success_url = reverse_lazy("sign_up_done")
    extra_context = {"title": _("Sign up")}  # noqa: RUF012 - as Django declares it

    def dispatch(self, request: HttpRequest, *args: object, **kwargs: object) -> HttpResponseBase:
        """Redirect users who are already logged in."""
        if request.user.is_authenticated:
            return redirect(resolve_url(settings.LOGIN_REDIRECT_URL))
        return super().dispatch(request, *args, **kwargs)

    @_counts_mail
    def form_valid(self, form: forms.SignUpForm) -> HttpResponse:
        """Store the user and send an e-mail."""
        return super().form_valid(form) if form.sign_up(self.request) else self.form_invalid(form)


@method_decorator(login_not_required, name="dispatch")
class MailSentView(TemplateView):
    """Confirm that an e-mail with a link was sent."""

    template_name = "accounts/mail_sent.html"
    extra_context = {"title": _("Check your e-mail")}  # noqa: RUF012 - as Django declares it


@method_decorator((login_not_required, never_cache), name="dispatch")
class SendAgainView(FormView):  # type: ignore[type-arg]  # not generic at run time
    """Send the confirmation link again."""

    form_class = forms.AddressForm
    template_name = "accounts/send_again.html"
    success_url = reverse_lazy("sign_up_done")
    extra_context = {"title": _("Send the link again")}  # noqa: RUF012 - as Django declares it

    @_counts_mail
    def form_valid(self, form: forms.AddressForm) -> HttpResponse:
        """Send the link if a user with this address has not confirmed it; the response does not reveal this."""
        addresses.send_again(self.request, form.cleaned_data["email"])
        return super().form_valid(form)


@method_decorator((login_not_required, never_cache), name="dispatch")
class ConfirmEmailView(TemplateView):
    """Confirm an address with the link from the e-mail and a button, because e-mail scanners follow links."""

    template_name = "accounts/confirm_email.html"

    def get_context_data(self, **kwargs: object) -> dict[str, object]:
        """Add the content of the link, or ``None`` if the link is invalid."""
        said = tokens.read(self.kwargs["token"])
        title = _("This link does not work") if said is None else _("Confirm your e-mail address")
        return super().get_context_data(title=title, said=said, **kwargs)

    def post(self, request: HttpRequest, token: str) -> HttpResponse:
        """Confirm the address, or show that the link is invalid."""
        if addresses.confirm(request, token) is None:
            return self.render_to_response({"title": _("This link does not work"), "said": None})
        return redirect("confirm_email_done")


@method_decorator(login_not_required, name="dispatch")
class ConfirmEmailDoneView(TemplateView):
    """Show that the address is confirmed."""

    template_name = "accounts/confirm_email_done.html"
    extra_context = {"title": _("Your e-mail address is confirmed")}  # noqa: RUF012 - as Django declares it


@method_decorator((never_cache, sensitive_post_parameters()), name="dispatch")
class EmailChangeView(LoginRequiredMixin, FormView):  # type: ignore[type-arg]  # not generic at run time
    """Request a new address; it replaces the old address after the user follows the link in the e-mail to it."""

    is_more = False
    form_class = forms.AddressChangeForm
    template_name = "accounts/email_change.html"
    success_url = reverse_lazy("email_change_done")
    extra_context = {"title": _("Change your e-mail address")}  # noqa: RUF012 - as Django declares it

    def get_form_kwargs(self) -> dict[str, object]:
        """Pass the user and the request to the form, which checks the password."""
        return {**super().get_form_kwargs(), "user": self.request.user, "request": self.request}

    @_counts_mail
    def form_valid(self, form: forms.AddressChangeForm) -> HttpResponse:
        """Send the link; the response does not reveal whether the address has an account."""
        user: Any = self.request.user
        addresses.request_change(self.request, user, form.cleaned_data["email"], is_more=self.is_more)
        return super().form_valid(form)


class EmailAddView(EmailChangeView):
    """Request an additional address; it is a login method after the user follows the link in the e-mail to it."""

    is_more = True
    form_class = forms.AddressAddForm
    template_name = "accounts/email_add.html"
    extra_context = {"title": _("Add an e-mail address")}  # noqa: RUF012 - as Django declares it


class EmailChangeDoneView(LoginRequiredMixin, MailSentView):
    """Confirm that the link was sent to the new address."""
