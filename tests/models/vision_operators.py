"""torchvision's wheels need CUDA for their own C++ operators; beside a CPU build of torch these names let it
be imported. Import this module before torchvision."""

import torch

LIBRARY = torch.library.Library("torchvision", "FRAGMENT")
for schema in (
    "nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
    "qnms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
):
    if not hasattr(torch.ops.torchvision, schema.partition("(")[0]):
        LIBRARY.define(schema)
