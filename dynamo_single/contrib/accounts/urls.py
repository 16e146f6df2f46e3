"""The URLs of the account pages: ``path("accounts/", include("dynamo_single.contrib.accounts.urls"))``.

The first group has Django's names, so you can include this module instead of ``django.contrib.auth.urls``.
"""

from django.urls import path

from dynamo_single.contrib.accounts import views, way_views

urlpatterns = [
    path("login/", views.LoginView.as_view(), name="login"),
    path("logout/", views.LogoutView.as_view(), name="logout"),
    path("password_change/", views.PasswordChangeView.as_view(), name="password_change"),
    path("password_change/done/", views.PasswordChangeDoneView.as_view(), name="password_change_done"),
    path("password_reset/", views.PasswordResetView.as_view(), name="password_reset"),
    path("password_reset/done/", views.PasswordResetDoneView.as_view(), name="password_reset_done"),
    path("reset/<uidb64>/<token>/", views.PasswordResetConfirmView.as_view(), name="password_reset_confirm"),
    path("reset/done/", views.PasswordResetCompleteView.as_view(), name="password_reset_complete"),
    path("", views.AccountView.as_view(), name="account"),
    path("sign_up/", views.SignUpView.as_view(), name="sign_up"),
    path("sign_up/done/", views.MailSentView.as_view(), name="sign_up_done"),
    path("sign_up/again/", views.SendAgainView.as_view(), name="send_again"),
    path("confirm/done/", views.ConfirmEmailDoneView.as_view(), name="confirm_email_done"),
    path("confirm/<token>/", views.ConfirmEmailView.as_view(), name="confirm_email"),
    path("email_change/", views.EmailChangeView.as_view(), name="email_change"),
    path("email_change/done/", views.EmailChangeDoneView.as_view(), name="email_change_done"),
    path("email_add/", views.EmailAddView.as_view(), name="email_add"),
    path("email_primary/", way_views.PrimaryAddressView.as_view(), name="email_primary"),
    path("phone/", way_views.PhoneView.as_view(), name="phone"),
    path("phone/code/", way_views.CodeView.as_view(), name="phone_code"),
    path("secret/<kind>/", way_views.SecretView.as_view(), name="login_secret"),
    path("remove/<kind>/", way_views.RemoveWayView.as_view(), name="remove_way"),
]
