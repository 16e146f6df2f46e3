"""The pages, the admin and the asynchronous view."""

from django.contrib.auth import get_user_model

from desk.models import Organization, Ticket
from desk.tests.base import BACKEND, DeskTestCase


class Pages(DeskTestCase):
    """Pages for a member, to read and to write."""

    def test_organizations(self):
        page = self.page(self.ann, "/")
        self.assertContains(page, "Acme")
        self.assertNotContains(page, "Beta")

    def test_user_without_organizations(self):
        self.beta.hard_delete()
        self.assertContains(self.page(self.cat, "/"), "You are not a member of an organization.")

    def test_new_ticket_and_comment(self):
        board = self.page(self.ben, f"/{self.acme.pk}/board/", title="Mouse", text="It squeaks.")
        self.assertContains(board, "Mouse")
        ticket = Ticket.objects.get(organization=self.acme, title="Mouse")
        page = self.page(self.ben, f"/tickets/{ticket.pk}/", text="Louder now.")
        self.assertContains(page, "Louder now. (ben)")
        self.assertEqual(ticket.created_by_id, self.ben.pk)

    def test_other_organization_is_missing(self):
        for address in (f"/{self.acme.pk}/board/", f"/tickets/{self.ticket.pk}/", f"/{self.acme.pk}/figures/"):
            self.assertEqual(self.page(self.cat, address).status_code, 404, address)

    def test_figures(self):
        self.assertEqual(
            self.page(self.ann, f"/{self.acme.pk}/figures/").json(), {"open": 1, "waiting": 0, "closed": 0}
        )

    async def test_figures_in_an_event_loop(self):
        await self.async_client.aforce_login(self.ann, BACKEND)
        response = await self.async_client.get(f"/{self.acme.pk}/figures/")
        self.assertEqual(response.json(), {"open": 1, "waiting": 0, "closed": 0})


class Admin(DeskTestCase):
    """The admin lists, shows, changes and restores."""

    def setUp(self):
        """Log in as a superuser."""
        boss = get_user_model().objects.create_superuser("boss", "boss@example.com")
        self.client.force_login(boss, BACKEND)

    def shown(self, address):
        """Return the values that a page's forms would send back."""
        context = self.client.get(address).context
        sets = [each.formset for each in context["inline_admin_formsets"]]
        forms = [context["adminform"].form, *(form for each in sets for form in (each.management_form, *each.forms))]
        fields = [form[name] for form in forms for name in form.fields]
        return {field.html_name: "" if (value := field.value()) is None else value for field in fields}

    def test_every_page(self):
        objects = {"organization": self.acme, "ticket": self.ticket, "comment": self.comment, "tag": self.slow}
        for name, obj in objects.items():
            for path in ("", "add/", f"{obj.pk}/change/", f"{obj.pk}/history/", f"{obj.pk}/delete/"):
                page = self.client.get(f"/admin/desk/{name}/{path}")
                self.assertEqual(page.status_code, 200, (name, path))
        for path in ("organization/?q=Ac", "ticket/?status__exact=open", "ticket/?q=Pri", "tag/?q=sl"):
            page = self.client.get(f"/admin/desk/{path}")
            self.assertContains(page, "1 result" if "q=" in path else "Printer", msg_prefix=path)

    def test_ticket_is_changed_with_a_comment(self):
        address = f"/admin/desk/ticket/{self.ticket.pk}/change/"
        values = self.shown(address)
        (row,) = (name for name in values if name.endswith("-1-text"))
        values |= {"title": "Laser printer", "assignee": self.ben.pk, row: "Bought a new one."}
        page = self.client.post(address, values)
        self.assertEqual(page.status_code, 302, page.context and page.context["errors"])
        stored = Ticket.objects.get(pk=self.ticket.pk)
        self.assertEqual((stored.title, stored.assignee_id, stored.comment_count), ("Laser printer", self.ben.pk, 2))

    def test_organization_is_deleted_and_restored(self):
        page = self.client.post(f"/admin/desk/organization/{self.acme.pk}/delete/", {"post": "yes"})
        self.assertEqual(page.status_code, 302)
        self.assertFalse(Organization.objects.filter(pk=self.acme.pk).exists())
        page = self.client.get("/admin/desk/organization/?trash=1", follow=True)
        self.assertEqual(page.status_code, 200)
        Organization.all_objects.get(pk=self.acme.pk).restore()
        self.assertEqual(Ticket.objects.get(pk=self.ticket.pk).comment_count, 1)
