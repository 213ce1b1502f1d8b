"""The library's immutable objects as constants: dates, fractions, decimals, paths."""
