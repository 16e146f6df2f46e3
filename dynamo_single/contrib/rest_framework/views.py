"""Views that issue and delete tokens; a project puts them into its ``urls.py``."""

from __future__ import annotations

from datetime import timedelta
from typing import ClassVar

from rest_framework import status
from rest_framework.authtoken.serializers import AuthTokenSerializer
from rest_framework.permissions import IsAuthenticated
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from dynamo_single.contrib.rest_framework.authentication import TokenAuthentication
from dynamo_single.contrib.rest_framework.models import Token


class IssueToken(APIView):  # type: ignore[misc]  # the package has no types
    """``POST`` with ``username`` and ``password`` returns ``{"token": ...}``: the login's requests and one PutItem.

    The login backends take part, with their limits of wrong passwords. A token is valid for ``lifetime``.
    """

    authentication_classes: ClassVar = ()
    permission_classes: ClassVar = ()
    lifetime: timedelta | None = timedelta(days=90)

    def post(self, request: Request) -> Response:
        """Issue a token."""
        serializer = AuthTokenSerializer(data=request.data, context={"request": request, "view": self})
        serializer.is_valid(raise_exception=True)
        _token, text = Token.objects.issue(serializer.validated_data["user"], lifetime=self.lifetime)
        return Response({"token": text}, status=status.HTTP_201_CREATED, headers={"Cache-Control": "no-store"})


class DeleteToken(APIView):  # type: ignore[misc]  # as above
    """``DELETE`` deletes the token that authenticates the request: one DeleteItem more."""

    authentication_classes: ClassVar = (TokenAuthentication,)
    permission_classes: ClassVar = (IsAuthenticated,)

    def delete(self, request: Request) -> Response:
        """Delete the token."""
        request.auth.delete()
        return Response(status=status.HTTP_204_NO_CONTENT)
