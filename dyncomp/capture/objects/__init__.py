"""What CPython does with objects: look-up, construction, special methods, ``is`` and ``isinstance``."""
