"""`hitherto replay`: a transcript sent again through a memory, round by round."""

from hitherto.cli.replay.command import replay as replay
