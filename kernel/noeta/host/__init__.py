"""What puts a store, agents, providers and a worker together in one process."""
