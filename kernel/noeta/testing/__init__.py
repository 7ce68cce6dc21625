"""Conformance checks and doubles for those who write plugins and ports. Needs no test runner."""

from noeta.testing.check_extension import EXTENSION_CHECKS as EXTENSION_CHECKS
from noeta.testing.check_extension import ExtensionCheck as ExtensionCheck
from noeta.testing.check_extension import Subject as Subject
from noeta.testing.check_extension import check_extension as check_extension
from noeta.testing.check_store import STORE_CHECKS as STORE_CHECKS
from noeta.testing.check_store import StoreCheck as StoreCheck
from noeta.testing.check_store import StoreFactory as StoreFactory
from noeta.testing.check_store import check_store as check_store
from noeta.testing.check_store import run_check as run_check
from noeta.testing.check_store import run_store_machine as run_store_machine
from noeta.testing.check_tool import TOOL_CHECKS as TOOL_CHECKS
from noeta.testing.check_tool import ToolCheck as ToolCheck
from noeta.testing.check_tool import check_tool as check_tool
from noeta.testing.clock import FrozenClock as FrozenClock
from noeta.testing.clock import SeededIds as SeededIds
from noeta.testing.crash import CrashBench as CrashBench
from noeta.testing.crash import Outside as Outside
from noeta.testing.crash import check_crashes as check_crashes
from noeta.testing.log_writer import LogWriter as LogWriter
from noeta.testing.nowhere import Nowhere as Nowhere
from noeta.testing.request_rules import request_fault as request_fault
from noeta.testing.scripted_provider import ScriptedProvider as ScriptedProvider
from noeta.testing.scripted_provider import ScriptError as ScriptError
from noeta.testing.scripted_provider import call as call
from noeta.testing.scripted_provider import reply as reply
from noeta.testing.views import Rehearsal as Rehearsal
