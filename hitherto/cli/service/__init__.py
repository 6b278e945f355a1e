"""`hitherto serve`, `hitherto keys` and `hitherto worker`: the processes that others use, and who may."""
