"""`hitherto doctor`: checks of everything that a process needs."""

from hitherto.cli.doctor.command import doctor as doctor
