"""One file a peer, or a few of a kind. Each is imported only in the process that measures it."""
