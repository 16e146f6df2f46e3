"""Counters, copies, the trash, and the objects that a deletion includes."""

from datetime import timedelta
from io import StringIO

from django.core.management import call_command
from dynamo_single.exceptions import StaleObject, UniqueViolation
from dynamo_single.testing import assert_requests, moved_time

from desk.models import Comment, Member, Organization, Ticket
from desk.tests.base import DeskTestCase


class Counters(DeskTestCase):
    """The numbers of an organization and of a ticket."""

    def numbers(self):
        """Return the stored numbers of Acme."""
        stored = Organization.all_objects.get(pk=self.acme.pk)
        return stored.member_count, stored.ticket_count, stored.open_count

    def test_children_are_counted(self):
        self.assertEqual(self.numbers(), (2, 1, 1))
        self.assertEqual(Ticket.objects.get(pk=self.ticket.pk).comment_count, 1)

    def test_closed_ticket_is_not_open(self):
        self.ticket.status = "closed"
        self.ticket.save()
        self.assertEqual(self.numbers(), (2, 1, 0))

    def test_update_of_queryset_counts(self):
        Ticket.objects.filter(organization=self.acme, status="open").update(status="waiting")
        self.assertEqual(self.numbers(), (2, 1, 0))

    def test_bulk_creation_counts(self):
        Ticket.objects.bulk_create(Ticket(organization=self.acme, title=str(n), text="") for n in range(30))
        self.assertEqual(self.numbers(), (2, 31, 31))

    def test_trash_and_restoration_count(self):
        self.ticket.delete()
        self.assertEqual(self.numbers(), (2, 0, 0))
        self.ticket.restore()
        self.assertEqual(self.numbers(), (2, 1, 1))
        self.assertEqual(Ticket.objects.get(pk=self.ticket.pk).comment_count, 1)

    def test_members_by_many_to_many_count(self):
        self.acme.users.add(self.cat)
        self.assertEqual(self.numbers(), (3, 1, 1))
        self.acme.users.remove(self.cat)
        self.assertEqual(self.numbers(), (2, 1, 1))


class Trash(DeskTestCase):
    """An organization goes to the trash with its tickets and their comments, and comes back."""

    def test_organization_takes_tickets_and_comments(self):
        self.acme.delete()
        self.assertFalse(Ticket.objects.filter(organization=self.acme).exists())
        self.assertFalse(Comment.objects.filter(ticket=self.ticket).exists())
        self.acme.restore()
        self.assertEqual(list(Comment.objects.filter(ticket=self.ticket)), [self.comment])

    def test_ticket_keeps_its_tags(self):
        self.ticket.delete()
        self.ticket.restore()
        self.assertEqual([tag.word for tag in self.ticket.tags.all()], ["slow"])

    def test_permanent_deletion_leaves_nothing(self):
        self.acme.hard_delete()
        self.assertFalse(Ticket.all_objects.filter(organization=self.acme).exists())
        self.assertFalse(Member.objects.filter(user=self.ben).exists())
        out = StringIO()
        call_command("dynamo_verify", stdout=out)
        self.assertIn("0 findings", out.getvalue())
        Organization.objects.create(name="Acme", slug="acme")

    def test_slug_is_unique(self):
        with self.assertRaises(UniqueViolation):
            Organization.objects.create(name="Another", slug="acme")


class Relations(DeskTestCase):
    """Copies follow their source; a deleted user leaves the tickets."""

    def test_new_name_reaches_the_tickets(self):
        self.acme.name = "Acme & Sons"
        self.acme.save()
        self.assertEqual(Ticket.objects.get(pk=self.ticket.pk).organization_name, "Acme & Sons")

    def test_new_username_reaches_memberships(self):
        self.ben.username = "benjamin"
        self.ben.save()
        self.assertEqual(Member.objects.get(organization=self.acme, user=self.ben).username, "benjamin")

    def test_deleted_user_is_assigned_nothing(self):
        Ticket.objects.filter(pk=self.ticket.pk).update(assignee=self.ben)
        self.ben.hard_delete()
        ticket = Ticket.objects.get(pk=self.ticket.pk)
        self.assertIsNone(ticket.assignee_id)
        self.assertEqual(Organization.objects.get(pk=self.acme.pk).member_count, 1)

    def test_concurrent_change_is_noticed(self):
        other = Ticket.objects.get(pk=self.ticket.pk)
        other.title = "Scanner"
        other.save()
        mine = Ticket.objects.get(pk=self.ticket.pk)
        other.text = "It does not scan."
        other.save()
        mine.title = "Copier"
        with self.assertRaises(StaleObject):
            mine.save()

    def test_tickets_of_a_tag(self):
        self.assertEqual(list(self.slow.tickets.all()), [self.ticket])

    def test_tickets_with_tags_take_few_requests(self):
        with assert_requests(["Query", "Query", "GetItem"]):
            found = list(Ticket.objects.filter(organization=self.acme).prefetch_related("tags"))
        self.assertEqual([[tag.word for tag in ticket.tags.all()] for ticket in found], [["slow"]])

    def test_ticket_with_comments_is_two_requests(self):
        with assert_requests(["GetItem", "Query"]):
            found = Ticket.objects.prefetch_related("comments").get(pk=self.ticket.pk)
            self.assertEqual([comment.text for comment in found.comments.all()], ["Still not."])


class Task(DeskTestCase):
    """The nightly command."""

    def test_waiting_tickets_are_closed(self):
        Ticket.objects.filter(pk=self.ticket.pk).update(status="waiting")
        out = StringIO()
        call_command("close_waiting", stdout=out)
        self.assertIn("Acme: 0 closed", out.getvalue())
        with moved_time(timedelta(days=15)):
            call_command("close_waiting", stdout=out)
        self.assertIn("Acme: 1 closed", out.getvalue())
        self.assertEqual(Ticket.objects.get(pk=self.ticket.pk).status, "closed")


class Consistency(DeskTestCase):
    """``dynamo_verify`` does not find any problems."""

    def test_table_is_consistent(self):
        self.ticket.delete()
        out = StringIO()
        call_command("dynamo_verify", stdout=out)
        self.assertIn("0 findings", out.getvalue())

    def test_models_match_the_migrations(self):
        call_command("makemigrations", check=True, dry_run=True, stdout=StringIO())
