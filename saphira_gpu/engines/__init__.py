"""Engines: Plan and Batch → ids. `cpu` runs the compiled core."""
