"""What the engine needs from outside, as protocols whose docstrings are the contract."""
