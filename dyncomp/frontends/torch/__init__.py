"""The torch frontend (``frontend.TorchFrontend``). Its modules import torch; ``import dyncomp`` does not."""
