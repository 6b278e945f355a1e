"""Recorded output: what every preset makes of a few histories in every wire format.

A change that should change nothing, such as a rename or a move, must leave it as it is.
"""
