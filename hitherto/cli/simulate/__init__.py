"""`hitherto simulate`: what policies would cost and keep on a transcript."""

from hitherto.cli.simulate.command import simulate as simulate
