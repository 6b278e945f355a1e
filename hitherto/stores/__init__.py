"""The stores: implementations of the port `Store`, in memory and on PostgreSQL."""
