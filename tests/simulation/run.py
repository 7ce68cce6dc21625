"""Run the simulation with many seeds, or with one of them again."""

from __future__ import annotations

import argparse
import sys
from concurrent.futures import ProcessPoolExecutor

from noeta.testing.simulation import simulate


def outcome(seed: int) -> str:
    """Return what is wrong with the world of a seed, the empty text when nothing is."""
    try:
        simulate(seed)
    except AssertionError as error:
        return str(error)
    return ""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=1_000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--seed", type=int)
    options = parser.parse_args()
    if options.seed is not None:
        world = simulate(options.seed)
        sys.stdout.write(f"Seed {options.seed} is sound: {' / '.join(world.trace)}\n")
        return 0
    with ProcessPoolExecutor() as pool:
        seeds = range(options.first, options.first + options.seeds)
        faults = [fault for fault in pool.map(outcome, seeds, chunksize=50) if fault]
    sys.stdout.write("".join(f"{fault}\n" for fault in faults))
    sys.stdout.write(f"{options.seeds} seeds, {len(faults)} faults\n")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
