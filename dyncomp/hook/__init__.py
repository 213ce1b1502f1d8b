"""The frame-evaluation hook (PEP 523), guard programs and dispatchers, in C."""
