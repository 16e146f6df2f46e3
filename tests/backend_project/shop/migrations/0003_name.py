"""A migration with code, which without an SQL database never runs."""

from typing import Any

from django.db import migrations


def announce(apps: Any, schema_editor: Any) -> None:
    """Print that the code ran."""
    print("RunPython ran")


class Migration(migrations.Migration):
    """Renames a column."""

    dependencies = (("shop", "0001_squashed_0002_code"),)
    operations = (
        migrations.RenameField("thing", "code", "name"),
        migrations.RunPython(announce, migrations.RunPython.noop),
    )
