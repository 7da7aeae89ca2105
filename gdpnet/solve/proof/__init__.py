"""Certificates inside: their tree, what its nodes prove, its check, and the search for it."""
