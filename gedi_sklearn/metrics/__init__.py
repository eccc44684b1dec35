"""Indicators of disparate impact for continuous and categorical protected attributes."""
