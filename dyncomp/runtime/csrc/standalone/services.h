/* What the launcher of a library for C (dyncomp/archives/clib) asks of services.cpp. C and C++. */
#ifndef DYNCOMP_SERVICES_H
#define DYNCOMP_SERVICES_H
#ifdef __cplusplus
extern "C" {
#endif
struct Runtime;

/* The table that kernels are called with. */
const struct Runtime* dyncomp_services(void);

/* From the next call on. */
void dyncomp_set_num_threads(int count);

/* Memory that never changes: its packed copies are kept. Once, before the first call of kernels. */
void dyncomp_keep_copies(const void* weights, long long bytes);
#ifdef __cplusplus
}
#endif
#endif
