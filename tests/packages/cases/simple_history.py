"""Its history is rows of SQL, made for each model."""

from tests.packages.case import start

PACKAGE = "django-simple-history"
RESULT = "refused"
REASON = "It copies the fields of a model to a model of SQL, which raises `ConfigurationError`. The admin's log records changes in the table."

start("simple_history")

from simple_history.models import HistoricalRecords

from dynamo_single import models
from dynamo_single.exceptions import ConfigurationError

try:

    class Price(models.Model):
        price_id = models.IdAttribute()
        history = HistoricalRecords(app="directory")

        class Keys:
            primary = models.Key("PRICE#{price_id}", "#METADATA")

        class Meta:
            app_label = "directory"

except ConfigurationError as error:
    assert "HistoricalPrice" in str(error)
else:
    raise AssertionError("It was accepted.")
