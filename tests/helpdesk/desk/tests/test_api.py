"""The REST API: a member's operations, and data that another organization cannot see."""

from desk.models import Comment, Organization, Ticket
from desk.tests.base import DeskTestCase


class Lists(DeskTestCase):
    """Filters, orders and pages."""

    def test_organizations_are_those_of_the_user(self):
        found = self.api(self.ann).get("/api/organizations/").json()
        self.assertEqual([each["name"] for each in found["results"]], ["Acme"])
        self.assertEqual(found["results"][0]["open_count"], 1)

    def test_user_without_organizations_sees_none(self):
        self.beta.hard_delete()
        response = self.api(self.cat).get("/api/organizations/")
        self.assertEqual((response.status_code, response.json()["results"]), (200, []))
        response = self.api(self.cat).get("/api/tickets/")
        self.assertEqual((response.status_code, response.json()["results"]), (200, []))

    def test_tickets_by_status(self):
        response = self.api(self.ben).get(f"/api/tickets/?organization={self.acme.pk}&status=open")
        self.assertEqual([each["title"] for each in response.json()["results"]], ["Printer"])
        self.assertEqual(response.json()["results"][0]["tags"], [self.slow.pk])

    def test_tickets_without_filter(self):
        response = self.api(self.ben).get("/api/tickets/")
        self.assertEqual([each["title"] for each in response.json()["results"]], ["Printer"])

    def test_tickets_of_several_organizations(self):
        self.beta.users.add(self.ben)
        Ticket.objects.create(organization=self.beta, title="Phone", text="")
        response = self.api(self.ben).get("/api/tickets/")
        self.assertEqual({each["title"] for each in response.json()["results"]}, {"Printer", "Phone"})

    def test_tickets_by_priority_and_order(self):
        for number in range(3):
            Ticket.objects.create(organization=self.acme, title=str(number), text="", priority=1)
        address = f"/api/tickets/?organization={self.acme.pk}"
        found = self.api(self.ben).get(f"{address}&priority=1").json()
        self.assertEqual([each["title"] for each in found["results"]], ["0", "1", "2"])
        found = self.api(self.ben).get(f"{address}&ordering=-ticket_id").json()
        self.assertEqual([each["title"] for each in found["results"]], ["2", "1", "0", "Printer"])

    def test_unsupported_order_is_a_400(self):
        response = self.api(self.ben).get(f"/api/tickets/?organization={self.acme.pk}&ordering=title")
        self.assertEqual(response.status_code, 400, response.content)

    def test_pages_follow_each_other(self):
        Ticket.objects.bulk_create(Ticket(organization=self.acme, title=f"{n:02}", text="") for n in range(45))
        client, seen, address = self.api(self.ben), [], "/api/tickets/"
        while address:
            page = client.get(address).json()
            seen += [each["title"] for each in page["results"]]
            address = page["next"]
        self.assertEqual(len(seen), 46)
        self.assertEqual(len({*seen}), 46)


class Writes(DeskTestCase):
    """Creating, changing and deleting."""

    def create(self, user, **values):
        """Post a ticket of Acme."""
        given = {"organization": self.acme.pk, "title": "Mouse", "text": "It squeaks."}
        return self.api(user).post("/api/tickets/", {**given, **values}, format="json")

    def test_ticket_has_its_author_and_tags(self):
        response = self.create(self.ben, tags=[self.slow.pk], assignee=self.ann.pk)
        self.assertEqual(response.status_code, 201, response.content)
        stored = Ticket.objects.get(pk=response.json()["pk"])
        self.assertEqual((stored.created_by_id, stored.assignee_id), (self.ben.pk, self.ann.pk))
        self.assertEqual(list(stored.tags.all()), [self.slow])
        self.assertEqual(Organization.objects.get(pk=self.acme.pk).open_count, 2)

    def test_foreign_assignee_is_refused(self):
        self.assertEqual(self.create(self.ben, assignee=self.cat.pk).status_code, 400)

    def test_foreign_organization_is_refused(self):
        self.assertEqual(self.create(self.cat).status_code, 403)

    def test_missing_organization_is_a_400(self):
        self.assertIn(self.create(self.cat, organization="org-none").status_code, (400, 403))

    def test_changes_of_a_ticket(self):
        address = f"/api/tickets/{self.ticket.pk}/"
        response = self.api(self.ben).patch(address, {"status": "closed", "tags": []}, format="json")
        self.assertEqual(response.status_code, 200, response.content)
        stored = Ticket.objects.get(pk=self.ticket.pk)
        self.assertEqual((stored.status, list(stored.tags.all())), ("closed", []))

    def test_put_of_what_was_read(self):
        client, address = self.api(self.ben), f"/api/tickets/{self.ticket.pk}/"
        response = client.put(address, client.get(address).json(), format="json")
        self.assertEqual(response.status_code, 200, response.content)

    def test_ticket_keeps_its_organization(self):
        self.beta.users.add(self.ben)
        response = self.api(self.ben).patch(
            f"/api/tickets/{self.ticket.pk}/", {"organization": self.beta.pk}, format="json"
        )
        self.assertEqual(response.status_code, 400, response.content)

    def test_ticket_in_the_trash_comes_back(self):
        client, address = self.api(self.ben), f"/api/tickets/{self.ticket.pk}/"
        self.assertEqual(client.delete(address).status_code, 204)
        self.assertEqual(client.get(address).status_code, 404)
        self.assertEqual(self.api(self.cat).post(f"{address}restore/").status_code, 404)
        response = client.post(f"{address}restore/")
        self.assertEqual((response.status_code, response.json()["comment_count"]), (200, 1), response.content)
        self.assertEqual(client.get(address).status_code, 200)

    def test_taken_slug_is_refused(self):
        response = self.api(self.cat).post("/api/organizations/", {"name": "Acme II", "slug": "acme"}, format="json")
        self.assertEqual(response.status_code, 400, response.content)
        self.assertIn("slug", response.json())

    def test_new_organization_has_an_owner(self):
        response = self.api(self.cat).post("/api/organizations/", {"name": "Gamma", "slug": "gamma"}, format="json")
        self.assertEqual(response.status_code, 201, response.content)
        self.assertEqual(len(self.api(self.cat).get("/api/organizations/").json()["results"]), 2)

    def test_only_owners_delete_an_organization(self):
        address = f"/api/organizations/{self.acme.pk}/"
        self.assertEqual(self.api(self.ben).delete(address).status_code, 403)
        self.assertEqual(self.api(self.ann).delete(address).status_code, 204)
        self.assertEqual(self.api(self.ben).get(f"/api/tickets/{self.ticket.pk}/").status_code, 404)

    def test_comments(self):
        client = self.api(self.ben)
        response = client.post("/api/comments/", {"ticket": self.ticket.pk, "text": "Try again."}, format="json")
        self.assertEqual(response.status_code, 201, response.content)
        found = client.get(f"/api/comments/?ticket={self.ticket.pk}").json()
        self.assertEqual([each["text"] for each in found["results"]], ["Still not.", "Try again."])
        address = f"/api/comments/{response.json()['pk']}/"
        self.assertEqual(self.api(self.ann).patch(address, {"text": "No."}, format="json").status_code, 403)
        self.assertEqual(client.patch(address, {"text": "Please."}, format="json").status_code, 200)
        self.assertEqual(client.delete(address).status_code, 204)
        self.assertEqual(Comment.objects.filter(ticket=self.ticket).count(), 1)


class Strangers(DeskTestCase):
    """A member of another organization cannot find any objects."""

    def test_no_ticket_of_another_organization(self):
        client = self.api(self.cat)
        for address in (
            f"/api/tickets/{self.ticket.pk}/",
            f"/api/organizations/{self.acme.pk}/",
            f"/api/comments/{self.comment.pk}/",
            f"/api/comments/?ticket={self.ticket.pk}",
        ):
            self.assertEqual(client.get(address).status_code, 404, address)
        found = client.get(f"/api/tickets/?organization={self.acme.pk}")
        self.assertEqual((found.status_code, found.json()["results"]), (200, []))

    def test_anonymous_user_is_refused(self):
        self.assertIn(self.client.get("/api/tickets/").status_code, (401, 403))
