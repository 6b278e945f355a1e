"""Tools for `hitherto agent examples/agent.json --stdio --tools examples/agent_tools.py`: they only pretend."""

from __future__ import annotations

from agents import function_tool

ORDERS = {"4711": "a keyboard, sent on Monday", "4712": "a lamp, not sent yet"}


@function_tool
def get_order(number: str) -> str:
    """What is known of an order."""
    return ORDERS.get(number, "there is no such order")


@function_tool
def search_policy(topic: str) -> str:
    """What the shop's rules say of a topic."""
    return f"On {topic}: within 30 days, with the receipt."


TOOLS = [get_order, search_policy]
