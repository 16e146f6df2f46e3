"""A squashed migration whose originals are gone."""

from django.db import migrations, models


class Migration(migrations.Migration):
    """Makes the table."""

    replaces = (("shop", "0001_initial"), ("shop", "0002_code"))
    operations = (
        migrations.CreateModel(
            name="Thing",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("code", models.CharField(max_length=20)),
            ],
        ),
    )
