"""The pages of people: how one gets to them, their facts, and their documents."""
