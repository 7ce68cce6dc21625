"""Models on this machine: any GGUF file, run in this process by llama.cpp, without a key and a network."""

from noeta_llamacpp.provider import LlamaCpp as LlamaCpp
from noeta_llamacpp.provider import open_provider as open_provider
from noeta_llamacpp.settings import Settings as Settings

__all__ = ["LlamaCpp", "Settings", "open_provider"]
