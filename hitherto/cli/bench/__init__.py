"""`hitherto bench`: measurements on your own data."""

from hitherto.cli.bench.command import bench as bench
