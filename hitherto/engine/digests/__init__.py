"""Digests made in the background: started by appends, made by workers, written only by the holder of the claim."""
