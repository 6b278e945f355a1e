"""For tests: a plug-in for pytest (`plugin`), a check of embedders of one's own (`embedders`), and a strict reader of
requests (`requests`)."""
