"""Make text and values fit for a log, at the point where they come in."""

from noeta.core.text import checked_key as checked_key
from noeta.core.text import storable as storable
from noeta.core.text import storable_text as storable_text
