"""What checkers are told that a model of ours is, below the folder that makes one.

At run time the name is Django's own class, of which every model of ours is one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from django.db.models import Field

if TYPE_CHECKING:
    from django.core.files.uploadedfile import UploadedFile
    from django.utils.datastructures import MultiValueDict

    from dynamo_single.orm.model.model import Model as DynamoModel
else:
    from django.db.models import Model as DynamoModel

__all__ = ["Defaults", "DynamoModel", "M", "ModelField", "SentData", "SentFiles"]

#: The model of a queryset, a manager, a page.
M = TypeVar("M", bound=DynamoModel, covariant=True)
#: Values by name for what is made or changed on the way; Django calls those that can be called.
Defaults: TypeAlias = "Mapping[str, object] | None"
#: A field of Django's, whatever it takes and gives.
ModelField: TypeAlias = "Field[Any, Any]"
#: What a form is sent, as Django's widgets are given it: texts, or what a test gives; and files.
SentData: TypeAlias = "Mapping[str, Any]"
SentFiles: TypeAlias = "MultiValueDict[str, UploadedFile[Any]]"
