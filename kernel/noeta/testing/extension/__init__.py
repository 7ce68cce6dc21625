"""The parts of `noeta.testing.check_extension`: each promise of a plugin as a function that tries it."""
