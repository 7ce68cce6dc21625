"""The command line of noeta."""
