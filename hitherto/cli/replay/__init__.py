"""`hitherto replay`: a transcript replayed through a memory, round by round."""

from hitherto.cli.replay.command import replay as replay
