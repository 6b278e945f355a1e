"""Row-level security: the connections of a role for which it holds, and what such a role is given."""
