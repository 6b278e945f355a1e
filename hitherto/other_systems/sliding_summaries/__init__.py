"""A summary of the newest messages, renewed after each round in the background, each built on the one before."""

from hitherto.other_systems.sliding_summaries.memory_service import MemoryService, WorkflowContext

__all__ = ["MemoryService", "WorkflowContext"]
