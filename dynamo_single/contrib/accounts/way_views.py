"""The pages on which users add and remove their login methods."""

from __future__ import annotations

from typing import Any

from django.contrib.auth import update_session_auth_hash
from django.contrib.auth.mixins import LoginRequiredMixin
from django.core.exceptions import ValidationError
from django.http import Http404, HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.urls import reverse_lazy
from django.utils.decorators import method_decorator
from django.utils.translation import gettext_lazy as _
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters, sensitive_variables
from django.views.generic import FormView

from dynamo_single.contrib.accounts import forms
from dynamo_single.contrib.accounts.conf import EMAIL, PHONE, account_settings
from dynamo_single.contrib.accounts.limits import mail_limits
from dynamo_single.contrib.accounts.logins.identifiers import parted
from dynamo_single.contrib.accounts.proofs import codes
from dynamo_single.contrib.accounts.ways import LastWay
from dynamo_single.exceptions import InvalidValue, UniqueViolation


@method_decorator((never_cache, sensitive_post_parameters()), name="dispatch")
class OwnFormView(LoginRequiredMixin, FormView):  # type: ignore[type-arg]  # not generic at run time
    """A form of the logged-in user that requires the user's password."""

    success_url = reverse_lazy("account")

    def get_form_kwargs(self) -> dict[str, Any]:
        """Pass the user and the request to the form, which checks the password."""
        return {**super().get_form_kwargs(), "user": self.request.user, "request": self.request}

    def refused(self, form: Any, field: str | None, error: ValidationError) -> HttpResponse:
        """Show the form again."""
        form.add_error(field, error)
        answer: HttpResponse = self.form_invalid(form)
        return answer


class PhoneView(OwnFormView):
    """Send a code that confirms a telephone number."""

    form_class = forms.PhoneForm
    template_name = "accounts/phone.html"
    success_url = reverse_lazy("phone_code")
    extra_context = {"title": _("Add a telephone number")}  # noqa: RUF012 - as Django declares it

    def dispatch(self, request: HttpRequest, *args: object, **kwargs: object) -> HttpResponseBase:
        """Return a 404 if the app cannot send codes."""
        if not codes.can_send():
            raise Http404
        return super().dispatch(request, *args, **kwargs)

    def form_valid(self, form: forms.PhoneForm) -> HttpResponse:
        """Send the code; the response does not reveal whether the number has an account."""
        try:
            codes.send(self.request, form.cleaned_data["phone"])
        except mail_limits.TooManyMails as refused:
            return self.refused(form, "phone", forms.too_many_mails(refused.wait))
        return super().form_valid(form)


@method_decorator(never_cache, name="dispatch")
class CodeView(LoginRequiredMixin, FormView):  # type: ignore[type-arg]  # not generic at run time
    """Check the code and add the number as a login method."""

    form_class = forms.CodeForm
    template_name = "accounts/phone_code.html"
    success_url = reverse_lazy("account")
    extra_context = {"title": _("Enter the code")}  # noqa: RUF012 - as Django declares it

    def form_valid(self, form: forms.CodeForm) -> HttpResponse:
        """Add the number, or show the form with the error."""
        user: Any = self.request.user
        try:
            right = codes.confirm(self.request, user, form.cleaned_data["code"].strip())
        except UniqueViolation:
            error = ValidationError(_("Another account has this telephone number."), "unique")
        else:
            if right:
                return super().form_valid(form)
            error = ValidationError(_("The code is incorrect or has expired."), "wrong_code")
        form.add_error("code", error)
        answer: HttpResponse = self.form_invalid(form)
        return answer


class SecretView(OwnFormView):
    """Set or remove a separate secret for the telephone number, the user name, or the e-mail addresses."""

    form_class = forms.SecretForm
    template_name = "accounts/secret.html"
    extra_context = {"title": _("Separate secret")}  # noqa: RUF012 - as Django declares it

    def get_form_kwargs(self) -> dict[str, Any]:
        """Pass the minimum length to the form; return a 404 for a kind that cannot have a secret."""
        least = account_settings().secrets.get(self.kwargs["kind"])
        if least is None or not getattr(self.request.user, self.kwargs["kind"]):
            raise Http404
        return {**super().get_form_kwargs(), "least": least}

    @sensitive_variables()
    def form_valid(self, form: forms.SecretForm) -> HttpResponse:
        """Save the secret, which ends the user's other sessions."""
        user: Any = self.request.user
        user.logins.set_secret(self.kwargs["kind"], form.cleaned_data["secret"] or None)
        update_session_auth_hash(self.request, user)
        return super().form_valid(form)


class RemoveWayView(OwnFormView):
    """Remove an e-mail address, the telephone number or an external account, unless it is the last login method."""

    form_class = forms.PasswordForm
    template_name = "accounts/remove_way.html"
    extra_context = {"title": _("Remove a login method")}  # noqa: RUF012 - as Django declares it

    def form_valid(self, form: forms.PasswordForm) -> HttpResponse:
        """Remove the login method, or show the form with the error."""
        user: Any = self.request.user
        given = [self.kwargs["kind"], *([self.request.GET["subject"]] if "subject" in self.request.GET else [])]
        held = [[*parted(each)] for each in user.identities or ()] + [[EMAIL, each] for each in user.more_emails or ()]
        if given not in ([EMAIL], [PHONE], *held):
            raise Http404
        try:
            user.logins.remove(*given)
        except LastWay:
            text = _("This is your only login method. Add another login method first.")
            return self.refused(form, None, ValidationError(text, "last_way"))
        except InvalidValue:
            text = _("This is your primary address. Make another address primary before you remove it.")
            return self.refused(form, None, ValidationError(text, "first_address"))
        return super().form_valid(form)


class PrimaryAddressView(OwnFormView):
    """Make an additional address the primary address, which receives the e-mails."""

    form_class = forms.PasswordForm
    template_name = "accounts/email_primary.html"
    extra_context = {"title": _("Change the primary e-mail address")}  # noqa: RUF012 - as Django declares it

    def form_valid(self, form: forms.PasswordForm) -> HttpResponse:
        """Save the new primary address."""
        user: Any = self.request.user
        address = self.request.GET.get("address", "")
        if address not in (user.more_emails or ()):
            raise Http404
        user.logins.make_primary(address)
        return super().form_valid(form)
