"""The kernel: a record log, the fold over it, and (in later modules) gates, hooks and the runner loop.

`docs/explanation/kernel.md` lists the modules in the order in which they import each other and are best read.
"""
