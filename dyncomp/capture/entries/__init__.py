"""What is kept of a function from call to call: settings, records, budgets, recompilation, stances."""
