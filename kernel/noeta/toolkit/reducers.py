"""How a plugin takes part in the fold."""

from __future__ import annotations

from noeta.core.extension import Extension
from noeta.core.fold import Reducer


def reducer(extension: Extension, fingerprint: str = "") -> Reducer:
    """How `extension` folds its records. `fingerprint` names its code and settings, for snapshots."""
    folds = type(extension).reduce is not Extension.reduce
    return Reducer(
        name=extension.name,
        initial=extension.initial_state,
        reduce=extension.reduce if folds else None,
        continued=extension.continue_state,
        folds=extension.folds,
        types=extension.record_types,
        state=extension.State,
        fingerprint=fingerprint,
    )
