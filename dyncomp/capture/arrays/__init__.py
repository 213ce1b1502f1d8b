"""What is known of single arrays: overlap, complex views, constant elements."""
