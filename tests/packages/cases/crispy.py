"""A form of a model in a layout."""

from tests.packages.case import start

PACKAGE = "django-crispy-forms"
RESULT = "unchanged"

start(
    "crispy_forms", "crispy_bootstrap5", CRISPY_TEMPLATE_PACK="bootstrap5", CRISPY_ALLOWED_TEMPLATE_PACKS="bootstrap5"
)

from crispy_forms.utils import render_crispy_form
from django.forms import modelform_factory

from project.directory.models import Office

page = render_crispy_form(modelform_factory(Office, fields="__all__")())
assert 'name="city"' in page
