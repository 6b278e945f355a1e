"""Tests of the MCP server: its tools, its two transports, and clients that others wrote."""
