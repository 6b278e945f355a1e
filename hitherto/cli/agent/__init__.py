"""`hitherto agent`."""

from hitherto.cli.agent.command import agent as agent
