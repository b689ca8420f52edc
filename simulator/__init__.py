"""Simulation of the same policies that the controller runs."""
