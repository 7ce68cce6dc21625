"""A small world that one seed decides: tasks, people, workers that die, and what must hold of it."""

from noeta.testing.simulation.world import Simulation as Simulation
from noeta.testing.simulation.world import simulate as simulate
