/* A CUDA driver that launches nothing: what it is asked to launch is appended to the file $STUB_LOG as
   "grid block shared stream address…", with as many addresses as $STUB_POINTERS says. */
#include <stdio.h>
#include <stdlib.h>

typedef int Result;

typedef struct {
    unsigned grid[3], block[3], shared;
    void *stream, *attributes;
    unsigned count;
} LaunchConfig;

enum { MULTIPROCESSORS = 16, MAJOR = 75, MINOR = 76, SHARED_OPTIN = 97 };

Result cuInit(unsigned flags) { return 0; }
Result cuDriverGetVersion(int *version) { *version = 12080; return 0; }
Result cuDeviceGetCount(int *count) { *count = 1; return 0; }
Result cuDeviceGet(int *device, int ordinal) { *device = ordinal; return 0; }
Result cuGetErrorString(Result error, const char **text) { *text = "stub"; return 0; }
Result cuCtxGetCurrent(void **context) { *context = (void *)1; return 0; }
Result cuCtxGetDevice(int *device) { *device = 0; return 0; }
Result cuCtxSetCurrent(void *context) { return 0; }
Result cuCtxGetLimit(size_t *value, int limit) { *value = 1 << 20; return 0; }
Result cuCtxSetLimit(int limit, size_t value) { return 0; }
Result cuDevicePrimaryCtxRetain(void **context, int device) { *context = (void *)1; return 0; }
Result cuModuleLoadData(void **module, const void *image) { *module = (void *)2; return image == NULL; }
Result cuModuleUnload(void *module) { return 0; }
Result cuModuleGetFunction(void **function, void *module, const char *name) { *function = (void *)3; return 0; }
Result cuFuncSetAttribute(void *function, int attribute, int value) { return 0; }
Result cuFuncSetCacheConfig(void *function, int config) { return 0; }
Result cuOccupancyMaxActiveClusters(int *count, void *function, const void *config) { *count = 1; return 0; }
Result cuTensorMapEncodeTiled(void) { return 1; }
Result cuTensorMapEncodeIm2col(void) { return 1; }
Result cuStreamIsCapturing(void *stream, int *status) { *status = 0; return 0; }
Result cuPointerGetAttribute(void *data, int attribute, unsigned long long address)
{
    *(unsigned long long *)data = address;
    return 0;
}
Result cuPointerGetAttributes(void) { return 1; }

Result
cuDeviceGetAttribute(int *value, int attribute, int device)
{
    *value = attribute == MAJOR ? 9 : attribute == MINOR ? 0 : attribute == SHARED_OPTIN ? 232448 : 132;
    return 0;
}

Result
cuFuncGetAttribute(int *value, int attribute, void *function)
{
    *value = attribute == 0 ? 1024 : 0; /* threads per block */
    return 0;
}

Result
cuLaunchKernelEx(const LaunchConfig *config, void *function, void **parameters, void **extra)
{
    FILE *log = fopen(getenv("STUB_LOG"), "a");
    if (log == NULL || function != (void *)3) {
        return 1;
    }
    fprintf(log, "%u %u %u %zu", config->grid[0], config->block[0], config->shared, (size_t)config->stream);
    for (int i = 0; i < atoi(getenv("STUB_POINTERS")); i++) {
        fprintf(log, " %llu", *(unsigned long long *)parameters[i]);
    }
    fprintf(log, "\n");
    fclose(log);
    return 0;
}
