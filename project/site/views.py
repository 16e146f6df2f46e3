"""The front page."""

from django.views.generic import TemplateView


class FrontPage(TemplateView):
    """An overview of the demo. It does not send a request for anonymous users."""

    template_name = "site/front.html"
