"""An object's form: what it shows beside the fields, how it is merged with what others wrote, and how it is saved."""
