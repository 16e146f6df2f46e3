"""Organizations, members, tickets, comments and tags; each key serves a query of a page or of the API."""

from django.conf import settings
from django.db.models import Q
from dynamo_single import models


class Organization(models.TimestampedModel, models.SoftDeleteModel):
    """A customer of the help desk; the partition also contains its members, tags and tickets."""

    organization_id = models.IdAttribute(prefix="org")
    name = models.UnicodeAttribute(max_length=120)
    slug = models.SlugAttribute(unique=True, max_length=50)
    users = models.ManyToMany(settings.AUTH_USER_MODEL, through="Member", related_name="organizations")

    members = models.Children("Member")
    tickets = models.Children("Ticket")
    tags = models.Children("Tag")
    member_count = models.CounterAttribute("members")
    ticket_count = models.CounterAttribute("tickets")
    open_count = models.CounterAttribute("tickets", condition=Q(status="open"))

    class Keys:
        primary = models.Key("ORG#{organization_id}", "#METADATA")
        by_name = models.IndexKey("gs1", "ORG", "{name}#{organization_id}")

    def __str__(self):
        return self.name


class Member(models.TimestampedModel):
    """A user's membership, with a copy of the user's name."""

    organization = models.ReferenceAttribute(Organization, on_delete=models.CASCADE)
    user = models.ReferenceAttribute(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="memberships")
    username = models.CopiedAttribute("user", "username")
    role = models.UnicodeAttribute(
        default="customer", choices=[("customer", "Customer"), ("agent", "Agent"), ("owner", "Owner")]
    )

    class Keys:
        primary = models.Key("ORG#{organization_id}", "MEMBER#{user_id}")
        by_user = models.IndexKey("gs1", "MEMBEROF#{user_id}", "{organization_id}")

    def __str__(self):
        return str(self.username)


class Tag(models.Model):
    """A word for tickets of one organization."""

    organization = models.ReferenceAttribute(Organization, on_delete=models.CASCADE)
    word = models.SlugAttribute(max_length=40)

    class Keys:
        primary = models.Key("ORG#{organization_id}", "TAG#{word}")
        listed = models.IndexKey("gs1", "TAG", "{word}#{organization_id}")

    def __str__(self):
        return self.word


class Ticket(models.AuthoredModel, models.TimestampedModel, models.SoftDeleteModel):
    """A customer's question."""

    organization = models.ReferenceAttribute(Organization, on_delete=models.CASCADE)
    ticket_id = models.IdAttribute(kind="ulid")
    organization_name = models.CopiedAttribute("organization", "name")
    title = models.UnicodeAttribute(max_length=200)
    text = models.UnicodeAttribute(multiline=True, max_length=5000)
    status = models.UnicodeAttribute(
        default="open", choices=[("open", "Open"), ("waiting", "Waiting"), ("closed", "Closed")]
    )
    priority = models.IntegerAttribute(null=True, default=2, choices=[(1, "High"), (2, "Normal"), (3, "Low")])
    assignee = models.ReferenceAttribute(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, related_name="assigned_tickets"
    )
    tags = models.ManyToMany(Tag, related_name="tickets", blank=True)
    version = models.VersionAttribute()

    comments = models.Children("Comment")
    comment_count = models.CounterAttribute("comments")

    class Keys:
        primary = models.Key("ORG#{organization_id}", "TICKET#{ticket_id}")
        by_status = models.IndexKey("gs1", "ORG#{organization_id}#{status}", "{ticket_id}")
        by_assignee = models.IndexKey("gs2", "ASSIGNEE#{assignee_id}", "{status}#{ticket_id}")
        listed = models.IndexKey("gs3", "TICKET", "{ticket_id}")
        by_priority = models.IndexKey("gs4", "ORG#{organization_id}#TICKETS", "{priority}#{ticket_id}")

    def __str__(self):
        return self.title


class Comment(models.AuthoredModel, models.TimestampedModel, models.SoftDeleteModel):
    """A reply to a ticket; the comments of a ticket are in one partition."""

    ticket = models.ReferenceAttribute(Ticket, on_delete=models.CASCADE)
    comment_id = models.IdAttribute(kind="ulid")
    text = models.UnicodeAttribute(multiline=True, max_length=5000)

    class Keys:
        primary = models.Key("COMMENTS#{ticket_id}", "{comment_id}")
        listed = models.IndexKey("gs1", "COMMENT", "{comment_id}")

    def __str__(self):
        return self.text[:60]
