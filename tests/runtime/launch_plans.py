"""Plans and kernels shared by the launcher's tests."""

from __future__ import annotations

from dyncomp.build.library import Library
from dyncomp.dtypes import float64
from dyncomp.inductor.launch import InputSlot, KernelStep, LaunchPlan, OutputResult, OutputSlot
from tests.runtime.kernels import library, run

VECTOR = InputSlot("array", float64, 1)


def launch_kernels() -> Library:
    """Small kernels by name."""
    return library(
        run(
            "auto x=(double*)b[0]; auto y=(double*)b[1]; for(int i=0;i<4;i++) ((double*)b[2])[i]=x[i]+y[i];",
            "add4",
        ),
        run("auto x=(double*)b[0]; auto o=(double*)b[1]; for(i64 i=0;i<s[0];i++) o[i]=2*x[i*s[1]];", "twice"),
        'extern "C" void sizes(const i64* s, i64* out) { out[0]=s[0]; out[1]=8*s[0]; out[2]=s[0]-1; }\n',
        run("*(double*)b[1] = *(double*)b[0] + 1;", "scalar_add"),
        run("auto x=(double*)b[0]; double t=0; for(int i=0;i<4;i++) t+=x[i]; *(double*)b[1]=t;", "sum4"),
        run("((double*)b[0])[0] = 42;", "poke"),
        run("auto x=(double*)b[0]; auto t=(double*)b[2]; for(int i=0;i<4;i++) t[i]=x[i]*10;", "to_arena"),
        run("auto t=(double*)b[2]; auto o=(double*)b[1]; for(int i=0;i<4;i++) o[i]=t[i]+1;", "from_arena"),
        run("error[0]=7; error[1]=3; if (((double*)b[0])[0] < 0) return 1;", "check"),
        run("return 99;", "unknown_error"),
        run("auto o=(double*)b[0]; for(i64 i=0;i<(1<<20);i++) o[i]=1;", "ones_large"),
        run("*(double*)b[0] = ((double*)b[1])[2];", "constant_item"),
        run("", "nothing"),
    )


def simple(inputs, outputs, results, steps, **more):
    return LaunchPlan(inputs=inputs, outputs=outputs, results=results, steps=steps, **more)


def add_plan(**more):
    return simple(
        (VECTOR, VECTOR), (OutputSlot(float64, (4,)),), (OutputResult(0),), (KernelStep("add4"),), **more
    )
