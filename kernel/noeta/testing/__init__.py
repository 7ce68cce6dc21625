"""Conformance checks and doubles for those who write plugins and ports. Needs no test runner."""
