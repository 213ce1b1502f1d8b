// Functions left to the C library, element by element: the same bits at every position.

// @ dc_lgamma_f64
extern "C" double lgamma(double) noexcept;
DC_INLINE double dc_lgamma_f64(double x) { return lgamma(x); }
// @ dc_lgamma_f32
DC_INLINE float dc_lgamma_f32(float x) { return (float)dc_lgamma_f64((double)x); }
