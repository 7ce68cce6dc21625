"""The model port, for those who connect a model API."""

from noeta.core.errors import ProviderError as ProviderError
from noeta.core.messages import Block as Block
from noeta.core.messages import Image as Image
from noeta.core.messages import Message as Message
from noeta.core.messages import Text as Text
from noeta.core.messages import Thinking as Thinking
from noeta.core.messages import ToolReference as ToolReference
from noeta.core.messages import ToolResult as ToolResult
from noeta.core.messages import ToolUse as ToolUse
from noeta.core.messages import Unknown as Unknown
from noeta.core.messages import Usage as Usage
from noeta.core.messages import user as user
from noeta.core.ports import Delta as Delta
from noeta.core.ports import Effort as Effort
from noeta.core.ports import ModelInfo as ModelInfo
from noeta.core.ports import ModelRequest as ModelRequest
from noeta.core.ports import ModelResponse as ModelResponse
from noeta.core.ports import Provider as Provider
from noeta.core.ports import ToolSpec as ToolSpec
