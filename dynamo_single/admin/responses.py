"""Pages that are rendered after their view has returned: what is refused then has an answer as well."""

from __future__ import annotations

from collections.abc import Callable

from django.http.response import HttpResponseBase
from django.template.response import SimpleTemplateResponse


def answered_by(
    response: HttpResponseBase,
    errors: tuple[type[Exception], ...],
    answer: Callable[[Exception], HttpResponseBase],
) -> HttpResponseBase:
    """The same response; if rendering it raises one of the errors, what ``answer`` makes of that takes its place."""
    if not isinstance(response, SimpleTemplateResponse) or response.is_rendered:
        return response
    render = response.render

    def render_or_answer() -> HttpResponseBase:
        # Rendered responses are pickled by caches, which take no function.
        response.__dict__.pop("render", None)
        try:
            return render()
        except errors as error:
            instead = answer(error)
            return instead.render() if isinstance(instead, SimpleTemplateResponse) else instead

    response.render = render_or_answer  # type: ignore[method-assign, assignment]  # Django takes what it returns
    return response
