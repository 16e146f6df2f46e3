"""What items and requests are to Python: the types of what the table takes and gives.

What lies inside a value follows from DynamoDB's type beside it (``{"S": "text"}``, ``{"L": [...]}``), and what lies in
parameters and answers from the operation. No checker follows either, so that each is open in one place, here:
https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_AttributeValue.html
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

#: One value with DynamoDB's type, as it is made; and as it is read, when nobody changes it.
AttributeValue = dict[str, Any]
StoredValue = Mapping[str, Any]
#: An item by the physical names of its attributes, as it is read or written; and as it is made.
Item = Mapping[str, StoredValue]
NewItem = dict[str, AttributeValue]

#: The parameters of a request without its table, and what was answered.
Parameters = Mapping[str, Any]
Response = dict[str, Any]
