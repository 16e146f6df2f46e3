"""Two organizations with members, which do not see each other."""

from django.contrib.auth import get_user_model
from django.test import TestCase
from dynamo_single.authorship import acting_as
from rest_framework.test import APIClient

from desk.models import Member, Organization, Tag, Ticket

BACKEND = "dynamo_single.contrib.accounts.backends.EmailOrUsernameBackend"


class DeskTestCase(TestCase):
    """Ann owns Acme, Ben is its agent, and Cat owns Beta."""

    @classmethod
    def setUpTestData(cls):
        """Create users, organizations and a ticket of Acme with a comment and a tag."""
        users = get_user_model().objects
        cls.ann, cls.ben, cls.cat = (users.create_user(name, f"{name}@example.com") for name in ("ann", "ben", "cat"))
        cls.acme = Organization.objects.create(name="Acme", slug="acme")
        cls.beta = Organization.objects.create(name="Beta", slug="beta")
        for organization, user, role in (
            (cls.acme, cls.ann, "owner"),
            (cls.acme, cls.ben, "agent"),
            (cls.beta, cls.cat, "owner"),
        ):
            Member.objects.create(organization=organization, user=user, role=role)
        cls.slow = Tag.objects.create(organization=cls.acme, word="slow")
        with acting_as(cls.ann):
            cls.ticket = Ticket.objects.create(organization=cls.acme, title="Printer", text="It does not print.")
            cls.comment = cls.ticket.comments.create(text="Still not.")
        cls.ticket.tags.add(cls.slow)

    def api(self, user):
        """Return a client of the API."""
        client = APIClient()
        client.force_login(user, BACKEND)
        return client

    def page(self, user, path, **values):
        """Request a page as a user."""
        self.client.force_login(user, BACKEND)
        return self.client.post(path, values, follow=True) if values else self.client.get(path)
