"""What commands show: results, JSON, warnings, errors, progress, and tables."""
