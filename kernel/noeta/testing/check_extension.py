"""Whether a plugin keeps the promises that the kernel builds on: a list of checks, and a call that runs all.

Needs no test runner. With pytest, parametrise over `EXTENSION_CHECKS` to see each as a test of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module

from noeta.testing.extension import declared, folding, hooking
from noeta.testing.extension.subject import Make as Make
from noeta.testing.extension.subject import Sample as Sample
from noeta.testing.extension.subject import Subject as Subject

ExtensionCheck = Callable[[Subject], None]
"""Tries one promise of a plugin, and raises AssertionError with a sentence when it is not kept."""

EXTENSION_CHECKS: tuple[ExtensionCheck, ...] = (
    declared.it_goes_into_an_agent,
    declared.each_instance_is_fresh,
    declared.its_names_agree,
    declared.its_declarations_are_sound,
    declared.a_misspelt_setting_is_refused,
    folding.the_initial_state_is_fresh_each_time,
    folding.reduce_is_pure,
    folding.reduce_is_total,
    folding.continue_state_is_pure_and_total,
    folding.its_state_can_be_kept,
    folding.a_kept_state_folds_on_as_if_it_had_never_been_put_away,
    folding.the_samples_still_fold,
    hooking.every_hook_answers_on_every_state,
    hooking.no_attribute_changes_while_hooks_run,
    hooking.what_hooks_are_given_stays_as_it_is,
    hooking.its_records_are_written_under_its_name,
    hooking.its_records_are_of_declared_kinds,
    hooking.its_context_is_stable,
    hooking.its_tools_are_stable,
    hooking.its_tools_are_sound,
)
"""Every promise of a plugin that can be checked without knowing what it is for."""


def check_extension(make: Make, samples: Sequence[Sample] = ()) -> None:
    """Run every check on the plugin that `make` makes.

    `samples` are records that released versions of it have written: lines of a log, or `Recorded`. Add one
    for every form that data ever had. Its hooks run on asyncio, so call this outside of an event loop.

    Raises AssertionError for the first promise that is not kept: a sentence with plugin, place and way out.
    Needs hypothesis; ``noeta[testing]`` brings it.
    """
    try:
        import_module("hypothesis")
    except ModuleNotFoundError:
        raise ModuleNotFoundError(
            "check_extension needs hypothesis, which is not installed. This installs all it needs:"
            " pip install 'noeta[testing]'"
        ) from None
    subject = Subject(make, samples)
    for check in EXTENSION_CHECKS:
        check(subject)
