"""Give tickets from before priorities a normal one, so that the list by priority contains them."""

from django.db import migrations
from dynamo_single import migrations as items


def with_priority(values):
    """Return the priority of a ticket without one."""
    return {} if values["priority"] else {"priority": 2}


class Migration(migrations.Migration):
    """Change the stored tickets."""

    dependencies = [("desk", "0002_ticket_priority")]
    operations = [items.ChangeItems("Ticket", with_priority)]
