"""The parts of `noeta.testing.check_store`: each promise of a store as a function that tries it."""
