"""`hitherto export` and `hitherto import`."""

from hitherto.cli.export.export import export as export
from hitherto.cli.export.imports import import_ as import_
