"""The checks of `noeta.testing.check_env`, a module for each group of promises."""
