"""One page, which writes."""

from django.http import HttpRequest, HttpResponse
from django.urls import path

from tests.isolated_project.notes.models import Note


def page(request: HttpRequest, note_id: str) -> HttpResponse:
    """Create a note, and return the number of notes."""
    Note.objects.create(note_id=note_id)
    return HttpResponse(str(Note.objects.count()))


urlpatterns = [path("<note_id>/", page)]
