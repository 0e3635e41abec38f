"""Capacitated vehicle routing: serve all customers from a depot, at least cost."""

from decidewise.problems.vehicle_routing.problem import VehicleRouting

__all__ = ["VehicleRouting"]
