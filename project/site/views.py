"""The front page."""

from django.views.generic import TemplateView


class FrontPage(TemplateView):
    """What the demo shows; sends nothing to somebody who is not signed in."""

    template_name = "site/front.html"
