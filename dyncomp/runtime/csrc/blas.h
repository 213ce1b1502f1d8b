#ifndef DYNCOMP_BLAS_H
#define DYNCOMP_BLAS_H

namespace dyncomp {

/* Fills Runtime.blas; false if the process has no such library. */
bool find_blas();

}  // namespace dyncomp
#endif
