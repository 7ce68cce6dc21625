"""For authors of plugins and ports: helpers that build on the kernel only."""
