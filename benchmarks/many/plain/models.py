"""A hundred models of Django's, of eight fields each."""

from __future__ import annotations

from django.db import models

for _number in range(100):
    _name = f"Django{_number}"
    globals()[_name] = type(
        _name,
        (models.Model,),
        {
            "__module__": __name__,
            "created_at": models.DateTimeField(auto_now_add=True),
            "updated_at": models.DateTimeField(auto_now=True),
            "deleted_at": models.DateTimeField(null=True),
            "deleted_with": models.CharField(max_length=20, null=True),
            "key": models.CharField(primary_key=True, max_length=20),
            "name": models.CharField(max_length=20),
            "email": models.EmailField(unique=True),
            "number": models.IntegerField(default=0),
        },
    )
