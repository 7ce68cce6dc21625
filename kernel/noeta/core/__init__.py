"""The kernel: a record log, the fold over it, and (in later modules) gates, hooks and the runner loop.

The modules import only upwards in this list, which is also the order to read them in:
``errors text messages records codec items log conversation state facts fold ports``.
"""
