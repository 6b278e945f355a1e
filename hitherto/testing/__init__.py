"""For tests: a plug-in for pytest (`plugin`), and a check of embedders of one's own (`embedders`)."""
