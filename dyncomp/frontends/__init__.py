"""What array libraries' callables mean in ops."""
