"""The process around captured code: other compilers, readers of frames, replaced builtins, settings."""
