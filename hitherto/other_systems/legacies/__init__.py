"""Rolling chunks and facts about somebody, a legacy, which is a subject here."""

from hitherto.other_systems.legacies.memory_service import LegacyService, PreparedTurn

__all__ = ["LegacyService", "PreparedTurn"]
