"""The views of tokens, and one that a token opens."""

from __future__ import annotations

from typing import Any

from django.urls import path
from rest_framework.permissions import IsAuthenticated
from rest_framework.response import Response
from rest_framework.views import APIView

from dynamo_single.contrib.rest_framework.authentication import TokenAuthentication
from dynamo_single.contrib.rest_framework.views import DeleteToken, IssueToken


class WhoAmI(APIView):
    """The user of a token."""

    authentication_classes = (TokenAuthentication,)
    permission_classes = (IsAuthenticated,)

    def get(self, request: Any) -> Response:
        """The user's key."""
        return Response({"user": request.user.pk})


urlpatterns = [
    path("token/", IssueToken.as_view()),
    path("logout/", DeleteToken.as_view()),
    path("me/", WhoAmI.as_view()),
]
