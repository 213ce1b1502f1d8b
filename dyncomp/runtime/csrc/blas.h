#ifndef DYNCOMP_BLAS_H
#define DYNCOMP_BLAS_H

namespace dyncomp {

/* Fills Runtime.blas; false if the process has no such library. */
bool find_blas();

/* Whether it has the routines of linalg.h, too. */
bool has_lapack();

/* Runtime.blas_serial. */
void blas_serial(int enter);
/* No other thread is inside a serial section there. */
void blas_after_fork_in_child();

}  // namespace dyncomp
#endif
